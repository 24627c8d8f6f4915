//! Test support for several packages: published results, synthetic runs and submissions, fixtures, fakes of hardware and its libraries,
//! disk faults. It starts no program of Regatta, except the state helper.

#![expect(
    clippy::unwrap_used,
    clippy::new_without_default,
    reason = "what cannot be set up fails the test that wanted it"
)]

mod at_exit;
mod corpus;
pub mod counting_allocator;
pub mod edit;
pub mod fake_tensorrt;
pub mod file_server;
pub mod fixture;
pub mod json_schema;
pub mod modelled_disk;
pub mod mosquitto;
pub mod null_sut;
pub mod official_loadgen;
pub mod oracle;
mod processes;
#[cfg(feature = "tract")]
mod random_weights;
pub mod real_tensorrt;
pub mod recorded_runs;
mod rounds;
pub mod settable_board;
#[cfg(feature = "tract")]
pub mod small_bert;
pub mod small_disk;
#[cfg(feature = "tract")]
pub mod small_resnet50;
#[cfg(feature = "tract")]
pub mod small_retinanet;
#[cfg(feature = "tract")]
pub mod small_ssd;
#[cfg(feature = "tract")]
pub mod small_unet;
#[cfg(feature = "tract")]
pub mod small_yolo;
pub mod staging;
pub mod strace;
pub mod synthetic_endpoints;
pub mod synthetic_run;
pub mod synthetic_submission;
pub mod tree;

use std::{env, path::PathBuf};

pub use corpus::{official_answers, published_results};
pub use processes::{Look, eventually, free_port};
pub use rounds::round;

/// Returns Regatta's cache directory of the user: `$XDG_CACHE_HOME/regatta`, or else `~/.cache/regatta`.
pub(crate) fn cache() -> PathBuf {
    let home = || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache");
    env::var_os("XDG_CACHE_HOME")
        .map_or_else(home, PathBuf::from)
        .join("regatta")
}
