//! Tests of impossible settings, which are refused before the official LoadGen is called. It would crash, fill the memory, or
//! never end.

use regatta_loadgen::{
    NativeLoadGen,
    effective::LibraryCounts,
    load_gen::{LoadGen, LoadgenError, NoObserver},
    request::{ConfText, RunRequest},
};
use regatta_test_support::null_sut::{Null, Samples};
use regatta_types::{Mode, Scenario};

use crate::fresh_plugin;

const KEYS: [&str; 20] = [
    "mode",
    "use_token_latencies",
    "target_latency_percentile",
    "samples_per_query",
    "target_latency",
    "target_qps",
    "performance_issue_unique",
    "performance_issue_same",
    "performance_issue_same_index",
    "sample_concatenate_permutation",
    "coalesce_queries",
    "max_async_queries",
    "min_duration",
    "max_duration",
    "min_query_count",
    "max_query_count",
    "performance_sample_count_override",
    "accuracy_sample_count_override",
    "accuracy_log_sampling_target",
    "qsl_rng_seed",
];

const VALUES: [&str; 12] = [
    "-1",
    "-2",
    "0",
    "1",
    "7",
    "0.5",
    "9223372036854775807",
    "18446744073709551615",
    "4000000000",
    "NaN",
    "inf",
    "1e300",
];

/// One in N of the valid runs is executed, because each takes LoadGen about ten milliseconds.
const ONE_IN: usize = 5;

fn request(scenario: Scenario, line: &str, dir: &std::path::Path) -> RunRequest {
    let text = format!(
        "*.*.min_duration = 2\n*.*.min_query_count = 5\n*.*.target_qps = 1000\n*.*.target_latency = 1\n{line}\n"
    );
    let mut request = RunRequest::new("m", scenario, Mode::PerformanceOnly, dir);
    request.mlperf_conf = Some(ConfText::new("test.conf", text));
    request
}

#[test]
fn both_loadgens_refuse_the_same_and_the_rest_ends() {
    let Some(plugin) = fresh_plugin("6.0.17") else {
        return;
    };
    let official = plugin.loadgen_as_requested();
    let library = LibraryCounts {
        total: 64,
        performance: 64,
    };
    let mut begun = 0;
    for (scenario, key, value) in Scenario::ALL
        .into_iter()
        .flat_map(|scenario| KEYS.map(|key| VALUES.map(|value| (scenario, key, value))))
        .flatten()
    {
        let logs = tempfile::tempdir().unwrap();
        let request = request(scenario, &format!("*.*.{key} = {value}"), logs.path());
        let (theirs, ours) = (
            official.check(&request, library),
            NativeLoadGen.check(&request, library),
        );
        let message = |result: &Result<(), LoadgenError>| result.as_ref().map_err(ToString::to_string).err();
        // It takes more memory: all queries are generated beforehand.
        let takes_more = |message: &String| {
            message.contains(" MiB of memory") && message.contains(&format!("{key} = {value}"))
        };
        if !message(&theirs).as_ref().is_some_and(takes_more) {
            assert_eq!(message(&theirs), message(&ours), "{scenario} {key} {value}");
        }
        let settings = match theirs {
            Ok(()) => request.resolve().unwrap().settings,
            Err(refused) => {
                // No output was written.
                let error = official
                    .run(&Null::default(), &Samples::new(64, 64), &request, &NoObserver)
                    .unwrap_err();
                assert_eq!(error.to_string(), refused.to_string());
                assert_eq!(std::fs::read_dir(logs.path()).unwrap().count(), 0);
                continue;
            }
        };
        begun += 1;
        let is_long = settings.min_duration_ms > 10 || settings.mode == Mode::FindPeakPerformance;
        if is_long || begun % ONE_IN != 0 {
            continue;
        }
        let outcome = official
            .run(&Null::default(), &Samples::new(64, 64), &request, &NoObserver)
            .unwrap();
        assert_eq!(outcome.faults, Vec::<String>::new(), "{scenario} {key} {value}");
        assert_eq!(outcome.requested, settings, "{scenario} {key} {value}");
    }
    assert!(begun > 100, "{begun}");
}
