//! A thread that follows the store's tokens and stores their uses. It waits for nothing else, so that no amount of work of pages or
//! devices delays a revocation.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    time::{Duration, Instant},
};

use jiff::Timestamp;
use tokio::{sync::oneshot, time::timeout};

use super::token_list::TokenList;
use regatta_lab_store::{self as store, Store};
use regatta_text::ErrorChain;

/// The interval at which new and revoked tokens are read from the store.
const REFRESH: Duration = Duration::from_millis(250);
/// The longest wait to store a use. It delays the next look at the store.
const PATIENCE: Duration = Duration::from_millis(250);
/// The maximum wait for a requested read of the store. The thread may be blocked by a disk that does not respond.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);
/// The largest number of requests that wait. All waiting ones are answered by one look.
const MAX_REQUESTS: usize = 256;

/// A request to the thread.
enum FollowerRequest {
    /// Looks at the store now. The answer is whether it could be read.
    Refresh(oneshot::Sender<bool>),
    /// Stores the use of a token.
    NoteUse(i64),
}

/// The thread, which ends when this is dropped.
pub(super) struct TokenFollower {
    requests: SyncSender<FollowerRequest>,
    /// The hour of each token's last use, because the store keeps no more.
    noted: Mutex<HashMap<i64, i64>>,
}

impl TokenFollower {
    /// Starts the thread. It calls `changed` after every change of the tokens.
    ///
    /// # Errors
    /// Returns an error when the system has no thread, or the store fails.
    pub(super) fn start(
        store: Store,
        tokens: Arc<TokenList>,
        changed: impl Fn() + Send + 'static,
    ) -> anyhow::Result<Self> {
        store.set_patience(PATIENCE)?;
        let (requests, received) = sync_channel(MAX_REQUESTS);
        let follower = Follower {
            store,
            tokens,
            seen: None,
        };
        spawn(move || follower.follow(&received, changed))?;
        Ok(Self {
            requests,
            noted: Mutex::default(),
        })
    }

    /// Looks at the store now. Returns whether it could be read.
    pub(super) async fn refresh(&self) -> bool {
        let (answer, answered) = oneshot::channel();
        let is_sent = self.requests.try_send(FollowerRequest::Refresh(answer)).is_ok();
        is_sent && matches!(timeout(LOOK_PATIENCE, answered).await, Ok(Ok(true)))
    }

    /// Stores the use of a token, once an hour.
    pub(super) fn note_use(&self, number: i64) {
        let hour = Timestamp::now().as_second() / 3_600;
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.get(&number) != Some(&hour)
            && self.requests.try_send(FollowerRequest::NoteUse(number)).is_ok()
        {
            noted.insert(number, hour);
        }
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new()
        .name("page-tokens".to_owned())
        .spawn(work)
        .map(drop)
}

/// The thread's own state.
struct Follower {
    store: Store,
    tokens: Arc<TokenList>,
    /// The store's version at the last look.
    seen: Option<i64>,
}

impl Follower {
    fn follow(mut self, requests: &Receiver<FollowerRequest>, changed: impl Fn()) {
        let mut was_readable = true;
        loop {
            let first = match requests.recv_timeout(REFRESH) {
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // Taken before the look, so that it is newer than every request that it answers.
            let waiting: Vec<_> = first
                .into_iter()
                .chain(requests.try_iter().take(MAX_REQUESTS))
                .collect();
            let looked = self.look();
            match &looked {
                Ok(true) => changed(),
                Ok(false) => {}
                Err(error) if was_readable => {
                    let error = ErrorChain(error);
                    tracing::error!(
                        "cannot read the tokens of the live page, which soon admits nobody: {error}"
                    );
                }
                Err(_) => {}
            }
            if looked.is_ok() && !was_readable {
                tracing::info!("the tokens of the live page can be read again");
            }
            was_readable = looked.is_ok();
            for request in waiting {
                match request {
                    FollowerRequest::Refresh(answer) => {
                        // A requester that is gone does not wait any more.
                        let _ = answer.send(looked.is_ok());
                    }
                    FollowerRequest::NoteUse(number) => self.note_use(number),
                }
            }
        }
    }

    /// Reads the tokens again if the store has changed. Returns whether they have changed.
    fn look(&mut self) -> store::Result<bool> {
        let begun = Instant::now();
        let version = self.store.data_version()?;
        let is_changed = match self.seen == Some(version) {
            true => false,
            false => self.tokens.replace(self.store.page_tokens().all()?),
        };
        self.seen = Some(version);
        self.tokens.confirm(begun);
        Ok(is_changed)
    }

    fn note_use(&self, number: i64) {
        if let Err(error) = self.store.page_tokens().record_use(number) {
            let error = anyhow::Error::from(error);
            tracing::warn!("the use of a token of the live page is not stored: {error:#}");
        }
    }
}
