//! The checker of submissions: official verdicts of each round's own checker, and a strict judgement of the same tree. Trees may come from
//! untrusted sources.
//!
//! The requirements of a round are data (`regatta_catalogue::round`). This crate does not run benchmarks, and does not change trees.

pub mod check;
pub mod files;
mod parallel;
pub mod tree;
