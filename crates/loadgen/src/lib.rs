//! MLPerf LoadGen in Rust: sample for sample the official one, without MQTT, tokio or any other tie to Regatta's daemons.
//!
#![doc = include_str!("../README.md")]
//!
//! # The crate's rooms
//!
//! * [`sut`] is what a user implements, and [`load_gen`] what runs it: [`NativeLoadGen`], or the MLCommons LoadGen behind the
//!   same trait.
//! * [`request`] says what to run: conf texts as LoadGen reads them, overrides, where logs go.
//! * [`check`] refuses what cannot run, before anything is loaded.
//! * [`generate`] makes the queries that seeds decide, lazily; [`rng`] has the C++ library's random numbers.
//! * [`results`] judges latencies, from a run or from anywhere.
//! * [`memory`] says how much there is.
//! * [`timing`] keeps the thread that measures to a processor and a priority, and tells how it ran.
//! * [`outcome`] is what comes back.
//!
//! What is measured: two clock readings per query, of the monotonic clock. In the timed loop nothing is allocated for
//! recording: latencies below 65 us are counted per nanosecond, longer ones are listed with 8 bytes each, and Server
//! and Offline have one word per sample. Where this LoadGen differs from the official one stands in `docs/loadgen.md`.

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
