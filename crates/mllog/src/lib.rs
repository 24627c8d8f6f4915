//! The four `mlperf_log_*` files: read without ever panicking, written as LoadGen writes them.
//!
//! The crate knows formats only. What is written, and when, is LoadGen's business (`regatta-loadgen`); what follows
//! from what is read is the submission crate's.

pub mod accuracy;
pub mod detail;
pub mod format;
pub mod latency_keys;
pub mod read;
pub mod summary;
pub mod trace;
