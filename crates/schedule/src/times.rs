//! Service times: how long one unit takes for a batch of a given size. Knows nothing of queues or other units.

use serde::Deserialize;

/// Service times by batch size, in seconds. Between two known sizes the time lies on a straight line; a size below the
/// smallest known takes as long as that one, as an engine of static batch does.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Vec<(usize, f64)>")]
pub struct ServiceTimes {
    /// Batch size and seconds: sizes ascend, times do not fall.
    points: Vec<(usize, f64)>,
}

/// Why a table is none.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TimesError {
    /// Nothing to go by.
    #[error("a table of service times needs at least one batch size")]
    Empty,
    /// A size of zero, or sizes out of order.
    #[error("batch sizes must ascend from 1, but {0} follows {1}")]
    Order(usize, usize),
    /// A time that is none.
    #[error("the time of a batch of {0} must be a positive number of seconds, but is {1}")]
    Time(usize, f64),
}

impl ServiceTimes {
    /// Times from measured or assumed points: batch size and seconds.
    ///
    /// A larger batch that was measured quicker than a smaller one counts as equally long, so that times never fall.
    ///
    /// # Errors
    /// [`TimesError`] when there is no point, sizes do not ascend from 1, or a time is not positive.
    pub fn new(mut points: Vec<(usize, f64)>) -> Result<Self, TimesError> {
        if points.is_empty() {
            return Err(TimesError::Empty);
        }
        let (mut size_before, mut time_before) = (0, 0.0);
        for (size, time) in &mut points {
            if *size <= size_before {
                return Err(TimesError::Order(*size, size_before));
            }
            if !(time.is_finite() && *time > 0.0) {
                return Err(TimesError::Time(*size, *time));
            }
            *time = time.max(time_before);
            (size_before, time_before) = (*size, *time);
        }
        Ok(Self { points })
    }

    /// Largest batch that the unit takes.
    #[must_use]
    pub fn max_batch(&self) -> usize {
        self.points.last().map_or(1, |&(size, _)| size)
    }

    /// Seconds for a batch of `size` samples; a size above the largest counts as the largest.
    #[must_use]
    pub fn seconds(&self, size: usize) -> f64 {
        let after = self.points.partition_point(|&(known, _)| known < size);
        match (
            after.checked_sub(1).map(|before| self.points[before]),
            self.points.get(after),
        ) {
            (Some((low, low_time)), Some(&(high, high_time))) => {
                let share = (size - low) as f64 / (high - low) as f64;
                low_time + share * (high_time - low_time)
            }
            (_, Some(&(_, time))) | (Some((_, time)), None) => time,
            (None, None) => 0.0,
        }
    }

    /// The largest batch that takes at most `span` seconds, 0 when none does.
    #[must_use]
    pub fn largest_within(&self, span: f64) -> usize {
        let (mut fits, mut too_large) = (0, self.max_batch() + 1);
        while fits + 1 < too_large {
            let middle = fits.midpoint(too_large);
            if self.seconds(middle) <= span {
                fits = middle;
            } else {
                too_large = middle;
            }
        }
        fits
    }

    /// Samples that can be computed within `span` seconds in batches of at most `batch`: full ones, then what fits.
    #[must_use]
    pub fn capacity(&self, batch: usize, span: f64) -> usize {
        if batch == 0 || span <= 0.0 {
            return 0;
        }
        let full = self.seconds(batch);
        let rounds = (span / full).floor();
        let rest = self.largest_within(span - rounds * full).min(batch);
        (rounds as usize).saturating_mul(batch).saturating_add(rest)
    }

    /// The batch size with the most samples per second, the smallest of equals. Only known sizes are looked at.
    #[must_use]
    pub fn best_batch(&self) -> usize {
        let mut best = (1, 0.0);
        for &(size, time) in &self.points {
            let rate = size as f64 / time;
            if rate > best.1 {
                best = (size, rate);
            }
        }
        best.0
    }

    /// The largest batch, unless a smaller one does more by over `share`: times that were measured over a few batches tell
    /// no smaller difference.
    #[must_use]
    pub fn largest_good_batch(&self, share: f64) -> usize {
        let rate = |size: usize| size as f64 / self.seconds(size);
        let (best, largest) = (self.best_batch(), self.max_batch());
        if rate(best) > rate(largest) * (1.0 + share) {
            best
        } else {
            largest
        }
    }

    /// Samples per second with the best batch.
    #[must_use]
    pub fn best_rate(&self) -> f64 {
        let best = self.best_batch();
        best as f64 / self.seconds(best)
    }

    /// The table of a unit that takes no batch above `most`.
    #[must_use]
    pub fn up_to(&self, most: usize) -> Self {
        let within = self.points.iter().copied().filter(|&(size, _)| size < most);
        let largest = most.min(self.max_batch()).max(1);
        Self {
            points: within.chain([(largest, self.seconds(largest))]).collect(),
        }
    }

    /// The same table with every time multiplied; `factor` is positive.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let points = self.points.iter().map(|&(size, time)| (size, time * factor));
        Self {
            points: points.collect(),
        }
    }

    /// The sizes that the table knows.
    pub fn sizes(&self) -> impl Iterator<Item = usize> {
        self.points().map(|(size, _)| size)
    }

    /// The table: batch size and seconds.
    pub fn points(&self) -> impl Iterator<Item = (usize, f64)> {
        self.points.iter().copied()
    }
}

impl TryFrom<Vec<(usize, f64)>> for ServiceTimes {
    type Error = TimesError;

    fn try_from(points: Vec<(usize, f64)>) -> Result<Self, TimesError> {
        Self::new(points)
    }
}
