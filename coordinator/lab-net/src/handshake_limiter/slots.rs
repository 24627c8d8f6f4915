//! Slots for handshakes, and the queue before them. A network with few slots goes before one with many; within a network the order is that
//! of arrival. When the oldest has waited for long, the newest goes first: the clients of the oldest have probably given up, and their
//! handshakes would be wasted. The slots know nothing of what a handshake does.

use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
    convert::Infallible,
    net::IpAddr,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

/// The time without progress after which a handshake loses its slot to a waiting one.
pub(super) const STALLED: Duration = Duration::from_secs(1);
/// The interval in which a waiting handshake looks for stalled ones.
const CHECK: Duration = Duration::from_millis(100);
/// The most that one interval counts. It lasts longer when this process gets no processor time, and handshakes make no progress then either.
const MAX_COUNTED: Duration = Duration::from_millis(200);
/// The wait of the oldest handshake of a network from which on its newest goes first.
const LATE: Duration = Duration::from_secs(1);

/// A bounded number of slots, with a bounded queue of handshakes that wait for one.
#[derive(Debug)]
pub(super) struct HandshakeSlots {
    slots: usize,
    queue: usize,
    /// The time in milliseconds for which handshakes have waited.
    clock: Arc<AtomicU64>,
    /// Held by the waiting handshake that advances the clock and looks for stalled ones.
    watch: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    running: usize,
    waiting: usize,
    /// Each has at least one handshake.
    networks: HashMap<IpAddr, Handshakes>,
    /// The time of the clock when no handshake was stalled.
    searched_ms: Option<u64>,
}

/// The handshakes of one network, oldest first.
#[derive(Debug, Default)]
struct Handshakes {
    running: VecDeque<Running>,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Running {
    number: u64,
    /// The time of the last progress by the clock.
    progress: Arc<AtomicU64>,
    evict: oneshot::Sender<()>,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    /// The time of its arrival by the clock.
    since: u64,
    grant: oneshot::Sender<Granted>,
}

/// A handshake's slot. Dropping it frees the slot.
#[derive(Debug)]
pub struct HandshakeSlot {
    slots: Arc<HandshakeSlots>,
    network: IpAddr,
    number: u64,
}

/// Notifies the holder of a slot that it was evicted, and notes its progress.
#[derive(Debug)]
pub struct HandshakeEviction {
    evicted: oneshot::Receiver<()>,
    progress: Arc<AtomicU64>,
    clock: Arc<AtomicU64>,
}

/// The slot that a handshake waits for.
type Granted = (HandshakeSlot, HandshakeEviction);

/// Removes a handshake from the queue when its wait ends for any reason.
struct QueueEntry<'a> {
    slots: &'a HandshakeSlots,
    network: IpAddr,
    number: u64,
}

impl HandshakeSlots {
    /// Creates `slots`, with a queue for `queue` others.
    pub(super) fn new(slots: usize, queue: usize) -> Arc<Self> {
        Arc::new(Self {
            slots,
            queue,
            clock: Arc::default(),
            watch: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        })
    }

    /// Takes a slot, and waits for one if none is free. Returns `None` when the queue has become full of newer ones meanwhile.
    pub(super) async fn enter(self: &Arc<Self>, network: IpAddr) -> Option<Granted> {
        let (grant, granted) = oneshot::channel();
        let number = self.lock().append(network, self.now(), grant);
        let _entry = QueueEntry {
            slots: self,
            network,
            number,
        };
        self.assign();
        self.lock().shorten(self.queue);
        tokio::select! {
            answer = granted => answer.ok(),
            never = self.watch_stalled() => match never {},
        }
    }

    /// Advances the clock and gives the slots of stalled handshakes to waiting ones. One waiting handshake does it for all.
    async fn watch_stalled(self: &Arc<Self>) -> Infallible {
        let _watch = self.watch.lock().await;
        loop {
            let begin = Instant::now();
            sleep(CHECK).await;
            let counted = begin.elapsed().min(MAX_COUNTED);
            self.clock.fetch_add(millis(counted), Ordering::Relaxed);
            self.assign();
        }
    }

