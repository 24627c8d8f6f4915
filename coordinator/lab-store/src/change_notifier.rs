//! Wakes threads that wait for changes of the store. It carries no data, because the store has the pending work. A thread that
//! misses a change looks again after a short pause.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// A handle on the notifier.
#[derive(Debug, Clone, Default)]
pub struct ChangeNotifier {
    inner: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Debug, Default)]
struct State {
    changes: u64,
    closed: bool,
}

impl ChangeNotifier {
    /// Creates a notifier without changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notifies all waiting threads of a change.
    pub fn notify(&self) {
        self.state().changes += 1;
        self.inner.1.notify_all();
    }

    /// Ends all current and future waits.
    pub fn close(&self) {
        self.state().closed = true;
        self.inner.1.notify_all();
    }

    /// Returns whether the notifier is closed.
    pub fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Returns the number of changes so far.
    pub fn changes(&self) -> u64 {
        self.state().changes
    }

    /// Waits for a change after the first `seen`, at most for `timeout`. Returns the number of changes so far, or `None` when the
    /// notifier is closed.
    pub fn wait(&self, seen: u64, timeout: Duration) -> Option<u64> {
        let waiting = |state: &mut State| state.changes == seen && !state.closed;
        let (state, _) = self
            .inner
            .1
            .wait_timeout_while(self.state(), timeout, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        (!state.closed).then_some(state.changes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is two plain values: a panic elsewhere cannot have left it half changed.
        self.inner.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_before_the_wait_is_seen() {
        let notifier = ChangeNotifier::new();
        let seen = notifier.changes();
        notifier.notify();
        assert_eq!(notifier.wait(seen, Duration::from_secs(60)), Some(1));
        assert_eq!(
            notifier.wait(1, Duration::from_millis(1)),
            Some(1),
            "the timeout ends"
        );
        notifier.close();
        assert_eq!(notifier.wait(1, Duration::from_secs(60)), None);
    }
}
