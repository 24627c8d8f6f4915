//! The checks: their keys and time limits.

use std::time::Duration;

use crate::{
    driver, engine,
    outcome::{Kit, Outcome},
};

pub(crate) struct Check {
    /// A stable name, which is also used in reports.
    pub(crate) key: &'static str,
    pub(crate) title: &'static str,
    pub(crate) layer: Layer,
    pub(crate) limit: Duration,
    pub(crate) function: fn(&Kit) -> anyhow::Result<Outcome>,
}

/// The libraries that a check needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layer {
    /// Only CUDA's driver.
    Driver,
    /// CUDA's driver and TensorRT.
    TensorRt,
}

const fn driver_check(
    key: &'static str,
    title: &'static str,
    function: fn(&Kit) -> anyhow::Result<Outcome>,
) -> Check {
    Check {
        key,
        title,
        layer: Layer::Driver,
        limit: Duration::from_secs(60),
        function,
    }
}

const fn engine_check(
    key: &'static str,
    title: &'static str,
    minutes: u64,
    function: fn(&Kit) -> anyhow::Result<Outcome>,
) -> Check {
    Check {
        key,
        title,
        layer: Layer::TensorRt,
        limit: Duration::from_secs(60 * minutes),
        function,
    }
}

/// All checks, in the order in which they run.
pub(crate) const CHECKS: &[Check] = &[
    driver_check(
        "driver-facts",
        "devices and their properties",
        driver::context::facts,
    ),
    driver_check(
        "driver-context",
        "contexts are shared and bound by threads",
        driver::context::contexts,
    ),
    driver_check(
        "driver-pinned",
        "pinned memory of many sizes",
        driver::memory::pinned,
    ),
    driver_check(
        "driver-copies",
        "copies to the device and back",
        driver::memory::copies,
    ),
    driver_check(
        "driver-ranges",
        "zeros, ranges and rows on the device",
        driver::memory::ranges,
    ),
    driver_check(
        "driver-streams",
        "streams execute their work in order",
        driver::streams::order,
    ),
    driver_check(
        "driver-events",
        "events order streams and wake threads",
        driver::streams::events,
    ),
    driver_check(
        "driver-deadline",
        "waits with a time limit, streams dropped early",
        driver::streams::deadlines,
    ),
    driver_check(
        "driver-graphs",
        "graphs are captured and launched",
        driver::graphs::graphs,
    ),
    driver_check("driver-lanes", "lanes of several threads", driver::lanes::lanes),
    driver_check(
        "driver-gpus",
        "several GPUs at the same time",
        driver::lanes::gpus,
    ),
    driver_check(
        "driver-out-of-memory",
        "out of memory, and recovery",
        driver::memory::out_of_memory,
    ),
    driver_check(
        "driver-leaks",
        "repeated use leaves no memory behind",
        driver::lanes::leaks,
    ),
    engine_check(
        "engine-build",
        "an engine is built, and found again",
        10,
        engine::build::build_and_find,
    ),
    engine_check(
        "engine-precisions",
        "fp32, fp16 and calibrated INT8 keep the accuracy",
        15,
        engine::build::precisions,
    ),
    engine_check(
        "engine-scenarios",
        "right answers in each scenario and way of device use",
        15,
        engine::answers::scenarios,
    ),
    engine_check(
        "engine-graphs-direct",
        "graphs and direct host access",
        10,
        engine::answers::graphs_and_direct,
    ),
    engine_check(
        "engine-gpus",
        "several GPUs share a run",
        10,
        engine::answers::gpus,
    ),
    engine_check(
        "engine-plugins",
        "a plug-in library registers",
        10,
        engine::build::plugins,
    ),
    engine_check(
        "engine-rnnt",
        "RNN-T's networks answer as on the CPU",
        15,
        engine::speech::rnnt,
    ),
    engine_check(
        "engine-whisper",
        "Whisper's networks answer as on the CPU",
        15,
        engine::speech::whisper,
    ),
    engine_check(
        "engine-cancel",
        "Ctrl-C cancels a build",
        10,
        engine::build::cancelled,
    ),
    engine_check(
        "engine-timing-cache",
        "a timing cache speeds up a second build",
        20,
        engine::latency::timing_cache,
    ),
    engine_check(
        "latency-resnet50",
        "ResNet50's latency in SingleStream",
        20,
        engine::latency::resnet50,
    ),
    engine_check(
        "latency-trtexec",
        "the same latency beside trtexec",
        20,
        engine::latency::beside_trtexec,
    ),
    engine_check(
        "latency-overhead",
        "the harness's time per query",
        10,
        engine::latency::overhead,
    ),
];
