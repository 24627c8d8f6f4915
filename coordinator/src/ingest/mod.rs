//! Ingest: everything that devices say becomes files and rows, and only then an acknowledgement.
//!
//! One plain thread does it, in batches: take what has arrived, write it to the streams' files, have those flushed,
//! record the new offsets in one transaction, then acknowledge. While a batch is being flushed the next is written, so
//! that neither disk nor processor waits for the other. A slow disk therefore makes larger batches, and a full inbox
//! makes the broker hold back. Nothing is acknowledged to a device before it is on disk and recorded; no byte that has
//! been acknowledged is ever written again.

mod assembly;
mod batch;
mod disk_quota;
mod flusher;
mod flushing;
mod reject_counters;
mod retry_queue;
mod settling;
#[cfg(test)]
mod tests;

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use crate::{
    change_notifier::ChangeNotifier,
    fleet::Admission,
    link::{Inbound, Publisher},
    store::{Store, StoreError},
    workspace::Workspace,
};

/// Bytes of messages in one batch at most: bounds the time to the first acknowledgement.
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// Messages in one batch at most.
const BATCH_MESSAGES: usize = 256;
/// How long a batch waits for more. A quick disk would else be asked to flush for every chunk, which costs more than it gains.
const LINGER: Duration = Duration::from_millis(5);
/// Between two looks while a batch waits.
const LOOK: Duration = Duration::from_micros(500);

/// Starts the ingest, which holds `open_streams` files open at most. It ends when the link does.
///
/// # Errors
/// When the store cannot be opened.
pub(crate) fn start(
    workspace: &Workspace,
    inbound: mpsc::Receiver<Inbound>,
    admission: Arc<Admission>,
    publisher: impl Publisher + 'static,
    notifier: ChangeNotifier,
    open_streams: usize,
) -> Result<JoinHandle<()>, IngestError> {
    let store = Store::open(&workspace.database())?;
    let flusher = flusher::Flusher::start().map_err(IngestError::Thread)?;
    let ingest = batch::Ingest::new(
        workspace.clone(),
        store,
        admission,
        Box::new(publisher),
        flusher,
        open_streams,
    );
    thread::Builder::new()
        .name("ingest".to_owned())
        .spawn(move || run(ingest, inbound, &notifier))
        .map_err(IngestError::Thread)
}

/// Why the ingest did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IngestError {
    /// The store.
    #[error("the ingest has no store")]
    Store(#[from] StoreError),
    /// The thread.
    #[error("cannot start the ingest's thread")]
    Thread(#[source] std::io::Error),
}

fn run(mut ingest: batch::Ingest, mut inbound: mpsc::Receiver<Inbound>, notifier: &ChangeNotifier) {
    loop {
        // With a batch under way there is something to do even when nothing arrives.
        let first = if ingest.is_flushing() {
            inbound.try_recv().ok()
        } else {
            match inbound.blocking_recv() {
                Some(first) => Some(first),
                None => return,
            }
        };
        let news = match first {
            Some(first) => ingest.take(batch_from(first, &mut inbound)),
            None => ingest.finish(),
        };
        if news {
            notifier.notify();
        }
    }
}

/// What has arrived or arrives soon, up to a batch's limits.
fn batch_from(first: Inbound, inbound: &mut mpsc::Receiver<Inbound>) -> impl Iterator<Item = Inbound> {
    let begin = Instant::now();
    let mut bytes = 0;
    let mut first = Some(first);
    let next = move || {
        let message = match first.take() {
            Some(first) => first,
            None if bytes < BATCH_BYTES => soon(inbound, begin)?,
            None => return None,
        };
        bytes += message.payload.len();
        Some(message)
    };
    std::iter::from_fn(next).take(BATCH_MESSAGES)
}

/// The next message, if one arrives while the batch that began at `begin` still waits.
fn soon(inbound: &mut mpsc::Receiver<Inbound>, begin: Instant) -> Option<Inbound> {
    loop {
        match inbound.try_recv() {
            Ok(message) => return Some(message),
            Err(mpsc::error::TryRecvError::Empty) if begin.elapsed() < LINGER => thread::sleep(LOOK),
            Err(_) => return None,
        }
    }
}
