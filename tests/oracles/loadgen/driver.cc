// Drives the official LoadGen for comparison with ours: same inputs, plain outputs. See build.sh.
//
//   driver run      --log-dir D --issue-log F ...      a whole test with a SUT that answers within IssueQuery
//   driver generate --issue-log F --schedule-log F ... the queries of a test, generated but not issued
//   driver results  --log-dir D --latencies F ...      a result computed from given latencies
//
//   run also: --capacity N --late-ms MS: only the first N queries of a series are answered at once, the others MS after
//   LoadGen has flushed
//
// Common: --issue-threads N --find-peak-decimals D --model M --scenario S --mode 0..3 --mlperf-conf F --user-conf F --audit-conf F --total N --performance N
// Issue log: u64 little-endian sample indices, u64 max after each query. Schedule log: i64 nanoseconds per query.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>
#include <type_traits>

// The generator is a template within this file; there is no other way to call it without running a test.
#include "loadgen.cc"

// The official conf is a global pointer in LoadGen: exchanging it is how a test gets another round's values.
extern const char* mlperf_conf;

namespace {

using namespace mlperf;
using namespace mlperf::loadgen;

std::map<std::string, std::string> options;

const std::string& option(const std::string& name) {
  static const std::string none;
  auto it = options.find(name);
  return it == options.end() ? none : it->second;
}

uint64_t number(const std::string& name) { return strtoull(option(name).c_str(), nullptr, 10); }

[[noreturn]] void die(const std::string& what) {
  fprintf(stderr, "driver: %s\n", what.c_str());
  exit(2);
}

std::string slurp(const std::string& path) {
  std::ifstream in(path);
  if (!in) die("cannot read " + path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

template <typename T>
void dump(const std::string& path, const std::vector<T>& words) {
  if (path.empty()) return;
  FILE* out = fopen(path.c_str(), "wb");
  if (!out || fwrite(words.data(), sizeof(T), words.size(), out) != words.size() || fclose(out) != 0)
    die("cannot write " + path);
}

constexpr uint64_t kEndOfQuery = UINT64_MAX;

// Answers at once with the sample index, and with token counts that follow from it.
class EchoSut : public SystemUnderTest {
 public:
  explicit EchoSut(bool first_tokens) : first_tokens_(first_tokens) {}
  const std::string& Name() override { return name_; }
  void IssueQuery(const std::vector<QuerySample>& samples) override {
    std::lock_guard<std::mutex> lock(mutex_);
    auto& issued = by_thread_[std::this_thread::get_id()];
    for (auto& sample : samples) issued.push_back(sample.index);
    issued.push_back(kEndOfQuery);
    if (capacity_ == 0 || queries_in_series_++ < capacity_)
      answer(samples);
    else
      held_.insert(held_.end(), samples.begin(), samples.end());
  }
  void FlushQueries() override {
    std::lock_guard<std::mutex> lock(mutex_);
    queries_in_series_ = 0;
    std::vector<std::vector<uint64_t>> by_thread;
    for (auto& thread : by_thread_) by_thread.push_back(std::move(thread.second));
    by_thread_.clear();
    std::sort(by_thread.begin(), by_thread.end());
    for (auto& words : by_thread) issued.insert(issued.end(), words.begin(), words.end());
    if (held_.empty()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(number("late-ms")));
    answer(held_);
    held_.clear();
  }
  // Series by series what each thread issued, in an order that does not depend on which was first.
  std::vector<uint64_t> issued;

 private:
  void answer(const std::vector<QuerySample>& samples) {
    data_.clear();
    responses_.clear();
    for (auto& sample : samples) data_.push_back(sample.index);
    for (size_t i = 0; i < samples.size(); i++)
      responses_.emplace_back(samples[i].id, reinterpret_cast<uintptr_t>(&data_[i]), sizeof(uint64_t),
                              static_cast<int64_t>(2 + samples[i].index % 7));
    if (first_tokens_) FirstTokenComplete(responses_.data(), responses_.size());
    QuerySamplesComplete(responses_.data(), responses_.size());
  }

  const bool first_tokens_;
  const uint64_t capacity_ = number("capacity");
  std::string name_ = "EchoSUT";
  std::mutex mutex_;
  uint64_t queries_in_series_ = 0;
  std::vector<QuerySample> held_;
  std::map<std::thread::id, std::vector<uint64_t>> by_thread_;
  std::vector<uint64_t> data_;
  std::vector<QuerySampleResponse> responses_;
};

class CountingQsl : public QuerySampleLibrary {
 public:
  const std::string& Name() override { return name_; }
  size_t TotalSampleCount() override { return number("total"); }
  size_t PerformanceSampleCount() override { return number("performance"); }
  void LoadSamplesToRam(const std::vector<QuerySampleIndex>&) override {}
  void UnloadSamplesFromRam(const std::vector<QuerySampleIndex>&) override {}

 private:
  std::string name_ = "CountingQSL";
};

TestSettings requested_settings() {
  static std::string conf;
  if (!option("mlperf-conf").empty()) {
    conf = slurp(option("mlperf-conf"));
    mlperf_conf = conf.c_str();
  }
  static const std::map<std::string, TestScenario> scenarios = {{"SingleStream", TestScenario::SingleStream},
                                                                {"MultiStream", TestScenario::MultiStream},
                                                                {"Server", TestScenario::Server},
                                                                {"Offline", TestScenario::Offline}};
  auto scenario = scenarios.find(option("scenario"));
  if (scenario == scenarios.end()) die("unknown scenario " + option("scenario"));
  TestSettings settings;
  settings.token_latency_scaling_factor = 0;
  settings.scenario = scenario->second;
  settings.mode = static_cast<TestMode>(number("mode"));
  settings.FromConfig(option("user-conf"), option("model"), option("scenario"));
  settings.server_num_issue_query_threads = number("issue-threads");
  if (!option("find-peak-decimals").empty())
    settings.server_find_peak_qps_decimals_of_precision = atoi(option("find-peak-decimals").c_str());
  return settings;
}

int run() {
  TestSettings settings = requested_settings();
  EchoSut sut(settings.use_token_latencies && settings.scenario != TestScenario::Offline);
  CountingQsl qsl;
  LogSettings logs;
  logs.log_output.outdir = option("log-dir");
  logs.enable_trace = !option("trace").empty();
  std::vector<std::thread> issuers;
  for (uint64_t i = 0; i < settings.server_num_issue_query_threads; i++) issuers.emplace_back(RegisterIssueQueryThread);
  // LoadGen looks once whether they are there, and waits for ten seconds if not.
  if (!issuers.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  StartTest(&sut, &qsl, settings, logs, option("audit-conf"));
  for (auto& issuer : issuers) issuer.join();
  dump(option("issue-log"), sut.issued);
  return 0;
}

template <TestScenario scenario, TestMode mode>
void generate_set(const TestSettingsInternal& settings, const LoadableSampleSet& set, SequenceGen* sequence,
                  std::vector<uint64_t>* issued, std::vector<int64_t>* schedule) {
  ResponseDelegateDetailed<scenario, mode> delegate;
  auto queries = GenerateQueries<scenario, mode>(settings, set, sequence, &delegate);
  for (auto& query : queries) {
    for (auto& sample : query.query_to_send) issued->push_back(sample.index);
    issued->push_back(kEndOfQuery);
    schedule->push_back(query.scheduled_delta.count());
  }
}

// Since 6.0, LoadGen cuts sets out of as many samples as it is told; before, always out of the whole library.
using Sets = std::vector<LoadableSampleSet>;
Sets sets_by(Sets (*make)(QuerySampleLibrary*, const TestSettingsInternal&, size_t), QuerySampleLibrary* qsl,
             const TestSettingsInternal& settings, size_t samples) {
  return make(qsl, settings, samples);
}
[[maybe_unused]] Sets sets_by(Sets (*make)(QuerySampleLibrary*, const TestSettingsInternal&), QuerySampleLibrary* qsl,
                              const TestSettingsInternal& settings, size_t) {
  return make(qsl, settings);
}

// Since 6.0, settings know how many samples an accuracy run has; before, it always had the whole library.
template <typename Settings>
auto accuracy_samples(const Settings& settings, int) -> decltype(settings.accuracy_sample_count) {
  return settings.accuracy_sample_count;
}
template <typename Settings>
[[maybe_unused]] uint64_t accuracy_samples(const Settings&, long) {
  return number("total");
}

template <TestScenario scenario>
void generate_scenario(const TestSettingsInternal& settings, std::vector<uint64_t>* issued,
                       std::vector<int64_t>* schedule) {
  CountingQsl qsl;
  SequenceGen sequence;
  if (settings.mode == TestMode::AccuracyOnly) {
    for (auto& set : sets_by(GenerateLoadableSets, &qsl, settings, accuracy_samples(settings, 0)))
      generate_set<scenario, TestMode::AccuracyOnly>(settings, set, &sequence, issued, schedule);
  } else {
    auto sets = sets_by(GenerateLoadableSets, &qsl, settings, settings.performance_sample_count);
    generate_set<scenario, TestMode::PerformanceOnly>(settings, sets.front(), &sequence, issued, schedule);
  }
}

// Since 6.0, LoadGen is told the size of the library here.
template <typename Settings>
Settings internal_settings() {
  if constexpr (std::is_constructible<Settings, TestSettings, uint64_t, uint64_t>::value)
    return Settings(requested_settings(), number("performance"), number("total"));
  else
    return Settings(requested_settings(), number("performance"));
}

TestSettingsInternal effective_settings() {
  return internal_settings<TestSettingsInternal>();
}

int generate() {
  auto settings = effective_settings();
  std::vector<uint64_t> issued;
  std::vector<int64_t> schedule;
  switch (settings.scenario) {
    case TestScenario::SingleStream:
      generate_scenario<TestScenario::SingleStream>(settings, &issued, &schedule);
      break;
    case TestScenario::MultiStream:
      generate_scenario<TestScenario::MultiStream>(settings, &issued, &schedule);
      break;
    case TestScenario::Server:
      generate_scenario<TestScenario::Server>(settings, &issued, &schedule);
      break;
    case TestScenario::Offline:
      generate_scenario<TestScenario::Offline>(settings, &issued, &schedule);
      break;
  }
  dump(option("issue-log"), issued);
  dump(option("schedule-log"), schedule);
  return 0;
}

std::vector<int64_t> load(const std::string& path) {
  std::vector<int64_t> words;
  if (path.empty()) return words;
  std::string bytes = slurp(path);
  words.resize(bytes.size() / sizeof(int64_t));
  memcpy(words.data(), bytes.data(), words.size() * sizeof(int64_t));
  return words;
}

double seconds(const std::string& name) { return strtod(option(name).c_str(), nullptr); }

int results() {
  auto settings = effective_settings();
  PerformanceResult pr{load(option("latencies")),
                       load(option("query-latencies")),
                       number("queries-issued"),
                       seconds("max-latency"),
                       seconds("final-scheduled"),
                       seconds("final-issued"),
                       seconds("final-done"),
                       {load(option("first-tokens")), load(option("time-per-token")), load(option("token-counts"))}};
  std::string dir = option("log-dir") + "/mlperf_log_";
  std::ofstream summary(dir + "summary.txt"), detail(dir + "detail.txt"), accuracy(dir + "accuracy.json");
  GlobalLogger().StartIOThread();
  GlobalLogger().StartLogging(&summary, &detail, &accuracy, false, false);
  PerformanceSummary performance{"EchoSUT", settings, std::move(pr)};
  LogSummary([performance](AsyncSummary& log) mutable { performance.LogSummary(log); });
  PerformanceSummary copy{performance};
  LogDetail([copy](AsyncDetail& log) mutable { copy.LogDetail(log); });
  GlobalLogger().StopLogging();
  GlobalLogger().StopIOThread();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) die("which: run, generate or results");
  for (int i = 2; i + 1 < argc; i += 2) options[std::string(argv[i]).substr(2)] = argv[i + 1];
  const std::string what = argv[1];
  int code = what == "run" ? run() : what == "generate" ? generate() : what == "results" ? results() : 2;
  // Threads of LoadGen's logger may still hold on; everything is written.
  fflush(nullptr);
  _exit(code);
}