    fn now(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    /// Gives slots to waiting handshakes, as long as there are free ones or ones to evict.
    fn assign(self: &Arc<Self>) {
        while let Some((grant, granted)) = self.next_grant() {
            // Outside of the lock, because a handshake that no longer waits frees its slot here.
            drop(grant.send(granted));
        }
    }

    fn next_grant(self: &Arc<Self>) -> Option<(oneshot::Sender<Granted>, Granted)> {
        let mut state = self.lock();
        // Under the lock, so that it is never before the time of an earlier search.
        let now = self.now();
        let network = state.next_network()?;
        if state.running >= self.slots {
            let (victim, number) = state.victim(network, now)?;
            if let Some(evicted) = state.remove_running(victim, number) {
                // A holder that no longer listens has ended.
                let _ = evicted.evict.send(());
            }
        }
        let handshakes = state.networks.get_mut(&network)?;
        let Waiting { number, grant, .. } = handshakes.take_next(now)?;
        let progress = Arc::new(AtomicU64::new(now));
        let (evict, evicted) = oneshot::channel();
        handshakes.running.push_back(Running {
            number,
            progress: Arc::clone(&progress),
            evict,
        });
        state.waiting -= 1;
        state.running += 1;
        drop(state);
        let eviction = HandshakeEviction {
            evicted,
            progress,
            clock: Arc::clone(&self.clock),
        };
        let slot = HandshakeSlot {
            slots: Arc::clone(self),
            network,
            number,
        };
        Some((grant, (slot, eviction)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handshakes {
    /// Removes and returns the waiting handshake that gets the next slot.
    fn take_next(&mut self, now: u64) -> Option<Waiting> {
        let waited = now.saturating_sub(self.waiting.front()?.since);
        if waited >= millis(LATE) {
            self.waiting.pop_back()
        } else {
            self.waiting.pop_front()
        }
    }
}

impl State {
    fn append(&mut self, network: IpAddr, since: u64, grant: oneshot::Sender<Granted>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.waiting += 1;
        let handshakes = self.networks.entry(network).or_default();
        handshakes.waiting.push_back(Waiting { number, since, grant });
        number
    }

    /// Refuses the oldest handshakes of the networks with the longest queues until `most` wait. A newcomer therefore always gets a place
    /// in the queue, also behind a flood of silent connections.
    fn shorten(&mut self, most: usize) {
        while self.waiting > most {
            let oldest = |handshakes: &Handshakes| handshakes.waiting.front().map(|waiting| waiting.number);
            let longest = self
                .networks
                .iter()
                .max_by_key(|(_, handshakes)| (handshakes.waiting.len(), Reverse(oldest(handshakes))));
            let Some((&network, number)) = longest.map(|(network, handshakes)| (network, oldest(handshakes)))
            else {
                return;
            };
            let Some(number) = number else { return };
            self.remove_waiting(network, number);
        }
    }

    /// Returns the network whose oldest waiting handshake gets the next slot: the one with the fewest slots. Of several, the one that waits
    /// longest.
    fn next_network(&self) -> Option<IpAddr> {
        let first = |handshakes: &Handshakes| handshakes.waiting.front().map(|waiting| waiting.number);
        self.networks
            .iter()
            .filter(|(_, handshakes)| !handshakes.waiting.is_empty())
            .min_by_key(|(_, handshakes)| (handshakes.running.len(), first(handshakes)))
            .map(|(network, _)| *network)
    }

    /// Returns the handshake that loses its slot to one of `network`, if there is one: a stalled one of the network with the most slots.
    /// Otherwise it is the newest one of a network that has at least two slots more. An old handshake that makes progress always continues.
    fn victim(&mut self, network: IpAddr, now: u64) -> Option<(IpAddr, u64)> {
        if let Some(stalled) = self.stalled(now) {
            return Some(stalled);
        }
        let own = self
            .networks
            .get(&network)
            .map_or(0, |handshakes| handshakes.running.len());
        let (&largest, handshakes) = self
            .networks
            .iter()
            .max_by_key(|(_, other)| other.running.len())?;
        let newest = handshakes.running.back()?;
        (handshakes.running.len() > own + 1).then_some((largest, newest.number))
    }

    fn stalled(&mut self, now: u64) -> Option<(IpAddr, u64)> {
        if self
            .searched_ms
            .is_some_and(|then| now.saturating_sub(then) < millis(CHECK))
        {
            return None;
        }
        let is_stalled = |running: &&Running| {
            let idle = now.saturating_sub(running.progress.load(Ordering::Relaxed));
            idle >= millis(STALLED)
        };
        let found = self
            .networks
            .iter()
            .filter_map(|(network, handshakes)| {
                let stalled = handshakes.running.iter().find(is_stalled)?;
                Some((handshakes.running.len(), *network, stalled.number))
            })
            .max()
            .map(|(_, network, number)| (network, number));
        // Others may be stalled, too.
        self.searched_ms = if found.is_none() { Some(now) } else { None };
        found
    }

    fn remove_running(&mut self, network: IpAddr, number: u64) -> Option<Running> {
        let running = &mut self.networks.get_mut(&network)?.running;
        let position = running.iter().position(|slot| slot.number == number)?;
        let removed = running.remove(position);
        self.running -= 1;
        self.forget_if_empty(network);
        removed
    }

    fn remove_waiting(&mut self, network: IpAddr, number: u64) {
        let Some(handshakes) = self.networks.get_mut(&network) else {
            return;
        };
        let before = handshakes.waiting.len();
        handshakes.waiting.retain(|waiting| waiting.number != number);
        self.waiting -= before - handshakes.waiting.len();
        self.forget_if_empty(network);
    }

    fn forget_if_empty(&mut self, network: IpAddr) {
        let is_empty =
            |handshakes: &Handshakes| handshakes.running.is_empty() && handshakes.waiting.is_empty();
        if self.networks.get(&network).is_some_and(is_empty) {
            self.networks.remove(&network);
        }
    }
}

impl HandshakeSlot {
    /// Frees the slot. Returns `false` when the slot was evicted before. Only one of both happens.
    pub fn free(self) -> bool {
        self.give_back()
    }

    fn give_back(&self) -> bool {
        let removed = self.slots.lock().remove_running(self.network, self.number);
        let freed = removed.is_some();
        if freed {
            self.slots.assign();
        }
        freed
    }
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Drop for QueueEntry<'_> {
    fn drop(&mut self) {
        self.slots.lock().remove_waiting(self.network, self.number);
    }
}

impl HandshakeEviction {
    /// Runs the handshake `work` until it ends or is evicted, which is `None`. Each poll is progress: its task is polled when bytes of the
    /// client arrive.
    pub async fn or<T>(mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let progressing = std::future::poll_fn(|context| {
            let now = self.clock.load(Ordering::Relaxed);
            self.progress.store(now, Ordering::Relaxed);
            work.as_mut().poll(context)
        });
        tokio::select! {
            done = progressing => Some(done),
            Ok(()) = &mut self.evicted => None,
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
