//! What tests of several packages need. It starts no processes: `tests/` does.

mod corpus;

pub use corpus::{official_answers, published_results};
