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
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// There is nothing to issue.
    #[error(
        "there are no samples to load; hint: give a benchmark with samples, or leave out \
         accuracy_sample_count_override and performance_sample_count_override"
    )]
    NoSamples,
    /// More samples than a position can count.
    #[error(
        "{0} samples are more than a query can hold (4294967295); hint: lower the counts, the duration or the expected rate"
    )]
    TooManySamples(u64),
    /// MultiStream with empty queries.
    #[error("samples_per_query is 0, but must be at least 1; hint: MLPerf asks for 8")]
    EmptyQuery,
    /// The expected rate cannot be a rate.
    #[error(
        "the expected rate of {0} per second cannot be scheduled; hint: set target_latency or target_qps to what the system \
         reaches"
    )]
    Rate(String),
    /// The sample to repeat is not loaded.
    #[error(
        "performance_issue_same_index is {index}, but {loaded} samples are loaded; hint: give an index at which a query can \
         begin, such as 0"
    )]
    SameIndex {
        /// What is asked for.
        index: u64,
        /// How many are loaded.
        loaded: usize,
    },
    /// Samples that may be issued once only run out.
    #[error(
        "{queries} queries are needed, but the loaded samples make only {available} distinct ones; hint: set \
         performance_issue_unique to 0, or load more samples"
    )]
    NotEnoughDistinct {
        /// Queries needed.
        queries: u64,
        /// Queries possible.
        available: usize,
    },
    /// More queries than there is memory for.
    #[error(
        "{queries} queries of {samples_per_query} samples and the loaded sets take {needed_mib} MiB of memory, but {free_mib} \
         MiB are free, of which LoadGen takes three quarters at most; hint: lower the counts, the duration or the expected rate"
    )]
    TooLarge {
        /// Queries that would be generated.
        queries: u64,
        /// Samples of each.
        samples_per_query: u64,
        /// Memory that they take.
        needed_mib: u64,
        /// Memory that is free.
        free_mib: u64,
    },
    /// The last query is due too late.
    #[error(
        "target_qps is {rate:?} per second, at which {queries} queries take over {longest_days} days; hint: set target_qps to what the \
         system reaches"
    )]
    TooLong {
        /// Queries in the schedule.
        queries: u64,
        /// Queries per second.
        rate: f64,
        /// The longest that a run may take.
        longest_days: u64,
    },
    /// Nothing would be issued.
    #[error(
        "the settings make no query at all; hint: set min_query_count to 1 or more, or samples_per_query to no more than the \
         loaded samples"
    )]
    NoQueries,
}

impl PlanError {
    /// Whether the size of the run is what is wrong.
    #[must_use]
    pub const fn is_about_size(&self) -> bool {
        matches!(self, Self::TooManySamples(_) | Self::TooLarge { .. })
    }
}
