// Connects the C interface to LoadGen: one run at a time, on a thread of its own, with nothing thrown across the edge.
// LoadGen's sources are compiled beside this file and are not changed.

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "loadgen.h"
#include "query_sample.h"
#include "query_sample_library.h"
#include "regatta_loadgen.h"
#include "settings.h"
#include "system_under_test.h"

#include "rlg_manifest.inc"  // written by build.sh: const char kManifest[], RLG_COMPILED_CONF

#if RLG_COMPILED_CONF
extern const char* mlperf_conf;  // defined by LoadGen's mlperf_conf.h
#endif

namespace {

thread_local std::string last_error;

int Refuse(int code, const std::string& why) {
  last_error = why;
  return code;
}

// ---- Layouts. A query crosses as LoadGen holds it; answers do where this revision's have the same fields.

static_assert(sizeof(mlperf::QuerySample) == sizeof(rlg_sample), "a query crosses without a copy");
static_assert(offsetof(mlperf::QuerySample, id) == offsetof(rlg_sample, id), "");
static_assert(offsetof(mlperf::QuerySample, index) == offsetof(rlg_sample, index), "");
static_assert(sizeof(mlperf::QuerySampleIndex) == sizeof(uint64_t), "sample sets cross without a copy");

using Deliver = void (*)(mlperf::QuerySampleResponse*, size_t);

// LoadGen 4.0 and later: id, data, size, n_tokens. It only reads them, though its signature does not say so.
template <typename Response>
auto Pass(const rlg_response* responses, size_t count, Deliver deliver, int)
    -> decltype(std::declval<Response>().n_tokens, void()) {
  static_assert(sizeof(Response) == sizeof(rlg_response), "answers cross without a copy");
  deliver(reinterpret_cast<Response*>(const_cast<rlg_response*>(responses)), count);
}

// Earlier ones have no token count: the answers are laid out anew.
template <typename Response>
void Pass(const rlg_response* responses, size_t count, Deliver deliver, long) {
  std::vector<Response> plain(count);
  for (size_t i = 0; i < count; ++i) {
    plain[i].id = static_cast<mlperf::ResponseId>(responses[i].id);
    plain[i].data = reinterpret_cast<uintptr_t>(responses[i].data);
    plain[i].size = static_cast<size_t>(responses[i].size);
  }
  deliver(plain.data(), count);
}

void DeliverFinal(mlperf::QuerySampleResponse* responses, size_t count) {
  mlperf::QuerySamplesComplete(responses, count);
}

#if RLG_FIRST_TOKEN
void DeliverFirstToken(mlperf::QuerySampleResponse* responses, size_t count) {
  mlperf::FirstTokenComplete(responses, count);
}
#endif

// ---- The SUT and QSL that LoadGen sees.

class Sut : public mlperf::SystemUnderTest {
 public:
  explicit Sut(const rlg_callbacks& to) : to_(to), name_(to.sut_name) {}
  // The interface of tag v2.0 has the constant one, later tags have the other.
  const std::string& Name() { return name_; }
  const std::string& Name() const { return name_; }
  // Only in the interface until tag v2.0.
  void ReportLatencyResults(const std::vector<mlperf::QuerySampleLatency>&) {}
  void IssueQuery(const std::vector<mlperf::QuerySample>& samples) override {
    to_.issue_query(to_.context, reinterpret_cast<const rlg_sample*>(samples.data()), samples.size());
  }
  void FlushQueries() override { to_.flush_queries(to_.context); }

 private:
  const rlg_callbacks to_;
  const std::string name_;
};

class Qsl : public mlperf::QuerySampleLibrary {
 public:
  explicit Qsl(const rlg_callbacks& to) : to_(to), name_(to.qsl_name) {}
  const std::string& Name() { return name_; }
  const std::string& Name() const { return name_; }
  size_t TotalSampleCount() override { return to_.total_sample_count; }
  size_t PerformanceSampleCount() override { return to_.performance_sample_count; }
  void LoadSamplesToRam(const std::vector<mlperf::QuerySampleIndex>& set) override {
    to_.load_samples(to_.context, reinterpret_cast<const uint64_t*>(set.data()), set.size());
  }
  void UnloadSamplesFromRam(const std::vector<mlperf::QuerySampleIndex>& set) override {
    to_.unload_samples(to_.context, reinterpret_cast<const uint64_t*>(set.data()), set.size());
  }

