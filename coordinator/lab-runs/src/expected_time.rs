//! The least time of a run, by its settings. How long it really takes depends on the device's speed, which is unknown before the run.

use regatta_loadgen_conf::{Conf, ConfKind, TestSettings};
use regatta_types::{Mode, documents::RunSpec};

/// Returns the seconds for which LoadGen measures at least. `None` for accuracy runs, which take as long as their samples, and for engine
/// builds.
pub fn least_seconds(spec: &RunSpec) -> Option<u64> {
    if spec.mode == Mode::AccuracyOnly || !spec.task.is_measurement() {
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
    Some(settings.min_duration_ms.div_ceil(1_000))
}
