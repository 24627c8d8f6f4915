//! Token buckets, one per key, with a burst and a rate per second. A caller either waits for a token or goes without.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The maximum number of buckets. Beyond it, full buckets are dropped, and the fullest ones if that is not enough.
const KEYS: usize = 4096;
/// The number of the fullest buckets to drop at once, so that not every newcomer causes a search of all buckets.
const DROPPED: usize = KEYS / 8;

/// A rate limit.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// The number of tokens in a full bucket.
    pub burst: u32,
    /// The number of tokens added per second.
    pub per_second: f64,
}

/// A bucket for each key.
#[derive(Debug)]
pub struct TokenBuckets<K> {
    rate: Rate,
    buckets: Mutex<HashMap<K, Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    /// The number of tokens. A negative number counts tokens promised to waiting callers.
    level: f64,
    updated: Instant,
}

impl<K: Eq + Hash> TokenBuckets<K> {
    /// Creates full buckets.
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            buckets: Mutex::default(),
        }
    }

    /// Takes a token if there is one. Returns whether it did.
    pub fn try_take(&self, key: K) -> bool {
        self.change(key, Instant::now(), |level| {
            let has_one = *level >= 1.0;
            if has_one {
                *level -= 1.0;
            }
            has_one
        })
    }

    /// Puts a token back that was taken for nothing.
    pub fn put_back(&self, key: K) {
        let most = f64::from(self.rate.burst);
        self.change(key, Instant::now(), |level| *level = (*level + 1.0).min(most));
    }

    /// Takes a token, and waits until it is available.
    pub async fn take(&self, key: K) {
        let wait = self.reserve(key, Instant::now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    /// Takes a token and returns the time until it is available.
    fn reserve(&self, key: K, now: Instant) -> Duration {
        let missing = self.change(key, now, |level| {
            *level -= 1.0;
            -*level
        });
        Duration::try_from_secs_f64(missing.max(0.0) / self.rate.per_second).unwrap_or(Duration::MAX)
    }

    fn change<R>(&self, key: K, now: Instant, change: impl FnOnce(&mut f64) -> R) -> R {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= KEYS && !buckets.contains_key(&key) {
            self.drop_least_limited(&mut buckets, now);
        }
        let bucket = buckets.entry(key).or_insert(Bucket {
            level: f64::from(self.rate.burst),
            updated: now,
        });
        bucket.level = bucket.refilled(self.rate, now);
        bucket.updated = now;
        change(&mut bucket.level)
    }

    /// Drops the buckets that limit nobody, or those that limit least. During a flood of new keys, the empty buckets of other keys are kept.
    fn drop_least_limited(&self, buckets: &mut HashMap<K, Bucket>, now: Instant) {
        let rate = self.rate;
        buckets.retain(|_, bucket| bucket.refilled(rate, now) < f64::from(rate.burst));
        if buckets.len() < KEYS {
            return;
        }
        let mut levels: Vec<f64> = buckets
            .values()
            .map(|bucket| bucket.refilled(rate, now))
            .collect();
        let (_, lowest_dropped, _) = levels.select_nth_unstable_by(DROPPED - 1, |a, b| b.total_cmp(a));
        let (lowest_dropped, mut left) = (*lowest_dropped, DROPPED);
        buckets.retain(|_, bucket| {
            let is_dropped = left > 0 && bucket.refilled(rate, now) >= lowest_dropped;
            left -= usize::from(is_dropped);
            !is_dropped
        });
    }
}

impl Bucket {
    fn refilled(&self, rate: Rate, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.updated).as_secs_f64();
        (since.mul_add(rate.per_second, self.level)).min(f64::from(rate.burst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate {
        burst: 3,
        per_second: 10.0,
    };

    #[test]
    fn a_burst_is_free_and_the_rest_comes_at_the_rate() {
        let buckets = TokenBuckets::new(RATE);
        let now = Instant::now();
        let waits: Vec<u128> = (0..6).map(|_| buckets.reserve("a", now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200, 300]);
        assert_eq!(buckets.reserve("b", now), Duration::ZERO, "another has its own");
        let later = now + Duration::from_secs(60);
        assert_eq!(buckets.reserve("a", later), Duration::ZERO, "it fills again");
    }

    #[test]
    fn client_that_does_not_wait_gets_the_present_state() {
        let buckets = TokenBuckets::new(RATE);
        assert_eq!((0..10).filter(|_| buckets.try_take(1)).count(), 3);
    }

    #[test]
    fn returned_tokens_are_reusable_and_not_multiplied() {
        let buckets = TokenBuckets::new(Rate {
            burst: 3,
            per_second: 0.001,
        });
        for _ in 0..10 {
            assert!(buckets.try_take(1));
            buckets.put_back(1);
        }
        buckets.put_back(1);
        assert_eq!((0..10).filter(|_| buckets.try_take(1)).count(), 3);
    }

    #[test]
    fn ever_new_keys_do_not_fill_the_memory() {
        let buckets = TokenBuckets::new(RATE);
        for key in 0..3 * KEYS {
            buckets.try_take(key);
        }
        assert!(buckets.buckets.lock().unwrap().len() <= KEYS);
    }

    /// Otherwise, a client with many addresses could remove every limit, including those of other clients.
    #[test]
    fn flood_of_new_keys_resets_no_empty_bucket() {
        let buckets = TokenBuckets::new(Rate {
            burst: 3,
            per_second: 0.001,
        });
        let limited = 0..100;
        for key in limited.clone() {
            while buckets.try_take(key) {}
        }
        for key in 0..3 * KEYS {
            buckets.try_take(limited.end + key);
        }
        let reset = limited.filter(|key| buckets.try_take(*key)).count();
        assert_eq!(reset, 0, "buckets that are full again");
        assert!(buckets.buckets.lock().unwrap().len() <= KEYS);
    }
}
