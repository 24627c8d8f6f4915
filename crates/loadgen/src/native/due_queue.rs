//! One issuing thread's share of a Server schedule, generated slightly ahead so that one wake-up can serve several queries. It reads no
//! clock and waits for nothing.

use std::collections::VecDeque;

/// A query of one sample, with its due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    /// Position of the sample in the series.
    pub(super) position: usize,
    /// Library index of the sample.
    pub(super) index: usize,
    /// Due time in nanoseconds after the start. Never before that of the previous query.
    pub(super) due_ns: i64,
}

/// Largest number of queries that are generated ahead. It bounds memory at any rate.
const MAX_AHEAD: usize = 64;

/// Queries in the order of their due times.
pub(super) struct DueQueue<I> {
    source: I,
    ahead: VecDeque<Due>,
}

impl<I: Iterator<Item = Due>> DueQueue<I> {
    pub(super) fn new(source: I) -> Self {
        Self {
            source,
            ahead: VecDeque::with_capacity(MAX_AHEAD),
        }
    }

    /// Takes the next query.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Due> {
        self.ahead.pop_front().or_else(|| self.source.next())
    }

    /// Takes the next query if it is due by `time_ns`.
    #[inline]
    pub(super) fn next_due_by(&mut self, time_ns: i64) -> Option<Due> {
        self.fill_one();
        self.ahead.pop_front_if(|next| next.due_ns <= time_ns)
    }

    /// Returns the due time of the last query that is due by `time_ns`; `None` if the next one is due later.
    pub(super) fn last_due_by(&mut self, time_ns: i64) -> Option<i64> {
        self.fill_one();
        while let Some(last) = self.ahead.back()
            && last.due_ns <= time_ns
            && self.ahead.len() < MAX_AHEAD
        {
            let Some(due) = self.source.next() else { break };
            self.ahead.push_back(due);
        }
        let within = self.ahead.partition_point(|due| due.due_ns <= time_ns);
        Some(self.ahead[within.checked_sub(1)?].due_ns)
    }

    fn fill_one(&mut self) {
        if self.ahead.is_empty() {
            self.ahead.extend(self.source.next());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dues(gaps: &[i64]) -> Vec<Due> {
        let mut due_ns = 0;
        let due = |(position, gap): (usize, &i64)| {
            due_ns += gap;
            Due {
                position,
                index: position,
                due_ns,
            }
        };
        gaps.iter().enumerate().map(due).collect()
    }

    proptest! {
        /// Looking ahead, at any point and by any distance, neither loses, repeats nor reorders queries.
        #[test]
        fn looking_ahead_changes_no_order(
            gaps in proptest::collection::vec(0_i64..5, 0..200),
            looks in proptest::collection::vec((0_u8..3, 0_i64..300), 0..400),
        ) {
            let all = dues(&gaps);
            let mut queue = DueQueue::new(all.iter().copied());
            let mut taken = 0;
            for (what, span) in looks {
                let rest = &all[taken..];
                let now = rest.first().map_or(0, |next| next.due_ns) + span - 20;
                match what {
                    0 => {
                        prop_assert_eq!(queue.next(), rest.first().copied());
                        taken += usize::from(!rest.is_empty());
                    }
                    1 => {
                        let due = rest.first().copied().filter(|next| next.due_ns <= now);
                        prop_assert_eq!(queue.next_due_by(now), due);
                        taken += usize::from(due.is_some());
                    }
                    _ => {
                        let within = rest.iter().take(MAX_AHEAD).take_while(|due| due.due_ns <= now);
                        prop_assert_eq!(queue.last_due_by(now), within.last().map(|due| due.due_ns));
                    }
                }
            }
        }
    }
}
