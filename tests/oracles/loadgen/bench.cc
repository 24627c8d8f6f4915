// The official LoadGen with a SUT that does nothing: what LoadGen itself costs. Counterpart of the Rust side in
// crates/loadgen/benches/side_by_side. Prints one line of name=value pairs.
//
// It has no spinning: spin is thread.
//
//   bench SCENARIO inline|thread|spin MIN_DURATION_MS TARGET(latency in ms, or rate) SAMPLES_PER_QUERY LOG_DIR

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "loadgen.h"
#include "query_sample_library.h"
#include "system_under_test.h"
#include "test_settings.h"

namespace {

using Clock = std::chrono::steady_clock;
using namespace mlperf;

// Processor time of all threads: a figure that other load on the machine does not stretch.
int64_t cpu_ns() {
  timespec spent;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return spent.tv_sec * 1000000000LL + spent.tv_nsec;
}

int64_t now_ns() { return Clock::now().time_since_epoch().count(); }

struct Qsl : QuerySampleLibrary {
  std::string name = "null";
  const std::string& Name() override { return name; }
  size_t TotalSampleCount() override { return 1024; }
  size_t PerformanceSampleCount() override { return 1024; }
  void LoadSamplesToRam(const std::vector<QuerySampleIndex>&) override {}
  void UnloadSamplesFromRam(const std::vector<QuerySampleIndex>&) override {}
};

// Answers within IssueQuery, or from a thread that is woken for each query.
struct NullSut : SystemUnderTest {
  std::string name = "null";
  const bool threaded;
  int64_t issued_queries = 0, first_ns = 0, flushed_ns = 0, first_cpu_ns = 0, flushed_cpu_ns = 0;
  // From just before the answer to the next query's arrival.
  std::vector<uint32_t> turnaround_ns;
  std::atomic<int64_t> answered_at{0};
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<QuerySampleResponse> pending;
  bool done = false;
  std::thread worker;

  explicit NullSut(bool threaded) : threaded(threaded) {
    turnaround_ns.reserve(4000000);
    if (threaded) worker = std::thread([this] { work(); });
  }
  ~NullSut() {
    if (!threaded) return;
    {
      std::lock_guard<std::mutex> lock(mutex);
      done = true;
    }
    wake.notify_one();
    worker.join();
  }
  const std::string& Name() override { return name; }
  void FlushQueries() override {
    flushed_ns = now_ns();
    flushed_cpu_ns = cpu_ns();
  }
  void IssueQuery(const std::vector<QuerySample>& samples) override {
    if (issued_queries++ == 0) {
      first_ns = now_ns();
      first_cpu_ns = cpu_ns();
    }
    if (threaded) {
      int64_t answered = answered_at.load();
      if (answered != 0 && turnaround_ns.size() < turnaround_ns.capacity())
        turnaround_ns.push_back(static_cast<uint32_t>(std::min<int64_t>(now_ns() - answered, UINT32_MAX)));
      std::lock_guard<std::mutex> lock(mutex);
      for (auto& sample : samples) pending.emplace_back(sample.id, 0, 0);
      wake.notify_one();
      return;
    }
    responses_.clear();
    for (auto& sample : samples) responses_.emplace_back(sample.id, 0, 0);
    QuerySamplesComplete(responses_.data(), responses_.size());
  }

 private:
  void work() {
    std::vector<QuerySampleResponse> answers;
    while (true) {
      {
        std::unique_lock<std::mutex> lock(mutex);
        wake.wait(lock, [this] { return done || !pending.empty(); });
        if (done) return;
        answers.swap(pending);
      }
      answered_at.store(now_ns());
      QuerySamplesComplete(answers.data(), answers.size());
      answers.clear();
    }
  }
  std::vector<QuerySampleResponse> responses_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const std::string scenario = argv[1], dir = argv[6];
  TestSettings settings;
  settings.mode = TestMode::PerformanceOnly;
  settings.min_duration_ms = strtoull(argv[3], nullptr, 10);
  const double target = strtod(argv[4], nullptr);
  settings.min_query_count = 1;
  if (scenario == "SingleStream") {
    settings.scenario = TestScenario::SingleStream;
    settings.single_stream_expected_latency_ns = target * 1e6;
  } else if (scenario == "MultiStream") {
    settings.scenario = TestScenario::MultiStream;
    settings.multi_stream_expected_latency_ns = target * 1e6;
    settings.multi_stream_samples_per_query = strtoull(argv[5], nullptr, 10);
  } else if (scenario == "Server") {
    settings.scenario = TestScenario::Server;
    settings.server_target_qps = target;
  } else {
    settings.scenario = TestScenario::Offline;
    settings.offline_expected_qps = target;
  }
  LogSettings logs;
  logs.log_output.outdir = dir;
  logs.enable_trace = false;
  Qsl qsl;
  auto* sut = new NullSut(std::string(argv[2]) != "inline");
  int64_t begun = now_ns();
  StartTest(sut, &qsl, settings, logs, "");
  int64_t wall = now_ns() - begun;
  auto& turnaround = sut->turnaround_ns;
  std::sort(turnaround.begin(), turnaround.end());
  auto at = [&](double share) -> uint32_t { return turnaround.empty() ? 0 : turnaround[turnaround.size() * share]; };
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("wall_s=%.4f query_ns=%.1f query_cpu_ns=%.1f rss_mib=%.1f turnaround_p50_ns=%u turnaround_p99_ns=%u\n", wall / 1e9,
         double(sut->flushed_ns - sut->first_ns) / sut->issued_queries,
         double(sut->flushed_cpu_ns - sut->first_cpu_ns) / sut->issued_queries, usage.ru_maxrss / 1024.0, at(0.5), at(0.99));
  fflush(stdout);
  _Exit(0);
}
