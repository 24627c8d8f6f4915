//! Which samples are loaded together, which queries are made of them, and when: everything that seeds decide.
//!
//! Nothing here touches a clock or a SUT. Queries are computed as they are asked for; only orders that are a shuffle
//! hold their permutation.

mod accuracy_draws;
mod loadable_set;
mod offline;
mod order;
mod plan;
mod schedule;

pub use accuracy_draws::{AccuracyChoice, AccuracyDraws};
pub use loadable_set::{LoadableSet, loadable_sets};
pub use offline::OfflineSamples;
pub use plan::{Pass, QueryPlan, QuerySource};

/// Why no queries can be made of settings. The official LoadGen crashes, hangs or reads beyond its arrays on these.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// There is nothing to issue.
    #[error("the library has no samples")]
    NoSamples,
    /// More samples than a position can count.
    #[error("{0} samples are more than a run can hold (4294967295)")]
    TooManySamples(u64),
    /// MultiStream with empty queries.
    #[error("samples_per_query is 0")]
    EmptyQuery,
    /// The expected rate cannot be a rate.
    #[error(
        "the expected rate of {0} per second cannot be scheduled; set target_latency or target_qps to a positive number"
    )]
    Rate(String),
    /// The sample to repeat is not loaded.
    #[error("performance_issue_same_index is {index}, but only {loaded} samples are loaded")]
    SameIndex {
        /// What is asked for.
        index: u64,
        /// How many are loaded.
        loaded: usize,
    },
    /// Samples that may be issued once only run out.
    #[error(
        "{queries} queries are needed, but only {available} distinct ones can be made of the loaded samples"
    )]
    NotEnoughDistinct {
        /// Queries needed.
        queries: u64,
        /// Queries possible.
        available: usize,
    },
    /// Nothing would be issued.
    #[error(
        "the settings make no query at all: the minimum query count, the minimum duration and the loaded samples must allow one"
    )]
    NoQueries,
}
