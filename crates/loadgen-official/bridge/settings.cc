// One row per field of LoadGen's settings; a field that this revision lacks answers RLG_NOT_IN_REVISION.

#include "settings.h"

#include <limits>
#include <type_traits>

#include "regatta_loadgen.h"

namespace regatta {
namespace {

// A number on its way in or out. Fields are whole numbers (flags among them) or reals, never both.
struct Number {
  bool real;
  uint64_t whole_value;
  double real_value;
};

template <typename Field>
int Store(Field& field, const Number& number) {
  if (std::is_floating_point<Field>::value != number.real) return RLG_BAD_VALUE;
  if (number.real) {
    field = static_cast<Field>(number.real_value);
    return RLG_OK;
  }
  const uint64_t largest =
      std::is_same<Field, bool>::value ? 1 : static_cast<uint64_t>(std::numeric_limits<Field>::max());
  if (!std::is_floating_point<Field>::value && number.whole_value > largest) return RLG_BAD_VALUE;
  field = static_cast<Field>(number.whole_value);
  return RLG_OK;
}

template <typename Field>
int Fetch(const Field& field, Number& number) {
  if (std::is_floating_point<Field>::value != number.real) return RLG_BAD_VALUE;
  if (number.real) {
    number.real_value = static_cast<double>(field);
  } else {
    number.whole_value = static_cast<uint64_t>(field);
  }
  return RLG_OK;
}

// Per field: an overload for revisions that have it, and one for those that do not.
#define RLG_FIELD(name)                                                                    \
  template <typename S, typename V>                                                        \
  auto Visit_##name(S& s, const V& visit, int)->decltype(s.name, int()) { return visit(s.name); } \
  template <typename S, typename V>                                                        \
  int Visit_##name(S&, const V&, long) { return RLG_NOT_IN_REVISION; }

#define RLG_TEST_FIELDS(F)                                                                             \
  F(single_stream_expected_latency_ns) F(single_stream_target_latency_percentile)                      \
  F(multi_stream_expected_latency_ns) F(multi_stream_target_latency_percentile)                        \
  F(multi_stream_samples_per_query) F(server_target_qps) F(server_target_latency_ns)                   \
  F(server_target_latency_percentile) F(server_coalesce_queries)                                       \
  F(server_find_peak_qps_decimals_of_precision) F(server_find_peak_qps_boundary_step_size)             \
  F(server_max_async_queries) F(server_num_issue_query_threads) F(offline_expected_qps)                \
  F(sample_concatenate_permutation) F(min_duration_ms) F(max_duration_ms) F(min_query_count)           \
  F(max_query_count) F(qsl_rng_seed) F(sample_index_rng_seed) F(schedule_rng_seed)                     \
  F(accuracy_log_rng_seed) F(accuracy_log_probability) F(accuracy_log_sampling_target) F(test05)       \
  F(test05_qsl_rng_seed) F(test05_sample_index_rng_seed) F(test05_schedule_rng_seed)                   \
  F(print_timestamps) F(performance_issue_unique) F(performance_issue_same)                            \
  F(performance_issue_same_index) F(performance_sample_count_override)                                 \
  F(accuracy_sample_count_override) F(use_token_latencies) F(server_ttft_latency)                      \
  F(server_tpot_latency) F(infer_token_latencies) F(token_latency_scaling_factor)

#define RLG_LOG_FIELDS(F) F(log_mode_async_poll_interval_ms) F(enable_trace)

#define RLG_OUTPUT_FIELDS(F) F(prefix_with_datetime) F(copy_detail_to_stdout) F(copy_summary_to_stdout)

RLG_TEST_FIELDS(RLG_FIELD)
RLG_LOG_FIELDS(RLG_FIELD)
RLG_OUTPUT_FIELDS(RLG_FIELD)

// Calls `visit` with the field of a key. `Settings` is rlg_settings or const rlg_settings.
template <typename Settings, typename Visitor>
int VisitByName(Settings& s, const std::string& key, const Visitor& visit) {
#define RLG_TEST(name) if (key == #name) return Visit_##name(s.test, visit, 0);
#define RLG_LOG(name) if (key == #name) return Visit_##name(s.log, visit, 0);
#define RLG_OUTPUT(name) if (key == #name) return Visit_##name(s.log.log_output, visit, 0);
  RLG_TEST_FIELDS(RLG_TEST)
  RLG_LOG_FIELDS(RLG_LOG)
  RLG_OUTPUT_FIELDS(RLG_OUTPUT)
#undef RLG_TEST
#undef RLG_LOG
#undef RLG_OUTPUT
  return RLG_UNKNOWN_KEY;
}

int StoreByName(rlg_settings& settings, const std::string& key, const Number& number) {
  return VisitByName(settings, key, [&](auto& field) { return Store(field, number); });
}

int FetchByName(const rlg_settings& settings, const std::string& key, Number& number) {
  return VisitByName(settings, key, [&](const auto& field) { return Fetch(field, number); });
}

int SetScenario(mlperf::TestSettings& test, const std::string& word) {
  using mlperf::TestScenario;
  if (word == "SingleStream") test.scenario = TestScenario::SingleStream;
  else if (word == "MultiStream") test.scenario = TestScenario::MultiStream;
  else if (word == "Server") test.scenario = TestScenario::Server;
  else if (word == "Offline") test.scenario = TestScenario::Offline;
  else return RLG_BAD_VALUE;
  return RLG_OK;
}

int SetMode(mlperf::TestSettings& test, const std::string& word) {
  using mlperf::TestMode;
  if (word == "SubmissionRun") test.mode = TestMode::SubmissionRun;
  else if (word == "AccuracyOnly") test.mode = TestMode::AccuracyOnly;
  else if (word == "PerformanceOnly") test.mode = TestMode::PerformanceOnly;
  else if (word == "FindPeakPerformance") test.mode = TestMode::FindPeakPerformance;
  else return RLG_BAD_VALUE;
  return RLG_OK;
}

}  // namespace

int SetWhole(rlg_settings& settings, const std::string& key, uint64_t value) {
  return StoreByName(settings, key, Number{false, value, 0});
}

int SetReal(rlg_settings& settings, const std::string& key, double value) {
  return StoreByName(settings, key, Number{true, 0, value});
}

int GetWhole(const rlg_settings& settings, const std::string& key, uint64_t& value) {
  Number number{false, 0, 0};
  const int code = FetchByName(settings, key, number);
  if (code == RLG_OK) value = number.whole_value;
  return code;
}

int GetReal(const rlg_settings& settings, const std::string& key, double& value) {
  Number number{true, 0, 0};
  const int code = FetchByName(settings, key, number);
  if (code == RLG_OK) value = number.real_value;
  return code;
}

int SetText(rlg_settings& settings, const std::string& key, const std::string& value) {
  if (key == "scenario") return SetScenario(settings.test, value);
  if (key == "mode") return SetMode(settings.test, value);
  if (key == "outdir") settings.log.log_output.outdir = value;
  else if (key == "prefix") settings.log.log_output.prefix = value;
  else if (key == "suffix") settings.log.log_output.suffix = value;
  else if (key == "audit_config") settings.audit_config = value;
  else return RLG_UNKNOWN_KEY;
  return RLG_OK;
}

}  // namespace regatta
