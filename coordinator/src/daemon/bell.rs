//! A bell between threads: whoever changed the store rings it, whoever waits for work hears it. It carries nothing,
//! because the store says what there is to do; a ring that is missed costs a short pause.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// A handle on the bell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bell {
    inner: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Debug, Default)]
struct State {
    rings: u64,
    down: bool,
}

impl Bell {
    /// A bell that nobody has rung.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// There may be work.
    pub(crate) fn ring(&self) {
        self.state().rings += 1;
        self.inner.1.notify_all();
    }

    /// Ends all waiting, for ever.
    pub(crate) fn take_down(&self) {
        self.state().down = true;
        self.inner.1.notify_all();
    }

    /// Rings so far.
    pub(crate) fn count(&self) -> u64 {
        self.state().rings
    }

    /// Waits for a ring beyond `heard`, at most for `patience`. Returns the rings so far, or `None` when the bell is down.
    pub(crate) fn wait(&self, heard: u64, patience: Duration) -> Option<u64> {
        let waiting = |state: &mut State| state.rings == heard && !state.down;
        let (state, _) = self
            .inner
            .1
            .wait_timeout_while(self.state(), patience, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        (!state.down).then_some(state.rings)
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
    fn a_ring_before_the_waiting_is_heard() {
        let bell = Bell::new();
        let heard = bell.count();
        bell.ring();
        assert_eq!(bell.wait(heard, Duration::from_secs(60)), Some(1));
        assert_eq!(bell.wait(1, Duration::from_millis(1)), Some(1), "patience ends");
        bell.take_down();
        assert_eq!(bell.wait(1, Duration::from_secs(60)), None);
    }
}