 private:
  const rlg_callbacks to_;
  const std::string name_;
};

// ---- The one run of this process.

struct Run {
  rlg_settings settings;
  rlg_callbacks callbacks;
};

std::mutex run_mutex;        // guards what follows
Run* current_run = nullptr;  // null between runs
pthread_t run_thread;        // set while there is a run
bool spent = false;          // an abandoned run still holds LoadGen's state
bool ran_before = false;     // LoadGen sends issue threads home for good at the end of its first run

[[noreturn]] void WaitForEver() {
  for (;;) pause();
}

// LoadGen has no way to report an exception. A run's thread has no handler beneath it, so the search for one fails and
// this is called where the exception was thrown: nothing has been unwound, and the logs can still be written out. Not
// so from LoadGen's I/O thread, which would have to write them.
[[noreturn]] void OnTerminate() {
  std::string words = "terminated without an exception";
  if (std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      words = e.what();
    } catch (...) {
      words = "an exception of an unknown kind";
    }
  }
  Run* run;
  bool on_run_thread;
  {
    std::lock_guard<std::mutex> lock(run_mutex);
    run = spent ? nullptr : current_run;
    on_run_thread = pthread_equal(pthread_self(), run_thread) != 0;
    spent = true;
  }
  if (run == nullptr) std::abort();  // no caller to report to
  if (on_run_thread) mlperf::AbortTest();
  run->callbacks.ended(run->callbacks.context, RLG_THREW, words.c_str());
  WaitForEver();
}

extern "C" void* RunThread(void* argument) {
  Run* run = static_cast<Run*>(argument);
  {
    std::lock_guard<std::mutex> lock(run_mutex);
    run_thread = pthread_self();
  }
  {
    Sut sut(run->callbacks);
    Qsl qsl(run->callbacks);
    mlperf::StartTest(&sut, &qsl, run->settings.test, run->settings.log, run->settings.audit_config);
  }
  const rlg_callbacks callbacks = run->callbacks;
  {
    std::lock_guard<std::mutex> lock(run_mutex);
    current_run = nullptr;
  }
  delete run;
  callbacks.ended(callbacks.context, RLG_OK, "");
  return nullptr;
}

int Spawn(Run* run) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, RunThread, run);
  pthread_attr_destroy(&attributes);
  return error;
}

// ---- Conf files. FromConfig's last parameter is an int since 5.0, a bool in 4.1.x, and absent before.

using Test = mlperf::TestSettings;
using Words = const std::string&;

inline int CompiledConf(Test& t, int (Test::*from)(Words, Words, Words, int), Words model, Words scenario) {
  return (t.*from)("", model, scenario, 0);
}
inline int CompiledConf(Test& t, int (Test::*from)(Words, Words, Words, bool), Words model, Words scenario) {
  return (t.*from)("", model, scenario, true);
}

int ConfResult(int code, Words path) {
  if (code == 0) return RLG_OK;
  const std::string why = code == -ENOENT ? "cannot open" : "not understood, see LoadGen's detail log:";
  return Refuse(RLG_CONF_UNREADABLE, why + " " + path);
}

template <typename Body>
int Guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::exception& e) {
    return Refuse(RLG_THREW, e.what());
  } catch (...) {
    return Refuse(RLG_THREW, "an exception of an unknown kind");
  }
}

int Explained(int code, const char* key) {
  switch (code) {
    case RLG_UNKNOWN_KEY: return Refuse(code, std::string("no LoadGen has a setting `") + key + "`");
    case RLG_NOT_IN_REVISION: return Refuse(code, std::string("this LoadGen has no setting `") + key + "`");
    case RLG_BAD_VALUE: return Refuse(code, std::string("not a value for `") + key + "`");
    default: return code;
  }
}

}  // namespace

