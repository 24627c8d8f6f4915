//! Service times: the time that one unit takes for a batch, by batch size. Does not model queues or other units.

use serde::Deserialize;

/// Service times by batch size, in seconds. Times between two known sizes are interpolated linearly. A batch below the
/// smallest known size takes as long as that size, as in an engine with a static batch.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Vec<(usize, f64)>")]
pub struct ServiceTimes {
    /// The batch sizes and seconds: sizes ascend, times do not fall.
    points: Vec<(usize, f64)>,
}

/// The error for an invalid table of service times.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ServiceTimesError {
    /// The table is empty.
    #[error("a table of service times needs at least one batch size")]
    Empty,
    /// A size is zero, or sizes do not ascend.
    #[error("batch sizes must ascend from 1, but {0} follows {1}")]
    Order(usize, usize),
    /// A time is not a positive number.
    #[error("the time of a batch of {0} must be a positive number of seconds, but is {1}")]
    Time(usize, f64),
}

impl ServiceTimes {
    /// Creates a table from measured or assumed points of batch size and seconds.
    ///
    /// A larger batch that is faster than a smaller one gets the smaller one's time, so that times never fall.
    ///
    /// # Errors
    /// [`ServiceTimesError`] when there is no point, sizes do not ascend from 1, or a time is not positive.
    pub fn new(mut points: Vec<(usize, f64)>) -> Result<Self, ServiceTimesError> {
        if points.is_empty() {
            return Err(ServiceTimesError::Empty);
        }
        let (mut size_before, mut time_before) = (0, 0.0);
        for (size, time) in &mut points {
            if *size <= size_before {
                return Err(ServiceTimesError::Order(*size, size_before));
            }
            if !(time.is_finite() && *time > 0.0) {
                return Err(ServiceTimesError::Time(*size, *time));
            }
            *time = time.max(time_before);
            (size_before, time_before) = (*size, *time);
        }
        Ok(Self { points })
    }

    /// Returns the largest batch that the unit takes.
    #[must_use]
    pub fn max_batch(&self) -> usize {
        self.points.last().map_or(1, |&(size, _)| size)
    }

    /// Returns the seconds for a batch of `size` samples. A size above the largest counts as the largest.
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

    /// Returns the largest batch that takes at most `span` seconds, or 0.
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

    /// Returns the samples that can be computed within `span` seconds: full batches of `batch`, then the largest that fits.
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

    /// Returns the known batch size with the most samples per second; the smallest among equals.
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

    /// Returns the largest batch, unless a smaller one has a throughput that is higher by more than `share`. Times measured
    /// over a few batches do not show smaller differences.
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

    /// Returns the samples per second with the best batch.
    #[must_use]
    pub fn best_rate(&self) -> f64 {
        let best = self.best_batch();
        best as f64 / self.seconds(best)
    }

    /// Returns the table of a unit that takes no batch above `most`.
    #[must_use]
    pub fn up_to(&self, most: usize) -> Self {
        let within = self.points.iter().copied().filter(|&(size, _)| size < most);
        let largest = most.min(self.max_batch()).max(1);
        Self {
            points: within.chain([(largest, self.seconds(largest))]).collect(),
        }
    }

    /// Returns the table with every time multiplied by the positive `factor`.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let points = self.points.iter().map(|&(size, time)| (size, time * factor));
        Self {
            points: points.collect(),
        }
    }

    /// Returns the known batch sizes.
    pub fn sizes(&self) -> impl Iterator<Item = usize> {
        self.points().map(|(size, _)| size)
    }

    /// Returns the points of batch size and seconds.
    pub fn points(&self) -> impl Iterator<Item = (usize, f64)> {
        self.points.iter().copied()
    }
}

impl TryFrom<Vec<(usize, f64)>> for ServiceTimes {
    type Error = ServiceTimesError;

    fn try_from(points: Vec<(usize, f64)>) -> Result<Self, ServiceTimesError> {
        Self::new(points)
    }
}
