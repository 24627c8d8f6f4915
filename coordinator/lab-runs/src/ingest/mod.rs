//! Ingest: stores every device message as files and rows, then acknowledges log data.
//!
//! One thread works in batches. It takes the messages that have arrived, appends them to the streams' files and has the files flushed. It
//! then records the new offsets in one transaction and acknowledges them.
//!
//! The next batch is written while the previous one is flushed, so that disk and CPU work in parallel. A slow disk makes batches larger,
//! and a full inbox makes the broker hold back.
//!
//! Nothing is acknowledged before it is on disk and recorded. An acknowledged byte is not written again.

mod assembly;
mod batch;
mod disk_quota;
mod flusher;
mod flushing;
mod log_messages;
mod refusal;
mod reject_counters;
mod report;
mod retry_queue;
mod settling;
#[cfg(test)]
mod tests;

pub(crate) use flushing::STREAMS_PER_RUN;

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use regatta_lab_net::{
    fleet::Admission,
    link::{Inbound, Publisher},
};
use regatta_lab_store::{StoreError, change_notifier::ChangeNotifier, workspace::Workspace};

/// Bytes after which a batch takes no further message. This bounds the time to the first acknowledgement.
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// The maximum number of messages in a batch, so that messages of thousands of devices share each flush.
const BATCH_MESSAGES: usize = 2_048;
/// The time for which a batch waits for more messages. Without it, a fast disk would flush once per chunk.
const LINGER: Duration = Duration::from_millis(5);
/// The interval between two polls of the inbox while a batch waits.
const LOOK: Duration = Duration::from_micros(500);
/// The same for a batch of heartbeats only. They need no answer, and each batch costs a flush.
const HEARTBEAT_LINGER: Duration = Duration::from_millis(100);
const HEARTBEAT_LOOK: Duration = Duration::from_millis(5);

/// Starts the ingest thread, which keeps at most `open_streams` files open. The thread ends when the link closes.
///
/// # Errors
/// Returns an error when the store cannot be opened or the thread cannot start.
pub fn start(
    workspace: &Workspace,
    inbound: mpsc::Receiver<Inbound>,
    admission: Arc<Admission>,
    publisher: impl Publisher + 'static,
    notifier: ChangeNotifier,
    open_streams: usize,
) -> Result<JoinHandle<()>, IngestError> {
    let store = workspace.store()?;
    let flusher = flusher::Flusher::start().map_err(IngestError::Thread)?;
    let ingest = batch::Ingest::new(
        workspace.clone(),
        store,
        admission,
        Box::new(publisher),
        flusher,
        open_streams,
    )?;
    thread::Builder::new()
        .name("ingest".to_owned())
        .spawn(move || run(ingest, inbound, &notifier))
        .map_err(IngestError::Thread)
}

/// The reason the ingest did not start.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The store cannot be opened.
    #[error("the ingest has no store")]
    Store(#[from] StoreError),
    /// The thread cannot start.
    #[error("cannot start the ingest's thread")]
    Thread(#[source] std::io::Error),
}

fn run(mut ingest: batch::Ingest, mut inbound: mpsc::Receiver<Inbound>, notifier: &ChangeNotifier) {
    loop {
        // A batch in flight must be settled even when no message arrives.
        let first = if ingest.is_flushing() {
            inbound.try_recv().ok()
        } else {
            match inbound.blocking_recv() {
                Some(first) => Some(first),
                None => return,
            }
        };
        // What was not stored is not acknowledged, so the devices keep it. The daemon stops by itself.
        if let Err(moved) = ingest.workspace.expect_in_place() {
            tracing::error!("no message is taken any more: {moved}");
            return;
        }
        let news = match first {
            Some(first) => ingest.take(batch_from(first, &mut inbound)),
            None => ingest.finish(),
        };
        if news {
            notifier.notify();
        }
    }
}

/// Returns the messages that have arrived or arrive soon, up to a batch's limits.
fn batch_from(first: Inbound, inbound: &mut mpsc::Receiver<Inbound>) -> impl Iterator<Item = Inbound> {
    let begin = Instant::now();
    let mut bytes = 0;
    let mut first = Some(first);
    let mut only_heartbeats = true;
    let next = move || {
        let message = match first.take() {
            Some(first) => first,
            None if bytes >= BATCH_BYTES => return None,
            None if only_heartbeats => soon(inbound, begin + HEARTBEAT_LINGER, HEARTBEAT_LOOK)?,
            None => soon(inbound, begin + LINGER, LOOK)?,
        };
        bytes += message.payload.len();
        only_heartbeats &= batch::is_heartbeat(&message.topic, &message.payload);
        Some(message)
    };
    std::iter::from_fn(next).take(BATCH_MESSAGES)
}

/// Returns the next message, if one arrives before `deadline`.
fn soon(inbound: &mut mpsc::Receiver<Inbound>, deadline: Instant, look: Duration) -> Option<Inbound> {
    loop {
        match inbound.try_recv() {
            Ok(message) => return Some(message),
            Err(mpsc::error::TryRecvError::Empty) if Instant::now() < deadline => thread::sleep(look),
            Err(_) => return None,
        }
    }
}
