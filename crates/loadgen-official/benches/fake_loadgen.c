/* A LoadGen that does nothing but ask: the bench's way to see the bridge alone. It has the plug-in's C interface, issues queries in
 * a tight loop, counts answers, and writes the nanoseconds per query to the file `ns` in the log directory. With the
 * environment's FAKE_DIRECT it asks a SUT in C instead of the one it was given. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "regatta_loadgen.h"

struct rlg_settings {
  char outdir[4096];
  int multi;
  uint64_t queries;
};
static struct rlg_settings run;
static rlg_callbacks to;
static volatile uint64_t answered;

uint32_t rlg_abi_version(void) { return RLG_ABI_VERSION; }
const char* rlg_build_info(void) {
  return "{\"abi\":1,\"loadgen_version\":\"0\",\"git_revision\":\"NA\",\"git_commit_date\":\"NA\",\"uncommitted_changes\":false,"
         "\"source\":\"fake\",\"submittable\":false,\"mlperf_conf_sha256\":null,\"compiler\":\"\",\"libstdcxx\":0,"
         "\"rng_abi\":\"\",\"target\":\"\"}";
}
const char* rlg_mlperf_conf(void) { return NULL; }
const char* rlg_last_error(void) { return ""; }
rlg_settings* rlg_settings_new(void) { return calloc(1, sizeof(rlg_settings)); }
void rlg_settings_free(rlg_settings* s) { free(s); }
int rlg_set_u64(rlg_settings* s, const char* key, uint64_t value) {
  if (strcmp(key, "min_query_count") == 0) s->queries = value;
  return RLG_OK;
}
int rlg_set_f64(rlg_settings* s, const char* key, double value) { return (void)s, (void)key, (void)value, RLG_OK; }
int rlg_set_text(rlg_settings* s, const char* key, const char* value) {
  if (strcmp(key, "outdir") == 0) snprintf(s->outdir, sizeof s->outdir, "%s", value);
  if (strcmp(key, "scenario") == 0) s->multi = strcmp(value, "MultiStream") == 0;
  return RLG_OK;
}
int rlg_get_u64(const rlg_settings* s, const char* k, uint64_t* v) { return (void)s, (void)k, *v = 0, RLG_OK; }
int rlg_get_f64(const rlg_settings* s, const char* k, double* v) { return (void)s, (void)k, *v = 0, RLG_OK; }
int rlg_read_user_conf(rlg_settings* s, const char* p, const char* m, const char* c) {
  return (void)s, (void)p, (void)m, (void)c, RLG_OK;
}
int rlg_read_mlperf_conf(rlg_settings* s, const char* p, const char* m, const char* c) {
  return (void)s, (void)p, (void)m, (void)c, RLG_OK;
}
int rlg_apply_compiled_conf(rlg_settings* s, const char* m, const char* c) { return (void)s, (void)m, (void)c, RLG_OK; }
__attribute__((noinline)) int rlg_samples_complete(const rlg_response* r, size_t n) {
  (void)r;
  answered += n;
  return RLG_OK;
}
int rlg_first_token_complete(const rlg_response* r, size_t n) { return (void)r, (void)n, RLG_OK; }
int rlg_register_issue_thread(void) { return RLG_OK; }
int rlg_abort_test(void) { return RLG_OK; }

static void direct(void* context, const rlg_sample* samples, size_t count) {
  (void)context;
  for (size_t i = 0; i < count; ++i) {
    rlg_response response = {samples[i].id, &samples[i].index, 8, 1};
    rlg_samples_complete(&response, 1);
  }
}

static void* body(void* unused) {
  (void)unused;
  void (*volatile issue)(void*, const rlg_sample*, size_t) = getenv("FAKE_DIRECT") ? direct : to.issue_query;
  const size_t width = run.multi ? 8 : 1;
  rlg_sample samples[8];
  struct timespec began, ended;
  clock_gettime(CLOCK_MONOTONIC, &began);
  for (uint64_t q = 0; q < run.queries; ++q) {
    for (size_t i = 0; i < width; ++i) samples[i] = (rlg_sample){(q * width + i + 1) * 8, i};
    issue(to.context, samples, width);
  }
  clock_gettime(CLOCK_MONOTONIC, &ended);
  char path[4200];
  snprintf(path, sizeof path, "%s/ns", run.outdir);
  FILE* file = fopen(path, "w");
  if (file == NULL || answered != run.queries * width) abort();
  const double ns = (ended.tv_sec - began.tv_sec) * 1e9 + (double)(ended.tv_nsec - began.tv_nsec);
  fprintf(file, "%f\n", ns / (double)run.queries);
  fclose(file);
  to.ended(to.context, RLG_OK, "");
  return NULL;
}

int rlg_start_test(const rlg_settings* settings, const rlg_callbacks* callbacks) {
  run = *settings;
  to = *callbacks;
  answered = 0;
  pthread_t thread;
  if (pthread_create(&thread, NULL, body, NULL) != 0) return RLG_NO_THREAD;
  pthread_detach(thread);
  return RLG_OK;
}
