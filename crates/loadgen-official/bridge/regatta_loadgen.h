/* The C interface of a LoadGen plug-in: the functions of libregatta_loadgen-<revision>.so.
 *
 * LoadGen's own rules apply to the lifetimes of queries. The plug-in keeps no registry of ids and checks no response:
 * an id must come from issue_query and must not have a final response yet. The Rust side ensures both.
 *
 * Strings are UTF-8 and end in NUL. Strings that the plug-in returns live as long as the process.
 * Nothing throws out of these functions, and no callback may unwind into them.
 */
#ifndef REGATTA_LOADGEN_H_
#define REGATTA_LOADGEN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised by one whenever anything below changes its meaning or its layout. */
#define RLG_ABI_VERSION 1u

/* What the functions return. */
enum {
  RLG_OK = 0,
  RLG_UNKNOWN_KEY = 1,      /* no LoadGen has such a setting */
  RLG_NOT_IN_REVISION = 2,  /* other LoadGens have it, this revision does not */
  RLG_BAD_VALUE = 3,        /* out of range, of another kind, or an unknown word */
  RLG_CONF_UNREADABLE = 4,  /* LoadGen could not open or understand the conf file */
  RLG_CONF_TWICE = 5,       /* LoadGen reads one user.conf per process */
  RLG_BUSY = 6,             /* another run is on: LoadGen's state is global */
  RLG_SPENT = 7,            /* after an earlier run, this process cannot start this one */
  RLG_NO_THREAD = 8,        /* the run's thread could not be made */
  RLG_THREW = 9             /* LoadGen threw a C++ exception; see rlg_last_error */
};

/* One sample of a query, laid out as mlperf::QuerySample. */
typedef struct rlg_sample {
  uint64_t id;
  uint64_t index;
} rlg_sample;

/* One answer. `data` must stay readable until the call that takes it returns. */
typedef struct rlg_response {
  uint64_t id;
  const void* data;
  uint64_t size; /* bytes */
  int64_t n_tokens;
} rlg_response;

/* SUT and QSL. issue_query and flush_queries come from the run's thread or a registered issue thread, the others from
 * the run's thread. `ended` is the last call of a run and comes exactly once: with RLG_OK after StartTest has returned,
 * or with RLG_THREW and LoadGen's words. In the second case the logs are still open: rlg_abort_test flushes them. */
typedef struct rlg_callbacks {
  void* context;
  const char* sut_name;
  const char* qsl_name;
  uint64_t total_sample_count;
  uint64_t performance_sample_count;
  void (*issue_query)(void* context, const rlg_sample* samples, size_t count);
  void (*flush_queries)(void* context);
  void (*load_samples)(void* context, const uint64_t* indices, size_t count);
  void (*unload_samples)(void* context, const uint64_t* indices, size_t count);
  void (*ended)(void* context, int code, const char* message);
} rlg_callbacks;

typedef struct rlg_settings rlg_settings;

/* The version of this interface. This function never changes; call it before all others. */
uint32_t rlg_abi_version(void);

/* How the plug-in was built: one JSON object (see docs/loadgen.md). */
const char* rlg_build_info(void);

/* The mlperf.conf that is compiled in, or NULL in LoadGens that have none (before 4.1.x). */
const char* rlg_mlperf_conf(void);

/* Why the last call on this thread failed, or an empty string. */
const char* rlg_last_error(void);

/* Settings with LoadGen's defaults. Keys are the field names of TestSettings, LogSettings and LogOutputSettings, and
 * the words `scenario`, `mode`, `outdir`, `prefix`, `suffix`, `audit_config` for rlg_set_text. */
rlg_settings* rlg_settings_new(void);
void rlg_settings_free(rlg_settings* settings);
int rlg_set_u64(rlg_settings* settings, const char* key, uint64_t value);
int rlg_set_f64(rlg_settings* settings, const char* key, double value);
int rlg_set_text(rlg_settings* settings, const char* key, const char* value);
int rlg_get_u64(const rlg_settings* settings, const char* key, uint64_t* value);
int rlg_get_f64(const rlg_settings* settings, const char* key, double* value);

/* TestSettings::FromConfig as a harness calls it for a user.conf: LoadGens with a compiled-in conf apply that first. */
int rlg_read_user_conf(rlg_settings* settings, const char* path, const char* model, const char* scenario);
/* The compiled-in conf alone, without a user.conf. */
int rlg_apply_compiled_conf(rlg_settings* settings, const char* model, const char* scenario);
/* An mlperf.conf from a file, for LoadGens that have none compiled in; the others refuse it. */
int rlg_read_mlperf_conf(rlg_settings* settings, const char* path, const char* model, const char* scenario);

/* Starts StartTest on a thread of its own, which inherits the caller's affinity and scheduling. Settings are copied;
 * callbacks must stay valid until `ended`, or for ever when the run is abandoned. */
int rlg_start_test(const rlg_settings* settings, const rlg_callbacks* callbacks);

/* Hands over answers, from any thread. LoadGen reads its clock once, on entry. */
int rlg_samples_complete(const rlg_response* responses, size_t count);
/* Hands over first tokens. RLG_NOT_IN_REVISION before LoadGen 4.0. */
int rlg_first_token_complete(const rlg_response* responses, size_t count);

/* Lends this thread to the Server scenario for issuing (server_num_issue_query_threads); returns at the run's end. */
int rlg_register_issue_thread(void);

/* Abandons a run whose thread can no longer end by itself: LoadGen writes what it has logged and stops its I/O thread.
 * The run's thread stays where it waits; no further run can start in this process. */
int rlg_abort_test(void);

#ifdef __cplusplus
}
#endif

#endif
