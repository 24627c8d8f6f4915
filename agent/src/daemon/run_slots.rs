//! Bounds how many run processes several daemons in one process have at once. A daemon on a board has no such bound: it executes one run.

use std::{future::pending, sync::Arc};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots that a daemon shares with others, and the one that it holds.
#[derive(Debug, Default)]
pub(crate) struct RunSlots {
    shared: Option<Arc<Semaphore>>,
    held: Option<OwnedSemaphorePermit>,
}

impl RunSlots {
    /// Returns slots that are shared by every daemon with a clone of `shared`.
    #[cfg(feature = "simulate")]
    pub(crate) const fn shared(shared: Arc<Semaphore>) -> Self {
        Self {
            shared: Some(shared),
            held: None,
        }
    }

    /// Returns whether a run may start: the daemon holds a slot, or there is no bound.
    pub(crate) const fn may_start(&self) -> bool {
        self.shared.is_none() || self.held.is_some()
    }

    /// Waits for a slot, forever if none is needed. Cancel-safe.
    pub(crate) async fn next(&self, is_needed: bool) -> OwnedSemaphorePermit {
        match &self.shared {
            Some(shared) if is_needed && self.held.is_none() => {
                match Arc::clone(shared).acquire_owned().await {
                    Ok(slot) => slot,
                    // Nothing closes the semaphore.
                    Err(_) => pending().await,
                }
            }
            _ => pending().await,
        }
    }

    /// Holds a slot until [`Self::release`].
    pub(crate) fn hold(&mut self, slot: OwnedSemaphorePermit) {
        self.held = Some(slot);
    }

    /// Releases the slot for another daemon.
    pub(crate) fn release(&mut self) {
        self.held = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_as_many_daemons_hold_a_slot_as_there_are() {
        assert!(RunSlots::default().may_start());
        let shared = Arc::new(Semaphore::new(1));
        let [mut one, mut other] = [0, 1].map(|_| RunSlots::shared(Arc::clone(&shared)));
        assert!(!one.may_start());
        let slot = one.next(true).await;
        one.hold(slot);
        assert!(one.may_start());
        tokio::select! {
            biased;
            _ = other.next(true) => panic!("a second slot"),
            () = std::future::ready(()) => {}
        }
        one.release();
        let slot = other.next(true).await;
        other.hold(slot);
        assert!(other.may_start() && !one.may_start());
    }
}
