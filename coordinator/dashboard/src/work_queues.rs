//! The queues of requests whose work needs a blocking thread: a few pieces of a kind are done at once, and readers take turns. They do no
//! work themselves.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{access::ReaderKey, page_error::PageError};

/// The longest wait for a turn.
const PATIENCE: Duration = Duration::from_secs(30);
/// The number of readers whose queues are kept while nobody waits in them.
const MAX_IDLE_QUEUES: usize = 64;

/// The queues of each kind of work.
pub(super) struct WorkQueues {
    /// Readings of the store that take milliseconds.
    pub(super) quick: WorkQueue,
    /// Computations from many runs, and checks of files.
    pub(super) slow: WorkQueue,
    /// Changes of the lab. They do not wait for readings.
    pub(super) actions: WorkQueue,
}

/// The work of one kind.
pub(super) struct WorkQueue {
    /// The pieces of work that are done at once.
    running: Arc<Semaphore>,
    /// The largest number of a reader's requests, with the one that is answered.
    max_requests: usize,
    readers: Mutex<HashMap<ReaderKey, Arc<ReaderQueue>>>,
}

/// The requests of one reader. One of them at a time waits among the other readers' or is answered, so that readers take turns.
struct ReaderQueue {
    requests: Arc<Semaphore>,
    turn: Arc<Semaphore>,
}

/// The right to work on a blocking thread, until it is dropped.
pub(super) struct WorkPermit {
    _request: OwnedSemaphorePermit,
    _turn: OwnedSemaphorePermit,
    _running: OwnedSemaphorePermit,
}

impl WorkQueues {
    /// Creates empty queues.
    pub(super) fn new() -> Self {
        Self {
            // The connections bound the number of these requests.
            quick: WorkQueue::new(2, 256),
            slow: WorkQueue::new(2, 8),
            actions: WorkQueue::new(2, 8),
        }
    }
}

impl WorkQueue {
    fn new(running: usize, max_requests: usize) -> Self {
        Self {
            running: Arc::new(Semaphore::new(running)),
            max_requests,
            readers: Mutex::default(),
        }
    }

    /// Waits for the turn of a reader's request.
    ///
    /// # Errors
    /// Returns an error when too many requests of the reader wait, or the wait was too long.
    pub(super) async fn enter(&self, reader: ReaderKey) -> Result<WorkPermit, PageError> {
        let queue = self.queue_of(reader);
        let request = Arc::clone(&queue.requests)
            .try_acquire_owned()
            .map_err(|_| PageError::too_many_requests())?;
        let turn = async {
            let turn = Arc::clone(&queue.turn).acquire_owned().await.ok()?;
            let running = Arc::clone(&self.running).acquire_owned().await.ok()?;
            Some((turn, running))
        };
        // The semaphores are never closed.
        let (turn, running) = timeout(PATIENCE, turn)
            .await
            .ok()
            .flatten()
            .ok_or_else(PageError::too_many_requests)?;
        Ok(WorkPermit {
            _request: request,
            _turn: turn,
            _running: running,
        })
    }

    fn queue_of(&self, reader: ReaderKey) -> Arc<ReaderQueue> {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() >= MAX_IDLE_QUEUES {
            // A queue that is used has a second owner, or permits that are taken.
            readers.retain(|_, queue| {
                Arc::strong_count(queue) > 1 || queue.requests.available_permits() < self.max_requests
            });
        }
        let queue = readers.entry(reader).or_insert_with(|| {
            Arc::new(ReaderQueue {
                requests: Arc::new(Semaphore::new(self.max_requests)),
                turn: Arc::new(Semaphore::new(1)),
            })
        });
        Arc::clone(queue)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    const ANNA: ReaderKey = ReaderKey::Token(1);
    const BEN: ReaderKey = ReaderKey::Token(2);

    /// Polls a future once.
    async fn waits(work: impl Future) -> bool {
        timeout(Duration::ZERO, work).await.is_err()
    }

    #[tokio::test]
    async fn a_reader_with_too_many_requests_is_refused_and_no_other() {
        let queue = WorkQueue::new(2, 2);
        let running = queue.enter(ANNA).await.unwrap();
        let waiting = queue.enter(ANNA);
        let mut waiting = pin!(waiting);
        assert!(waits(&mut waiting).await, "one at a time");
        let refused = queue.enter(ANNA).await.err().unwrap();
        assert_eq!(refused.status.as_u16(), 503);
        let _of_ben = queue.enter(BEN).await.unwrap();
        drop(running);
        let _next = waiting.await.unwrap();
    }

    #[tokio::test]
    async fn readers_take_turns() {
        let queue = WorkQueue::new(1, 8);
        let running = queue.enter(ANNA).await.unwrap();
        let (second, third, of_ben) = (queue.enter(ANNA), queue.enter(ANNA), queue.enter(BEN));
        let (mut second, mut third, mut of_ben) = (pin!(second), pin!(third), pin!(of_ben));
        assert!(waits(&mut second).await);
        assert!(waits(&mut third).await);
        assert!(waits(&mut of_ben).await);
        drop(running);
        // The second request of Anna enters the common queue now, behind Ben's.
        assert!(waits(&mut second).await);
        let of_ben = of_ben.await.unwrap();
        assert!(waits(&mut third).await);
        drop(of_ben);
        let _second = second.await.unwrap();
    }

    #[tokio::test]
    async fn an_abandoned_request_leaves_the_queue() {
        let queue = WorkQueue::new(1, 2);
        let running = queue.enter(ANNA).await.unwrap();
        for _ in 0..100 {
            let abandoned = queue.enter(ANNA);
            let mut abandoned = pin!(abandoned);
            assert!(waits(&mut abandoned).await);
        }
        drop(running);
        let _next = queue.enter(ANNA).await.unwrap();
    }

    #[tokio::test]
    async fn ever_new_readers_do_not_fill_the_memory() {
        let queue = WorkQueue::new(2, 2);
        for number in 0..1_000 {
            drop(queue.enter(ReaderKey::Token(number)).await.unwrap());
        }
        assert!(queue.readers.lock().unwrap().len() <= MAX_IDLE_QUEUES);
    }
}
