//! Latency distributions: recorded without allocation for short latencies, read like one sorted list.

/// Latencies below this limit, in nanoseconds, are counted per nanosecond; longer ones are listed. A run with short latencies has many of
/// them. A run with longer ones has few enough to list.
const COUNTED_BELOW: usize = 1 << 16;

/// Largest number of listed latencies whose memory is reserved at the start: those of 18 minutes without a pause. Reserving only takes
/// address space; memory is used when it is written.
const MAX_RESERVED: usize = 1 << 24;

/// Records the latencies of one thread.
#[derive(Debug)]
pub struct LatencyRecorder {
    counts: Box<[u64]>,
    long: Vec<i64>,
}

impl LatencyRecorder {
    /// Bytes of a listed latency.
    pub(crate) const BYTES: u64 = size_of::<i64>() as u64;
    /// The shortest listed latency, in seconds.
    pub(crate) const MIN_LISTED_S: f64 = COUNTED_BELOW as f64 / 1e9;

    /// Creates an empty recorder for about `expected` latencies; it grows when there are more. The counters are resident.
    #[must_use]
    pub fn with_capacity(expected: u64) -> Self {
        // Writing ones and clearing them makes the pages resident before time is measured.
        let mut counts = vec![1; COUNTED_BELOW];
        counts.fill(0);
        Self {
            counts: counts.into_boxed_slice(),
            long: Vec::with_capacity(
                usize::try_from(expected)
                    .unwrap_or(MAX_RESERVED)
                    .min(MAX_RESERVED),
            ),
        }
    }

    /// Records a latency in nanoseconds.
    #[inline]
    pub fn record(&mut self, latency_ns: i64) {
        let latency_ns = latency_ns.max(0);
        match usize::try_from(latency_ns)
            .ok()
            .and_then(|index| self.counts.get_mut(index))
        {
            Some(count) => *count += 1,
            None => self.long.push(latency_ns),
        }
    }

    /// Returns the recorded distribution.
    #[must_use]
    pub fn finish(self) -> Latencies {
        let mut listed = self.long;
        listed.sort_unstable();
        Latencies::from_parts(self.counts, listed)
    }
}

/// A distribution of latencies in nanoseconds, ready to be read in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Number of occurrences of each latency, indexed by latency.
    counts: Box<[u64]>,
    /// All other latencies, sorted. None is below `counts.len()` unless `counts` is empty.
    listed: Vec<i64>,
    counted: u64,
}

impl Latencies {
    /// Creates a distribution from single values in any order.
    #[must_use]
    pub fn from_values(mut values: Vec<i64>) -> Self {
        values.sort_unstable();
        Self::from_parts(Box::default(), values)
    }

    fn from_parts(counts: Box<[u64]>, listed: Vec<i64>) -> Self {
        let counted = counts.iter().sum();
        Self {
            counts,
            listed,
            counted,
        }
    }

    /// Returns the number of latencies.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.counted + self.listed.len() as u64
    }

    /// Whether the distribution is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the latency at `rank`, counted from 0, in ascending order. Returns the largest for ranks beyond the last, and 0 for an
    /// empty distribution.
    #[must_use]
    pub fn at(&self, rank: u64) -> i64 {
        match rank.checked_sub(self.counted) {
            None => self.counted_at(rank),
            Some(listed) => {
                let listed = usize::try_from(listed).unwrap_or(usize::MAX);
                self.listed.get(listed).copied().unwrap_or_else(|| self.largest())
            }
        }
    }

    fn counted_at(&self, rank: u64) -> i64 {
        let mut below = 0;
        let latency = self.counts.iter().position(|&count| {
            below += count;
            below > rank
        });
        to_i64(latency.unwrap_or(0))
    }

    fn largest(&self) -> i64 {
        self.listed
            .last()
            .copied()
            .or_else(|| self.counts.iter().rposition(|&count| count > 0).map(to_i64))
            .unwrap_or(0)
    }

    /// Returns LoadGen's percentile: the latency at rank `len x fraction`, rounded down.
    #[must_use]
    pub fn percentile(&self, fraction: f64) -> i64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "LoadGen computes the rank in doubles and truncates"
        )]
        self.at((self.len() as f64 * fraction) as u64)
    }

    /// Returns the smallest latency.
    #[must_use]
    pub fn min(&self) -> i64 {
        self.at(0)
    }

    /// Returns the largest latency.
    #[must_use]
    pub fn max(&self) -> i64 {
        self.largest()
    }

    /// Returns the sum of all latencies.
    #[must_use]
    pub fn sum(&self) -> i64 {
        let counted = self
            .counts
            .iter()
            .zip(0_i64..)
            .map(|(&count, latency)| count.cast_signed() * latency);
        counted
            .chain(self.listed.iter().copied())
            .fold(0, i64::wrapping_add)
    }

    /// Returns the number of latencies above `limit`.
    #[must_use]
    pub fn above(&self, limit: i64) -> u64 {
        let counted = self
            .counts
            .iter()
            .zip(0_i64..)
            .filter(|&(_, latency)| latency > limit);
        let counted: u64 = counted.map(|(&count, _)| count).sum();
        counted + (self.listed.len() - self.listed.partition_point(|&latency| latency <= limit)) as u64
    }
}

/// Converts a position within `counts`, which is far below the limit of `i64`.
fn to_i64(position: usize) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Counts and list together give the sorted list of all latencies.
        #[test]
        fn a_recorder_reads_as_a_sorted_list(
            values in proptest::collection::vec(prop_oneof![0_i64..200, 65_000_i64..66_000, 0_i64..10_000_000], 1..300),
            limit in 0_i64..100_000,
        ) {
            let mut recorder = LatencyRecorder::with_capacity(0);
            values.iter().for_each(|&value| recorder.record(value));
            let (recorded, listed) = (recorder.finish(), Latencies::from_values(values.clone()));
            let mut sorted = values.clone();
            sorted.sort_unstable();
            for latencies in [&recorded, &listed] {
                prop_assert_eq!(latencies.len(), values.len() as u64);
                for (rank, &value) in (0..).zip(&sorted) {
                    prop_assert_eq!(latencies.at(rank), value);
                }
                prop_assert_eq!(latencies.sum(), values.iter().sum::<i64>());
                prop_assert_eq!(latencies.max(), *sorted.last().unwrap());
                prop_assert_eq!(latencies.above(limit), values.iter().filter(|&&v| v > limit).count() as u64);
            }
        }
    }

    #[test]
    fn latencies_without_records_are_zero() {
        let none = LatencyRecorder::with_capacity(0).finish();
        assert_eq!(
            (none.len(), none.min(), none.max(), none.percentile(0.9)),
            (0, 0, 0, 0)
        );
    }
}
