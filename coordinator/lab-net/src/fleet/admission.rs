//! Decides which devices may take part. The store is authoritative. This copy in memory makes checks cheap and is refreshed when the store
//! changes, so that a removal takes effect at once.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError, RwLock},
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::Context as _;
use regatta_types::DeviceId;
use tokio::sync::watch;

use regatta_lab_store::{self as store, Store, change_notifier::ChangeNotifier};

/// The interval for checking whether another process has changed the store.
const PAUSE: Duration = Duration::from_millis(200);

/// The devices that may take part.
#[derive(Debug)]
pub struct Admission {
    /// Whether a device must be enrolled. Plain connections on this machine do not require it.
    members_only: bool,
    roll: RwLock<Roll>,
    /// Held from reading the store to replacing the copy, so that concurrent refreshes cannot replace a newer copy with an older one.
    refreshing: Mutex<()>,
    changes: watch::Sender<()>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Roll {
    members: BTreeSet<DeviceId>,
    removed: BTreeSet<DeviceId>,
}

impl Admission {
    /// Reads the admitted devices from the store.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn of(store: &Store, members_only: bool) -> store::Result<Self> {
        Ok(Self {
            members_only,
            roll: RwLock::new(Roll::read(store)?),
            refreshing: Mutex::default(),
            changes: watch::Sender::new(()),
        })
    }

    /// Creates an admission that admits every device.
    #[cfg(any(test, feature = "fixtures"))]
    pub fn of_everybody() -> Self {
        Self {
            members_only: false,
            roll: RwLock::default(),
            refreshing: Mutex::default(),
            changes: watch::Sender::new(()),
        }
    }

    /// Returns whether a device may take part now.
    pub fn admits(&self, device: &DeviceId) -> bool {
        let roll = self.roll.read().unwrap_or_else(PoisonError::into_inner);
        !roll.removed.contains(device) && (!self.members_only || roll.members.contains(device))
    }

    /// Returns a receiver that is notified when devices are admitted or removed.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Reads the store again.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn refresh(&self, store: &Store) -> store::Result<()> {
        let _refreshing = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        let present = Roll::read(store)?;
        let mut roll = self.roll.write().unwrap_or_else(PoisonError::into_inner);
        if *roll != present {
            *roll = present;
            drop(roll);
            self.changes.send_replace(());
        }
        Ok(())
    }
}

impl Roll {
    fn read(store: &Store) -> store::Result<Self> {
        let mut roll = Self::default();
        for member in store.members().all()? {
            if member.removed.is_some() {
                roll.removed.insert(member.device);
            } else {
                roll.members.insert(member.device);
            }
        }
        Ok(roll)
    }
}

/// Refreshes an admission after other processes change the store, until the notifier is closed.
///
/// # Errors
/// Returns an error when the thread cannot start.
pub fn follow(
    store: Store,
    admission: std::sync::Arc<Admission>,
    notifier: ChangeNotifier,
) -> anyhow::Result<JoinHandle<()>> {
    let mut version = None;
    let follow = move || {
        let mut heard = notifier.changes();
        while let Some(count) = notifier.wait(heard, PAUSE) {
            heard = count;
            // Heartbeats change the store all the time, members rarely.
            let present = store.members().version().ok();
            if present == version && version.is_some() {
                continue;
            }
            match admission.refresh(&store) {
                Ok(()) => version = present,
                // Retried on the next check.
                Err(error) => tracing::error!("admission: {:#}", anyhow::Error::from(error)),
            }
        }
    };
    thread::Builder::new()
        .name("admission".to_owned())
        .spawn(follow)
        .context("cannot start the admission's thread")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removal_counts_at_once_and_is_notified() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("db")).unwrap();
        let device: DeviceId = "ab".repeat(16).parse().unwrap();
        let strict = Admission::of(&store, true).unwrap();
        let open = Admission::of(&store, false).unwrap();
        assert!(!strict.admits(&device) && open.admits(&device));
        let mut changes = open.changes();
        store.members().remove(&device, "boat", &[0; 32]).unwrap();
        open.refresh(&store).unwrap();
        assert!(!open.admits(&device));
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        open.refresh(&store).unwrap();
        assert!(!changes.has_changed().unwrap(), "only changes are reported");
    }

    #[test]
    fn a_concurrent_refresh_readmits_no_removed_device() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let store = Store::open(&path).unwrap();
        let admission = Admission::of(&store, false).unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let store = Store::open(&path).unwrap();
                    while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        admission.refresh(&store).unwrap();
                    }
                });
            }
            let mut let_back_in = 0;
            for number in 0_u32..60 {
                let device: DeviceId = format!("{number:032x}").parse().unwrap();
                store.members().remove(&device, "boat", &[0; 32]).unwrap();
                admission.refresh(&store).unwrap();
                let looks = (0..2000).filter(|_| admission.admits(&device)).count();
                let_back_in += usize::from(looks > 0);
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(let_back_in, 0);
        });
    }
}
