//! MLPerf LoadGen in Rust: sample for sample the official one, without MQTT, tokio or any other tie to Regatta's daemons.
//!
//! A load generator issues queries to a system under test ([`sut::SystemUnderTest`]) over samples of a library
//! ([`sut::QuerySampleLibrary`]) in one of four scenarios, measures the answers, judges them by MLPerf's rules, and writes
//! the official log files. [`NativeLoadGen`] does so; the MLCommons LoadGen can stand behind the same trait
//! ([`load_gen::LoadGen`]). `examples/own_sut.rs` is a whole program.
//!
//! * [`request`] says what to run: conf texts as LoadGen reads them, overrides, where logs go.
//! * [`generate`] makes the queries that seeds decide, lazily; [`rng`] has the C++ library's random numbers.
//! * [`results`] judges latencies, from a run or from anywhere.
//! * [`timing`] keeps the thread that measures to a processor and a priority, and tells how it ran.
//! * [`outcome`] is what comes back.
//!
//! What is measured: two clock readings per query, of the monotonic clock. In the timed loop nothing is allocated for
//! recording: latencies below 65 us are counted per nanosecond, longer ones are listed with 8 bytes each, and Server
//! and Offline have one word per sample. Where this LoadGen differs from the official one stands in `docs/loadgen.md`.

pub mod effective;
pub mod generate;
pub mod load_gen;
mod native;
pub mod outcome;
pub mod request;
pub mod results;
pub mod rng;
pub mod sut;
pub mod timing;

pub use native::NativeLoadGen;
