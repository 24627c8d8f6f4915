//! A waiting room for strangers: connections that have not proven who they are wait here, a bounded number of them, each for
//! a bounded time. When it is full, whoever has waited longest has to leave: an honest client takes milliseconds, so that
//! slow ones are the first to go, however many come.

use std::{
    collections::VecDeque,
    io,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::oneshot, time::timeout};

/// Strangers at once.
const PLACES: usize = 256;
/// The longest that a stranger may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The strangers who wait.
#[derive(Default)]
pub(crate) struct WaitingRoom {
    inner: Mutex<Room>,
}

#[derive(Default)]
struct Room {
    next: u64,
    waiting: VecDeque<(u64, oneshot::Sender<()>)>,
}

impl WaitingRoom {
    /// Does what a stranger has come for, while there is time and room.
    ///
    /// # Errors
    /// What the work gave; or that it took too long, or that others came.
    pub(crate) async fn admit<T>(&self, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let (number, must_leave) = self.enter();
        let done = tokio::select! {
            done = timeout(PATIENCE, work) => {
                done.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long")))
            }
            _ = must_leave => Err(io::Error::other("others came, and this one had waited longest")),
        };
        self.leave(number);
        done
    }

    /// Enters; whoever is asked to leave for it hears so.
    fn enter(&self) -> (u64, oneshot::Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        let mut room = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if room.waiting.len() >= PLACES {
            // Its sender goes, which is the sign.
            room.waiting.pop_front();
        }
        let number = room.next;
        room.next += 1;
        room.waiting.push_back((number, sender));
        (number, receiver)
    }

    fn leave(&self, number: u64) {
        let mut room = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        room.waiting.retain(|(waiting, _)| *waiting != number);
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, sync::Arc};

    use super::*;

    #[tokio::test]
    async fn whoever_has_waited_longest_leaves_when_the_room_is_full() {
        let room = Arc::new(WaitingRoom::default());
        let slow: Vec<_> = (0..PLACES)
            .map(|_| {
                let room = Arc::clone(&room);
                tokio::spawn(async move { room.admit(pending::<io::Result<()>>()).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(
            room.admit(async { Ok(7) }).await.unwrap(),
            7,
            "a quick one gets in"
        );
        while !slow.iter().any(tokio::task::JoinHandle::is_finished) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(slow.iter().filter(|task| task.is_finished()).count(), 1);
        assert!(
            slow.first().is_some_and(|first| first.is_finished()),
            "the oldest"
        );
        slow.iter().for_each(|task| task.abort());
    }
}