extern "C" {

// Static objects of the plug-in are never destroyed. It stays until the process ends, and an abandoned run's thread still
// waits on LoadGen's condition variables: destroying those would wait for it, so the process would never end. Not
// exported, so it is this plug-in's alone.
int __cxa_atexit(void (*)(void*), void*, void*) { return 0; }

uint32_t rlg_abi_version(void) { return RLG_ABI_VERSION; }

const char* rlg_build_info(void) { return kManifest; }

const char* rlg_mlperf_conf(void) {
#if RLG_COMPILED_CONF
  return mlperf_conf;
#else
  return nullptr;
#endif
}

const char* rlg_last_error(void) { return last_error.c_str(); }

rlg_settings* rlg_settings_new(void) { return new (std::nothrow) rlg_settings(); }

void rlg_settings_free(rlg_settings* settings) { delete settings; }

int rlg_set_u64(rlg_settings* settings, const char* key, uint64_t value) {
  return Guarded([&] { return Explained(regatta::SetWhole(*settings, key, value), key); });
}

int rlg_set_f64(rlg_settings* settings, const char* key, double value) {
  return Guarded([&] { return Explained(regatta::SetReal(*settings, key, value), key); });
}

int rlg_set_text(rlg_settings* settings, const char* key, const char* value) {
  return Guarded([&] { return Explained(regatta::SetText(*settings, key, value), key); });
}

int rlg_get_u64(const rlg_settings* settings, const char* key, uint64_t* value) {
  return Guarded([&] { return Explained(regatta::GetWhole(*settings, key, *value), key); });
}

int rlg_get_f64(const rlg_settings* settings, const char* key, double* value) {
  return Guarded([&] { return Explained(regatta::GetReal(*settings, key, *value), key); });
}

int rlg_read_user_conf(rlg_settings* settings, const char* path, const char* model, const char* scenario) {
  return Guarded([&] {
#if RLG_COMPILED_CONF
    // LoadGen counts its calls in a static: from the second on it leaves out the compiled-in conf and logs an error.
    static bool read_before = false;
    {
      std::lock_guard<std::mutex> lock(run_mutex);
      if (read_before) return Refuse(RLG_CONF_TWICE, "LoadGen reads one user.conf per process");
      read_before = true;
    }
#endif
    return ConfResult(settings->test.FromConfig(path, model, scenario), path);
  });
}

int rlg_apply_compiled_conf(rlg_settings* settings, const char* model, const char* scenario) {
  return Guarded([&] {
#if RLG_COMPILED_CONF
    return ConfResult(CompiledConf(settings->test, &Test::FromConfig, model, scenario), "the compiled-in mlperf.conf");
#else
    (void)settings, (void)model, (void)scenario;
    return Refuse(RLG_NOT_IN_REVISION, "this LoadGen has no mlperf.conf compiled in; give it the file");
#endif
  });
}

int rlg_read_mlperf_conf(rlg_settings* settings, const char* path, const char* model, const char* scenario) {
  return Guarded([&] {
#if RLG_COMPILED_CONF
    (void)settings, (void)path, (void)model, (void)scenario;
    return Refuse(RLG_NOT_IN_REVISION, "this LoadGen has its mlperf.conf compiled in and reads no other");
#else
    return ConfResult(settings->test.FromConfig(path, model, scenario), path);
#endif
  });
}

int rlg_start_test(const rlg_settings* settings, const rlg_callbacks* callbacks) {
  return Guarded([&] {
    std::unique_ptr<Run> run(new Run{*settings, *callbacks});
    std::lock_guard<std::mutex> lock(run_mutex);
    if (spent) return Refuse(RLG_SPENT, "an earlier run was abandoned; start a new process");
    if (current_run != nullptr) return Refuse(RLG_BUSY, "a run is on in this process");
    if (ran_before && run->settings.test.scenario == mlperf::TestScenario::Server &&
        run->settings.test.server_num_issue_query_threads != 0) {
      return Refuse(RLG_SPENT, "LoadGen takes issue threads in a process's first run only; start a new process");
    }
    std::set_terminate(OnTerminate);
    current_run = run.get();
    if (const int error = Spawn(run.get())) {
      current_run = nullptr;
      return Refuse(RLG_NO_THREAD, std::strerror(error));
    }
    ran_before = true;
    run.release();  // RunThread's from here on
    return static_cast<int>(RLG_OK);
  });
}

int rlg_samples_complete(const rlg_response* responses, size_t count) {
  return Guarded([&] {
    Pass<mlperf::QuerySampleResponse>(responses, count, DeliverFinal, 0);
    return RLG_OK;
  });
}

int rlg_first_token_complete(const rlg_response* responses, size_t count) {
#if RLG_FIRST_TOKEN
  return Guarded([&] {
    Pass<mlperf::QuerySampleResponse>(responses, count, DeliverFirstToken, 0);
    return RLG_OK;
  });
#else
  (void)responses, (void)count;
  return Refuse(RLG_NOT_IN_REVISION, "this LoadGen knows no first tokens");
#endif
}

int rlg_register_issue_thread(void) {
  return Guarded([&] {
    mlperf::RegisterIssueQueryThread();
    return RLG_OK;
  });
}

int rlg_abort_test(void) {
  {
    std::lock_guard<std::mutex> lock(run_mutex);
    spent = true;
  }
  return Guarded([&] {
    mlperf::AbortTest();
    return RLG_OK;
  });
}

}  // extern "C"
