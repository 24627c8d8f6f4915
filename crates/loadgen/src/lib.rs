//! MLPerf LoadGen in Rust: sample for sample the official one, without MQTT, tokio or any other tie to Regatta's daemons.
//!
#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! * [`sut`] has the traits that a user implements. [`load_gen`] has the trait that runs them, for [`NativeLoadGen`] and for the MLCommons
//!   LoadGen.
//! * [`request`] describes a run: conf texts as LoadGen reads them, overrides, log settings.
//! * [`check`] rejects runs that are impossible, before anything is loaded.
//! * [`generate`] generates the queries from the seeds, lazily; [`rng`] has the C++ library's random numbers.
//! * [`results`] computes results and verdicts from latencies of any source.
//! * [`memory`] reports the available memory.
//! * [`timing`] sets processor and priority of the thread that measures, and reports how it ran.
//! * [`outcome`] is the result of a run.
//!
//! LoadGen reads the monotonic clock twice per query. Recording allocates nothing in the timed loop. Latencies below 65 us are counted per
//! nanosecond, longer ones are listed with 8 bytes each. Server and Offline have one word per sample. `docs/loadgen.md` lists the
//! differences from the official LoadGen.

pub mod check;
pub mod effective;
pub mod generate;
mod identity;
pub mod load_gen;
pub mod memory;
mod native;
pub mod outcome;
pub mod request;
pub mod results;
pub mod rng;
pub mod sut;
pub mod timing;

pub use native::NativeLoadGen;
