/* The smallest user of a LoadGen plug-in: a SUT that answers at once, in C. Shows that a plug-in works on a machine where
 * nothing else is installed (or under qemu), and is the yardstick for what the Rust side costs.
 *
 *   driver PLUGIN LOG_DIR SCENARIO MIN_QUERIES [PERFORMANCE_SAMPLES]
 *
 * Prints how the plug-in was built, and a line `issued SAMPLES HASH` that tells which samples came in which order: the same
 * on every machine, as LoadGen promises for the same seeds. LoadGen's log files lie in LOG_DIR. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "regatta_loadgen.h"

#define FIND(name) __typeof__(&name) name##_ = (__typeof__(&name))find(plugin, #name)

static int (*complete)(const rlg_response*, size_t);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int has_ended = 0, end_code = 0;
static uint64_t issued = 0, order = 14695981039346656037u; /* FNV-1a over the indices */

static void* find(void* plugin, const char* name) {
  void* found = dlsym(plugin, name);
  if (found == NULL) {
    fprintf(stderr, "driver: no %s in the plug-in\n", name);
    exit(3);
  }
  return found;
}

static void issue_query(void* context, const rlg_sample* samples, size_t count) {
  (void)context;
  issued += count;
  for (size_t i = 0; i < count; ++i) {
    rlg_response response = {samples[i].id, &samples[i].index, sizeof samples[i].index, 0};
    order = (order ^ samples[i].index) * 1099511628211u;
    complete(&response, 1);
  }
}

static void flush_queries(void* context) { (void)context; }

static void sample_set(void* context, const uint64_t* indices, size_t count) {
  (void)context, (void)indices, (void)count;
}

static void ended(void* context, int code, const char* message) {
  (void)context;
  if (code != RLG_OK) fprintf(stderr, "driver: LoadGen threw: %s\n", message);
  pthread_mutex_lock(&lock);
  has_ended = 1;
  end_code = code;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
}

static void check(int code, const char* words) {
  if (code == RLG_OK) return;
  fprintf(stderr, "driver: %s\n", words);
  exit(3);
}

int main(int argc, char** argv) {
  if (argc < 5) {
    fprintf(stderr, "driver: give PLUGIN LOG_DIR SCENARIO MIN_QUERIES\n");
    return 2;
  }
  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) {
    fprintf(stderr, "driver: %s\n", dlerror());
    return 3;
  }
  FIND(rlg_abi_version);
  if (rlg_abi_version_() != RLG_ABI_VERSION) {
    fprintf(stderr, "driver: C interface version %u, needed %u\n", rlg_abi_version_(), RLG_ABI_VERSION);
    return 3;
  }
  FIND(rlg_build_info);
  FIND(rlg_last_error);
  FIND(rlg_settings_new);
  FIND(rlg_set_text);
  FIND(rlg_set_u64);
  FIND(rlg_set_f64);
  FIND(rlg_start_test);
  FIND(rlg_samples_complete);
  complete = rlg_samples_complete_;
  puts(rlg_build_info_());

  rlg_settings* settings = rlg_settings_new_();
  const uint64_t queries = strtoull(argv[4], NULL, 10);
  check(rlg_set_text_(settings, "scenario", argv[3]), rlg_last_error_());
  check(rlg_set_text_(settings, "mode", "PerformanceOnly"), rlg_last_error_());
  check(rlg_set_text_(settings, "outdir", argv[2]), rlg_last_error_());
  check(rlg_set_u64_(settings, "enable_trace", 0), rlg_last_error_());
  check(rlg_set_u64_(settings, "min_duration_ms", 0), rlg_last_error_());
  check(rlg_set_u64_(settings, "min_query_count", queries), rlg_last_error_());
  check(rlg_set_f64_(settings, "server_target_qps", 1000.0), rlg_last_error_());
  check(rlg_set_u64_(settings, "sample_index_rng_seed", 2747215439041700203u), rlg_last_error_());

  const uint64_t samples = argc > 5 ? strtoull(argv[5], NULL, 10) : 1024;
  rlg_callbacks callbacks = {NULL,        "driver",      "driver",   samples,    samples,
                             issue_query, flush_queries, sample_set, sample_set, ended};
  check(rlg_start_test_(settings, &callbacks), rlg_last_error_());
  pthread_mutex_lock(&lock);
  while (!has_ended) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  printf("issued %llu %016llx\n", (unsigned long long)issued, (unsigned long long)order);
  return end_code == RLG_OK ? 0 : 3;
}
