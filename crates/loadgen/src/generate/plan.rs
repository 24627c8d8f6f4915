//! The queries of one pass over a loaded set: their number, samples and due times.

use regatta_types::Scenario;

use super::{
    LoadableSet, OfflineSamples, PlanError,
    order::{Order, Permutations, from_u64, identity},
    schedule::{Gaps, QueryTarget},
};
use crate::{
    effective::EffectiveSettings,
    rng::{Mt19937, RngAbi},
};

/// The purpose of a pass over a loaded set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Every sample once.
    Accuracy,
    /// The measurement.
    Performance,
}

/// The plan of a pass, whose queries are not generated yet.
#[derive(Debug, Clone)]
pub struct QueryPlan<'a> {
    /// Largest number of queries.
    pub queries: u64,
    /// Samples per query.
    pub samples_per_query: usize,
    /// The time at which a query after the last would be due, ns.
    pub duration_ns: i64,
    settings: &'a EffectiveSettings,
    set: &'a LoadableSet,
    pass: Pass,
    abi: RngAbi,
    gaps: Gaps,
    /// Number of queries that the equal-issue permutations are made for.
    permuted: u64,
}

impl<'a> QueryPlan<'a> {
    /// Plans a pass.
    ///
    /// # Errors
    /// When no queries can be generated from the settings and the set.
    pub fn new(
        settings: &'a EffectiveSettings,
        set: &'a LoadableSet,
        pass: Pass,
        abi: RngAbi,
    ) -> Result<Self, PlanError> {
        let scenario = settings.scenario;
        let loaded = set.samples.len() as u64;
        let whole_set = pass == Pass::Accuracy || settings.performance_issue_unique;
        let mut samples_per_query = match (pass, scenario) {
            (Pass::Accuracy, Scenario::Offline) => set.distinct as u64,
            _ => settings.samples_per_query,
        };
        if samples_per_query == 0 {
            return Err(PlanError::EmptyQuery);
        }
        let duration_ns = if whole_set {
            0
        } else {
            generated_duration_ns(settings)
        };
        let mut minimum = if whole_set {
            loaded / samples_per_query
        } else {
            settings.min_query_count
        };
        let permuted = minimum;

        let equal_issue = settings.sample_concatenate_permutation;
        if pass == Pass::Performance && equal_issue {
            let padded = if scenario == Scenario::Offline {
                &mut samples_per_query
            } else {
                &mut minimum
            };
            *padded = padded
                .checked_next_multiple_of(loaded)
                .ok_or(PlanError::TooManySamples(u64::MAX))?;
        }
        let gaps = match scenario {
            Scenario::Server => Gaps::poisson(settings.schedule_rng_seed, settings.target_qps)?,
            _ => Gaps::even(settings.target_qps)?,
        };
        let step = (equal_issue && scenario != Scenario::Offline).then_some(loaded);
        let extent = QueryTarget {
            duration_ns,
            minimum,
            step,
        }
        .extent(&gaps);
        let plan = Self {
            queries: extent.queries,
            samples_per_query: u32::try_from(samples_per_query)
                .map_err(|_| PlanError::TooManySamples(samples_per_query))?
                as usize,
            duration_ns: extent.end_ns,
            settings,
            set,
            pass,
            abi,
            gaps,
            permuted,
        };
        plan.check()?;
        Ok(plan)
    }

    /// Returns the total number of samples of all queries.
    #[must_use]
    pub const fn samples(&self) -> u64 {
        self.queries.saturating_mul(self.samples_per_query as u64)
    }

    fn check(&self) -> Result<(), PlanError> {
        let settings = self.settings;
        if self.queries == 0 {
            return Err(PlanError::NoQueries);
        }
        let contiguous = if settings.scenario == Scenario::MultiStream {
            self.samples_per_query
        } else {
            1
        };
        let last_start = self
            .set
            .samples
            .len()
            .checked_sub(contiguous)
            .ok_or(PlanError::NoSamples)?;
        if settings.performance_issue_same
            && !(settings.performance_issue_unique && settings.scenario != Scenario::Offline)
            && settings.performance_issue_same_index > last_start as u64
        {
            let (index, loaded) = (settings.performance_issue_same_index, self.set.samples.len());
            return Err(PlanError::SameIndex { index, loaded });
        }
        let available = self.set.distinct.div_ceil(self.stride());
        if self.issues_each_once() && self.queries > available as u64 {
            return Err(PlanError::NotEnoughDistinct {
                queries: self.queries,
                available,
            });
        }
        if self.uses_permutations() && self.permuted == 0 {
            return Err(PlanError::NoQueries);
        }
        Ok(())
    }

    /// Returns the distance between shuffled positions. MultiStream shuffles the first positions of its queries, the other scenarios every
    /// position.
    const fn stride(&self) -> usize {
        match self.settings.scenario {
            Scenario::MultiStream => self.samples_per_query,
            _ => 1,
        }
    }

