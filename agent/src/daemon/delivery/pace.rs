//! The rate limit for logs of a live run. It counts payload bytes. The evidence's window cost also includes the
//! overhead of MQTT and TLS.

use std::time::{Duration, Instant};

/// Spaces out publications to a rate, without bursts to catch up.
#[derive(Debug)]
pub(crate) struct Pace {
    bytes_per_second: u64,
    free_at: Option<Instant>,
}

impl Pace {
    /// Returns a limit of `bytes_per_second`, at least one.
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Self {
            bytes_per_second: bytes_per_second.max(1),
            free_at: None,
        }
    }

    /// Returns whether a publication may be sent now.
    pub(crate) fn is_free(&self, now: Instant) -> bool {
        self.free_at.is_none_or(|at| at <= now)
    }

    /// Returns the time of the next permitted publication.
    pub(crate) const fn free_at(&self) -> Option<Instant> {
        self.free_at
    }

    /// Records that `bytes` were sent.
    pub(crate) fn spend(&mut self, bytes: u64, now: Instant) {
        let takes = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        let from = self.free_at.map_or(now, |at| at.max(now));
        self.free_at = Some(from + takes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_seconds_carry_no_more_than_ten_times_the_rate() {
        let begin = Instant::now();
        let (mut pace, mut now, mut sent) = (Pace::new(100_000), begin, 0_u64);
        while now < begin + Duration::from_secs(10) {
            if pace.is_free(now) {
                sent += 65_536;
                pace.spend(65_536, now);
            }
            now += Duration::from_millis(7);
        }
        assert!((900_000..=1_000_000 + 65_536).contains(&sent), "{sent}");
        // A pause does not accumulate a budget.
        now += Duration::from_secs(60);
        pace.spend(65_536, now);
        assert!(!pace.is_free(now + Duration::from_millis(600)));
    }
}
