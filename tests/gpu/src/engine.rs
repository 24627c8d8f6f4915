//! Checks of TensorRT, of latency and of overhead, through `regatta-agent` as a user runs it: it builds engines, runs benchmarks with known answers,
//! and measures.

pub(crate) mod agent;
pub(crate) mod answers;
pub(crate) mod benchmark;
pub(crate) mod build;
pub(crate) mod latency;
pub(crate) mod resnet50_shaped;
pub(crate) mod speech;
pub(crate) mod trtexec;
