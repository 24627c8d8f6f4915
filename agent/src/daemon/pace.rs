//! The rate at which a live run's logs may leave the device. Counts payload bytes; what MQTT and TLS add comes on top, and
//! stands in the window's cost.

use std::time::{Duration, Instant};

/// Spaces publications out so that no more than a rate is sent, with no burst to catch up.
#[derive(Debug)]
pub(crate) struct Pace {
    bytes_per_second: u64,
    free_at: Option<Instant>,
}

impl Pace {
    /// A pace of so many bytes a second, at least one.
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Self {
            bytes_per_second: bytes_per_second.max(1),
            free_at: None,
        }
    }

    /// Whether something may be sent now.
    pub(crate) fn is_free(&self, now: Instant) -> bool {
        self.free_at.is_none_or(|at| at <= now)
    }

    /// When something may be sent again.
    pub(crate) const fn free_at(&self) -> Option<Instant> {
        self.free_at
    }

    /// So many bytes were sent.
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
        // A pause does not save anything up.
        now += Duration::from_secs(60);
        pace.spend(65_536, now);
        assert!(!pace.is_free(now + Duration::from_millis(600)));
    }
}
