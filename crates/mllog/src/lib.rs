//! Reads and writes the four `mlperf_log_*` files: readers never panic, and writers follow LoadGen's format.
//!
//! The crate only knows formats. LoadGen chooses what is written and when (`regatta-loadgen`). The submission crate interprets
//! what is read.

pub mod accuracy;
pub mod detail;
pub mod format;
pub mod latency_keys;
pub mod read;
pub mod result_keys;
pub mod summary;
pub mod trace;
