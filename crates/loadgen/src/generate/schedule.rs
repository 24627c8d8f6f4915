//! Due times of queries, and the number of queries that a duration needs.

use super::PlanError;
use crate::rng::{Mt19937, exponential};

const NS_PER_S: f64 = 1e9;

/// The intervals between queries.
#[derive(Debug, Clone)]
pub(super) enum Gaps {
    /// Constant: in all scenarios except Server, where it only determines the number of queries.
    Even(i64),
    /// Poisson arrivals.
    Poisson {
        /// The schedule generator.
        generator: Mt19937,
        /// Queries per second.
        rate: f64,
    },
}

impl Gaps {
    pub(super) fn even(rate: f64) -> Result<Self, PlanError> {
        let gap = to_ns(1.0 / rate);
        if rate.is_nan() || rate < 0.0 || gap <= 0 {
            return Err(PlanError::Rate(rate.to_string()));
        }
        Ok(Self::Even(gap))
    }

    pub(super) fn poisson(seed: u64, rate: f64) -> Result<Self, PlanError> {
        if !(rate > 0.0 && rate < NS_PER_S) {
            return Err(PlanError::Rate(rate.to_string()));
        }
        let generator = Mt19937::new(seed);
        Ok(Self::Poisson { generator, rate })
    }

    #[inline]
    pub(super) fn next(&mut self) -> i64 {
        match self {
            Self::Even(gap) => *gap,
            Self::Poisson { generator, rate } => to_ns(exponential(generator, *rate)),
        }
    }
}

/// The number of queries and the end of the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) queries: u64,
    pub(super) end_ns: i64,
}

/// The bounds that determine the number of queries.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueryTarget {
    /// Queries are generated until one is due at or after this time.
    pub(super) duration_ns: i64,
    /// Minimum number of queries.
    pub(super) minimum: u64,
    /// Equal issue: the number grows by the size of a set until the duration is reached.
    pub(super) step: Option<u64>,
}

impl QueryTarget {
    pub(super) fn extent(&self, gaps: &Gaps) -> Extent {
        match gaps {
            Gaps::Even(gap) => self.extent_even(*gap),
            Gaps::Poisson { .. } => self.extent_drawn(gaps.clone()),
        }
    }

    /// Queries are due at 0, gap, 2 gap ...; the first that is due at or after the duration is the last.
    fn extent_even(&self, gap: i64) -> Extent {
        let needed = if self.duration_ns > 0 {
            (self.duration_ns.cast_unsigned()).div_ceil(gap.cast_unsigned()) + 1
        } else {
            0
        };
        let queries = match self.step {
            None => self.minimum.max(needed),
            Some(_) if needed == 0 => self.minimum,
            Some(step) => {
                let first = if self.minimum == 0 { step } else { self.minimum };
                first + needed.saturating_sub(first).div_ceil(step) * step
            }
        };
        let end_ns = i64::try_from(i128::from(queries) * i128::from(gap)).unwrap_or(i64::MAX);
        Extent { queries, end_ns }
    }

    fn extent_drawn(&self, mut gaps: Gaps) -> Extent {
        let (mut queries, mut minimum, mut due, mut next_due) = (0, self.minimum, 0, 0);
        while due < self.duration_ns || queries < minimum {
            queries += 1;
            due = next_due;
            // A tiny rate gives gaps of up to `i64::MAX`.
            next_due = i64::saturating_add(next_due, gaps.next());
            if let Some(step) = self.step
                && queries >= minimum
                && due < self.duration_ns
            {
                minimum += step;
            }
        }
        Extent {
            queries,
            end_ns: next_due,
        }
    }
}

/// Truncates to whole nanoseconds, as `duration_cast` does.
#[expect(clippy::cast_possible_truncation, reason = "truncation is what LoadGen does")]
fn to_ns(seconds: f64) -> i64 {
    (seconds * NS_PER_S) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tiny_rate_ends_at_the_last_nanosecond() {
        let target = QueryTarget {
            duration_ns: 1_000,
            minimum: 3,
            step: None,
        };
        let extent = target.extent(&Gaps::poisson(1, 1e-300).unwrap());
        assert_eq!((extent.queries, extent.end_ns), (3, i64::MAX));
    }

    proptest::proptest! {
        /// Compares the closed form for constant intervals with LoadGen's loop.
        #[test]
        fn even_extent_is_that_of_the_loop(
            gap in 1_i64..50,
            duration_ns in 0_i64..2000,
            minimum in 0_u64..100,
            step in proptest::option::of(1_u64..40),
        ) {
            let target = QueryTarget { duration_ns, minimum, step };
            proptest::prop_assert_eq!(target.extent_even(gap), target.extent_drawn(Gaps::Even(gap)));
        }
    }
}
