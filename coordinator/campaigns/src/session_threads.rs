//! The threads that run campaigns' power sessions, one per session. A panic fails the session, and the coordinator continues.

use std::{
    any::Any,
    collections::BTreeMap,
    io,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use regatta_lab_power::{Cancel, CancelReason};
use regatta_types::documents::{EndCause, RecordedFailure};

/// The most sessions at once. A lab has a few meters; others wait.
const MAX_SESSIONS: usize = 16;
/// The stack of a session, which reads trees of files: as large as that of a command.
const STACK_BYTES: usize = 8 << 20;
/// The longest wait for the sessions of a coordinator that stops. The official server and client may take 23 s each to end.
const MAX_STOP: Duration = Duration::from_secs(75);
const PAUSE: Duration = Duration::from_millis(50);

/// The end of a session's thread. A session that began has its end in the store; the failure is of one that did not.
pub(super) type ThreadEnd = Result<(), RecordedFailure>;

/// The sessions of this process.
#[derive(Debug, Default)]
pub(super) struct SessionThreads {
    sessions: BTreeMap<String, Session>,
}

#[derive(Debug)]
struct Session {
    thread: ThreadState,
    cancel: Cancel,
    meter: String,
}

#[derive(Debug)]
enum ThreadState {
    Running(JoinHandle<ThreadEnd>),
    Ended(ThreadEnd),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SessionState {
    /// Its thread runs.
    Running,
    Ended(ThreadEnd),
    /// Another process had it.
    Unknown,
}

impl SessionThreads {
    /// Creates it without sessions.
    pub(super) const fn new() -> Self {
        Self {
            sessions: BTreeMap::new(),
        }
    }

    /// Begins a session with a meter.
    ///
    /// # Errors
    /// Returns the system's error when the thread cannot start.
    pub(super) fn begin(
        &mut self,
        session: &str,
        meter: &str,
        make: impl FnOnce(&Cancel) -> ThreadEnd + Send + 'static,
    ) -> io::Result<()> {
        let cancel = Cancel::default();
        let cancelled = cancel.clone();
        let thread = thread::Builder::new()
            .name("power-session".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || make(&cancelled))?;
        let begun = Session {
            thread: ThreadState::Running(thread),
            cancel,
            meter: meter.to_owned(),
        };
        self.sessions.insert(session.to_owned(), begun);
        Ok(())
    }

    /// Requests the early end of a session.
    pub(super) fn cancel(&self, session: &str, reason: CancelReason) {
        if let Some(session) = self.sessions.get(session) {
            session.cancel.request(reason);
        }
    }

    pub(super) fn state(&mut self, session: &str) -> SessionState {
        let Some(session) = self.sessions.get_mut(session) else {
            return SessionState::Unknown;
        };
        session.thread.join_if_finished();
        match &session.thread {
            ThreadState::Running(_) => SessionState::Running,
            ThreadState::Ended(end) => SessionState::Ended(end.clone()),
        }
    }

    /// Forgets a session whose end is stored.
    pub(super) fn forget(&mut self, session: &str) {
        self.sessions.remove(session);
    }

    /// Returns whether a session with this meter can begin: the meter is free, and there are not too many sessions.
    pub(super) fn can_begin(&self, meter: &str) -> bool {
        self.sessions.len() < MAX_SESSIONS && !self.sessions.values().any(|session| session.meter == meter)
    }

    /// Requests the end of every session, and waits for it. A session that takes too long ends with the process, and its programs end
    /// themselves then.
    pub(super) fn stop(&mut self) {
        self.cancel_all();
        let begun = Instant::now();
        while begun.elapsed() < MAX_STOP {
            self.sessions.retain(|_, session| {
                session.thread.join_if_finished();
                matches!(session.thread, ThreadState::Running(_))
            });
            if self.sessions.is_empty() {
                return;
            }
            thread::sleep(PAUSE);
        }
        for session in self.sessions.keys() {
            tracing::error!(
                session,
                "the power session has not ended; it ends with this process"
            );
        }
    }

    fn cancel_all(&self) {
        for session in self.sessions.values() {
            session.cancel.request(CancelReason::CoordinatorStops);
        }
    }
}

impl Drop for SessionThreads {
    fn drop(&mut self) {
        self.cancel_all();
    }
}

impl ThreadState {
    /// Takes the end of a thread that has finished. The lease of a joined thread is stale, should the session not have released it.
    fn join_if_finished(&mut self) {
        if !matches!(self, Self::Running(thread) if thread.is_finished()) {
            return;
        }
        let unknown = Self::Ended(Err(panicked("unknown")));
        if let Self::Running(thread) = std::mem::replace(self, unknown) {
            let end = thread.join();
            *self = Self::Ended(end.unwrap_or_else(|panic| Err(panicked(message(&*panic)))));
        }
    }
}

/// Returns the failure of a session that panicked.
fn panicked(message: &str) -> RecordedFailure {
    RecordedFailure {
        cause: EndCause::Infrastructure,
        reason: format!("the power session panicked, which is an error of Regatta: {message}"),
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let formatted = panic.downcast_ref::<String>().map(String::as_str);
    let literal = panic.downcast_ref::<&str>().copied();
    formatted.or(literal).unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(threads: &mut SessionThreads, session: &str) -> ThreadEnd {
        let begun = Instant::now();
        loop {
            match threads.state(session) {
                SessionState::Ended(end) => return end,
                state => assert_eq!(state, SessionState::Running),
            }
            assert!(begun.elapsed().as_secs() < 10, "{session} does not end");
            thread::sleep(PAUSE);
        }
    }

    fn wait_for_cancel(cancel: &Cancel) -> ThreadEnd {
        loop {
            if let Some(reason) = cancel.requested() {
                return Err(RecordedFailure {
                    cause: reason.end_cause(),
                    reason: reason.to_string(),
                });
            }
            thread::sleep(PAUSE);
        }
    }

    #[test]
    fn a_session_that_panics_has_failed_and_others_go_on() {
        let mut threads = SessionThreads::new();
        threads.begin("good", "one", |_| Ok(())).unwrap();
        threads.begin("bad", "two", |_| panic!("no {}", "meter")).unwrap();
        threads.begin("long", "three", wait_for_cancel).unwrap();
        let failure = end(&mut threads, "bad").unwrap_err();
        assert_eq!(failure.cause, EndCause::Infrastructure);
        assert!(
            failure.reason.ends_with("an error of Regatta: no meter"),
            "{failure:?}"
        );
        assert_eq!(end(&mut threads, "good"), Ok(()));
        assert_eq!(threads.state("other"), SessionState::Unknown);
        assert!(!threads.can_begin("three") && threads.can_begin("four"));
        threads.cancel("long", CancelReason::CampaignAborted);
        assert_eq!(end(&mut threads, "long").unwrap_err().cause, EndCause::Operator);
        // The end is known until it is stored.
        assert_eq!(end(&mut threads, "long").unwrap_err().cause, EndCause::Operator);
        threads.forget("long");
        assert!(threads.can_begin("three"));
    }

    #[test]
    fn the_number_of_sessions_is_bounded_and_all_end_with_the_coordinator() {
        let mut threads = SessionThreads::new();
        for number in 0..MAX_SESSIONS {
            let name = number.to_string();
            assert!(threads.can_begin(&name));
            threads.begin(&name, &name, wait_for_cancel).unwrap();
        }
        assert!(!threads.can_begin("one more"));
        let begun = Instant::now();
        threads.stop();
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert_eq!(threads.state("0"), SessionState::Unknown);
    }
}
