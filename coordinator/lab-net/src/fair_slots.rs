//! A bounded number of slots, shared fairly by key (a device). When none is free, the key with the most slots loses its
//! oldest, or, where holders are to stay, the newcomer gets none. The caller decides what a slot represents.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

/// The slots.
#[derive(Debug)]
pub struct FairSlots<K> {
    total: usize,
    per_key: usize,
    inner: Mutex<Inner<K>>,
}

#[derive(Debug)]
struct Inner<K> {
    next: u64,
    /// Held slots by key, oldest first. Every key has at least one slot.
    held: HashMap<K, VecDeque<HeldSlot>>,
    count: usize,
}

#[derive(Debug)]
struct HeldSlot {
    number: u64,
    evict: oneshot::Sender<()>,
}

/// A held slot. Dropping it frees the slot.
#[derive(Debug)]
pub struct Slot<K: Eq + Hash> {
    slots: Arc<FairSlots<K>>,
    key: K,
    number: u64,
}

/// Notifies the holder of a slot that it was evicted.
#[derive(Debug)]
pub struct Eviction(oneshot::Receiver<()>);

impl<K: Eq + Hash + Clone> FairSlots<K> {
    /// Creates `total` slots, at most `per_key` for one key.
    pub fn new(total: usize, per_key: usize) -> Arc<Self> {
        Arc::new(Self {
            total,
            per_key,
            inner: Mutex::new(Inner {
                next: 0,
                held: HashMap::new(),
                count: 0,
            }),
        })
    }

    /// Takes a slot, and evicts another holder if none is free.
    pub fn take(self: &Arc<Self>, key: K) -> (Slot<K>, Eviction) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.held_by(&key) >= self.per_key {
            inner.evict_oldest_of(&key);
        } else if inner.count >= self.total
            && let Some(largest_holder) = inner.largest_holder()
        {
            inner.evict_oldest_of(&largest_holder);
        }
        self.hold(inner, key)
    }

    /// Takes a slot as [`Self::take`] does, except that no other key loses the only slot that it has: the result is then `None`.
    pub fn take_surplus(self: &Arc<Self>, key: K) -> Option<(Slot<K>, Eviction)> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let own = inner.held_by(&key);
        if own >= self.per_key {
            inner.evict_oldest_of(&key);
        } else if inner.count >= self.total {
            let largest_holder = inner
                .largest_holder()
                .filter(|largest| inner.held_by(largest) > 1);
            inner.evict_oldest_of(&largest_holder.or_else(|| (own > 0).then(|| key.clone()))?);
        }
        Some(self.hold(inner, key))
    }

    fn hold(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner<K>>, key: K) -> (Slot<K>, Eviction) {
        let (evict, evicted) = oneshot::channel();
        let number = inner.next;
        inner.next += 1;
        inner.count += 1;
        inner
            .held
            .entry(key.clone())
            .or_default()
            .push_back(HeldSlot { number, evict });
        drop(inner);
        let slots = Arc::clone(self);
        (Slot { slots, key, number }, Eviction(evicted))
    }
}

impl<K: Eq + Hash + Clone> Inner<K> {
    fn held_by(&self, key: &K) -> usize {
        self.held.get(key).map_or(0, VecDeque::len)
    }

    /// Returns the key with the most slots. Of several, the one with the oldest slot.
    fn largest_holder(&self) -> Option<K> {
        let oldest = |held: &VecDeque<HeldSlot>| held.front().map_or(0, |held| held.number);
        self.held
            .iter()
            .max_by_key(|(_, held)| (held.len(), std::cmp::Reverse(oldest(held))))
            .map(|(key, _)| key.clone())
    }

    fn evict_oldest_of(&mut self, key: &K) {
        let Some(held) = self.held.get_mut(key) else {
            return;
        };
        if let Some(oldest) = held.pop_front() {
            self.count -= 1;
            // A holder that no longer listens has ended.
            let _ = oldest.evict.send(());
        }
        if held.is_empty() {
            self.held.remove(key);
        }
    }
}

impl<K: Eq + Hash> Drop for Slot<K> {
    fn drop(&mut self) {
        let mut inner = self.slots.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(held) = inner.held.get_mut(&self.key) else {
            return;
        };
        let before = held.len();
        held.retain(|held| held.number != self.number);
        let freed = before - held.len();
        if held.is_empty() {
            inner.held.remove(&self.key);
        }
        inner.count -= freed;
    }
}

impl Eviction {
    /// Waits until the slot is evicted. Never returns when the holder frees it first.
    pub async fn wait(&mut self) {
        if (&mut self.0).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_evicted(eviction: &mut Eviction) -> bool {
        eviction.0.try_recv().is_ok()
    }

    #[test]
    fn the_largest_holder_loses_its_oldest() {
        let slots = FairSlots::new(4, 4);
        let (_quiet, mut quiet_lost) = slots.take("quiet");
        let mut greedy: Vec<_> = (0..3).map(|_| slots.take("greedy")).collect();
        let (_new, mut new_lost) = slots.take("new");
        assert!(!is_evicted(&mut quiet_lost), "the first of all stays");
        let lost: Vec<bool> = greedy.iter_mut().map(|(_, lost)| is_evicted(lost)).collect();
        assert_eq!(lost, [true, false, false]);
        greedy.extend((0..100).map(|_| slots.take("greedy")));
        assert!(!is_evicted(&mut quiet_lost) && !is_evicted(&mut new_lost));
    }

    #[test]
    fn a_newcomer_gets_a_surplus_slot_and_nobodys_only_one() {
        let slots = FairSlots::new(3, 2);
        let [(_one, mut one_lost), (_again, _)] = [1, 1].map(|key| slots.take_surplus(key).unwrap());
        let (_two, mut two_lost) = slots.take_surplus(2).unwrap();
        let (_three, _) = slots.take_surplus(3).unwrap();
        assert!(is_evicted(&mut one_lost), "it had two");
        assert!(slots.take_surplus(4).is_none());
        let (_two_again, _) = slots.take_surplus(2).unwrap();
        assert!(is_evicted(&mut two_lost), "its newer connection takes its place");
        assert!(slots.take_surplus(4).is_none());
    }

    #[test]
    fn slots_are_limited_per_key_and_reused() {
        let slots = FairSlots::new(100, 2);
        let (first, mut first_lost) = slots.take(1);
        let (second, mut second_lost) = slots.take(1);
        let (_third, _) = slots.take(1);
        assert!(is_evicted(&mut first_lost) && !is_evicted(&mut second_lost));
        drop((first, second));
        let (_fourth, _) = slots.take(1);
        let inner = slots.inner.lock().unwrap();
        assert_eq!((inner.count, inner.held.len()), (2, 1));
    }

    #[tokio::test]
    async fn a_slot_that_was_freed_is_never_lost() {
        let slots = FairSlots::new(1, 1);
        let (slot, mut eviction) = slots.take(1);
        drop(slot);
        let (_other, _) = slots.take(2);
        let wait = tokio::time::timeout(std::time::Duration::from_millis(10), eviction.wait());
        assert!(wait.await.is_err());
    }
}
