//! Everything that seeds determine: loadable sets, queries and schedules.
//!
//! This module uses no clock and no SUT. Queries are computed on demand. Only shuffled orders keep their permutation in memory.

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

/// Why no queries can be generated from the settings. The official LoadGen crashes, hangs or reads beyond its arrays on these.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// There are no samples to load.
    #[error(
        "there are no samples to load; hint: give a benchmark with samples, or leave out \
         accuracy_sample_count_override and performance_sample_count_override"
    )]
    NoSamples,
    /// The number of samples exceeds the range of a position.
    #[error(
        "{0} samples are more than a query can have (4294967295); hint: lower the counts, the duration or the expected rate"
    )]
    TooManySamples(u64),
    /// MultiStream with zero samples per query.
    #[error("samples_per_query is 0, but must be at least 1; hint: MLPerf requires 8")]
    EmptyQuery,
    /// The expected rate is not a valid rate.
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
        /// The requested index.
        index: u64,
        /// Number of loaded samples.
        loaded: usize,
    },
    /// There are too few distinct samples to issue each only once.
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
    /// The queries do not fit into memory.
    #[error(
        "{queries} queries of {samples_per_query} samples and the loaded sets take {needed_mib} MiB of memory, but {free_mib} \
         MiB are free, of which LoadGen takes three quarters at most; hint: lower the counts, the duration or the expected rate"
    )]
    TooLarge {
        /// Queries that would be generated.
        queries: u64,
        /// Samples per query.
        samples_per_query: u64,
        /// Memory that the run needs.
        needed_mib: u64,
        /// Free memory.
        free_mib: u64,
    },
    /// The schedule is too long.
    #[error(
        "target_qps is {rate:?} per second, at which {queries} queries take over {longest_days} days; hint: set target_qps to a rate that the system reaches"
    )]
    TooLong {
        /// Queries in the schedule.
        queries: u64,
        /// Queries per second.
        rate: f64,
        /// The longest allowed run.
        longest_days: u64,
    },
    /// The settings generate no query.
    #[error(
        "the settings make no query; hint: set min_query_count to 1 or more, or samples_per_query to no more than the \
         loaded samples"
    )]
    NoQueries,
}

impl PlanError {
    /// Whether the size of the run is the problem.
    #[must_use]
    pub const fn is_about_size(&self) -> bool {
        matches!(self, Self::TooManySamples(_) | Self::TooLarge { .. })
    }
}