    fn uses_permutations(&self) -> bool {
        let settings = self.settings;
        settings.sample_concatenate_permutation
            && matches!(settings.scenario, Scenario::SingleStream | Scenario::Server)
            && !settings.performance_issue_unique
            && !settings.performance_issue_same
    }

    fn issues_each_once(&self) -> bool {
        let settings = self.settings;
        settings.scenario != Scenario::Offline
            && (settings.performance_issue_unique
                || (self.pass == Pass::Accuracy
                    && !settings.performance_issue_same
                    && !self.uses_permutations()))
    }

    /// Returns the generator of the queries of SingleStream, MultiStream and Server.
    #[must_use]
    pub fn source(&self) -> QuerySource<'a> {
        QuerySource {
            set: &self.set.samples,
            order: self.order(),
            gaps: self.gaps.clone(),
            next_due_ns: 0,
            remaining: self.queries,
            samples_per_query: self.samples_per_query,
        }
    }

    /// Returns the samples of Offline's query.
    #[must_use]
    pub fn offline_samples(&self) -> OfflineSamples<'a> {
        let mut generator = Mt19937::new(self.settings.sample_index_rng_seed);
        self.skip_orders(&mut generator);
        OfflineSamples::new(
            self.settings,
            self.set,
            self.samples_per_query,
            self.abi,
            &mut generator,
        )
    }

    /// Returns the order of positions. LoadGen prepares three orders in sequence from one generator, and then uses one of them. They are a
    /// permutation in an accuracy pass, a permutation for unique issue, and permutations for equal issue.
    fn order(&self) -> Order {
        let settings = self.settings;
        let mut generator = Mt19937::new(settings.sample_index_rng_seed);
        if settings.performance_issue_unique {
            if self.pass == Pass::Accuracy {
                self.abi.skip_shuffle(self.starts(), &mut generator);
            }
            self.once(&mut generator)
        } else if settings.performance_issue_same {
            Order::Same(from_u64(settings.performance_issue_same_index))
        } else if self.uses_permutations() {
            self.skip_single_permutations(&mut generator);
            let length = self.set.samples.len();
            Order::Permutations(Permutations::new(
                self.abi,
                generator,
                length,
                self.permutations(),
            ))
        } else if self.pass == Pass::Accuracy {
            self.once(&mut generator)
        } else {
            self.skip_orders(&mut generator);
            Order::Uniform {
                generator,
                bound: self.set.distinct as u64,
                abi: self.abi,
            }
        }
    }

    fn once(&self, generator: &mut Mt19937) -> Order {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "loadable sets hold less than 2^32 samples"
        )]
        let stride = self.stride() as u32;
        let mut positions: Vec<u32> = identity(self.starts()).into_iter().map(|p| p * stride).collect();
        self.abi.shuffle(&mut positions, generator);
        Order::Once { positions, next: 0 }
    }

    /// Returns the number of positions at which a query may begin when each is issued once.
    const fn starts(&self) -> usize {
        self.set.distinct.div_ceil(self.stride())
    }

    const fn permutations(&self) -> u64 {
        self.permuted.div_ceil(self.set.samples.len() as u64)
    }

    fn skip_single_permutations(&self, generator: &mut Mt19937) {
        if self.pass == Pass::Accuracy {
            self.abi.skip_shuffle(self.starts(), generator);
        }
        self.abi.skip_shuffle(self.starts(), generator);
    }

    /// Advances `generator` past all three orders.
    fn skip_orders(&self, generator: &mut Mt19937) {
        self.skip_single_permutations(generator);
        for _ in 0..self.permutations() {
            self.abi.skip_shuffle(self.set.samples.len(), generator);
        }
    }
}

/// Returns the duration for which LoadGen generates queries: twice the target duration when the SUT determines the pace.
fn generated_duration_ns(settings: &EffectiveSettings) -> i64 {
    let times = if settings.scenario == Scenario::Server {
        1
    } else {
        2
    };
    settings.target_duration_ms.saturating_mul(times * 1_000_000)
}

/// Generates queries one by one.
#[derive(Debug, Clone)]
pub struct QuerySource<'a> {
    set: &'a [usize],
    order: Order,
    gaps: Gaps,
    next_due_ns: i64,
    remaining: u64,
    samples_per_query: usize,
}

impl<'a> QuerySource<'a> {
    /// Returns the next query: its samples' library indices, and its due time in nanoseconds after the start.
    #[inline]
    pub fn next_query(&mut self) -> Option<(&'a [usize], i64)> {
        self.remaining = self.remaining.checked_sub(1)?;
        let start = self.order.next();
        let due_ns = self.next_due_ns;
        self.next_due_ns = self.next_due_ns.saturating_add(self.gaps.next());
        Some((&self.set[start..start + self.samples_per_query], due_ns))
    }
}
