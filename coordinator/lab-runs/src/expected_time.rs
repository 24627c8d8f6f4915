//! The minimum and the likely duration of a run, computed from its settings. The device's real speed is unknown before the run.

use regatta_loadgen_conf::{Conf, ConfKind, TestSettings};
use regatta_types::{Mode, Scenario, documents::RunSpec};

/// Returns the seconds for which LoadGen measures at least. `None` for accuracy runs, which take as long as their samples, and for engine
/// builds.
pub fn least_seconds(spec: &RunSpec) -> Option<u64> {
    if spec.mode == Mode::AccuracyOnly {
        return None;
    }
    Some(settings(spec)?.min_duration_ms.div_ceil(1_000))
}

/// Returns the time in seconds that LoadGen measures at the rate or latency in the run's conf files: for the minimum duration, the minimum number of
/// queries, or all samples of an accuracy run. Returns `None` when the conf files contain neither, and for engine builds.
pub fn likely_seconds(spec: &RunSpec) -> Option<f64> {
    let settings = settings(spec)?;
    let samples_per_query = match spec.scenario {
        Scenario::MultiStream => settings.multi_stream_samples_per_query.max(1) as f64,
        _ => 1.0,
    };
    let seconds_per_query = match spec.scenario {
        Scenario::SingleStream => settings.single_stream_expected_latency_ns / 1e9,
        Scenario::MultiStream => settings.multi_stream_expected_latency_ns / 1e9,
        Scenario::Server => 1.0 / settings.server_target_qps,
        Scenario::Offline => 1.0 / settings.offline_expected_qps,
    };
    let queries = match spec.mode {
        Mode::AccuracyOnly => (spec.benchmark.dataset.total_samples as f64 / samples_per_query).ceil(),
        _ => settings.min_query_count as f64,
    };
    let least = match spec.mode {
        Mode::AccuracyOnly => 0.0,
        _ => settings.min_duration_ms as f64 / 1e3,
    };
    let is_expected = has_expected_rate(spec);
    Some((queries * seconds_per_query).max(least)).filter(|seconds| is_expected && seconds.is_finite())
}

/// Returns whether a conf file sets a rate or latency. LoadGen's defaults do not count.
fn has_expected_rate(spec: &RunSpec) -> bool {
    let key = match spec.scenario {
        Scenario::SingleStream | Scenario::MultiStream => "target_latency",
        Scenario::Server | Scenario::Offline => "target_qps",
    };
    spec.conf.user_conf.lines().any(|line| {
        let mut parts = line.split('=').next().unwrap_or_default().trim().rsplitn(3, '.');
        let (name, scenario) = (parts.next(), parts.next());
        name == Some(key) && scenario.is_some_and(|named| named == "*" || named == spec.scenario.as_str())
    })
}

fn settings(spec: &RunSpec) -> Option<TestSettings> {
    if !spec.task.is_measurement() {
        return None;
    }
    let mut settings = TestSettings::new(spec.scenario, spec.mode);
    for (text, kind) in [
        (&spec.conf.mlperf_conf, ConfKind::Mlperf),
        (&spec.conf.user_conf, ConfKind::User),
    ] {
        // The spec's texts were checked when the run was requested.
        let conf = Conf::parse("conf", text).ok()?;
        settings.apply(&conf, kind, &spec.benchmark.loadgen_model).ok()?;
    }
    Some(settings)
}
