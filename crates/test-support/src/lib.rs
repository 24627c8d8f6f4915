//! What tests of several packages need. It starts no processes: `tests/` does.

#![expect(clippy::unwrap_used, reason = "test code")]

mod corpus;
pub mod edit;
mod rounds;
pub mod staging;
pub mod synthetic_run;
pub mod synthetic_submission;
pub mod tree;

pub use corpus::{official_answers, published_results};
pub use rounds::round;
