//! The agent's commands through its binary: exit codes, output and the files that they leave.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "this crate is test code throughout"
)]

mod bench;
mod doctor;
mod endless_files;
mod engine;
mod exec;
mod inputs;
mod lean_runtime;
#[cfg(feature = "tract")]
mod light_resnet50;
mod settings;
mod support;
mod tensorrt;
mod tune;
#[cfg(feature = "tract")]
mod waveforms;
