//! Ingest: everything that devices say becomes files and rows, and only then an acknowledgement.
//!
//! One plain thread does it, in batches: take what has arrived, write it to the streams' files, flush those, record
//! the new offsets in one transaction, then acknowledge. A slow disk therefore makes larger batches, not more waiting,
//! and a full inbox makes the broker hold back. Nothing is acknowledged before it is on disk and recorded; no byte
//! that has been acknowledged is ever written again.

mod assembly;
mod batch;
mod complaints;
#[cfg(test)]
mod tests;

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
};

use tokio::sync::mpsc;

use crate::{
    daemon::Bell,
    fleet::Admission,
    link::{Inbound, Post},
    store::{Store, StoreError},
    workspace::Workspace,
};

/// Bytes of messages in one batch at most: bounds the time to the first acknowledgement.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Messages in one batch at most; within the link's window, so that the broker never waits for a full one.
const BATCH_MESSAGES: usize = 128;

/// Starts the ingest. It ends when the link does.
///
/// # Errors
/// When the store cannot be opened.
pub(crate) fn start(
    workspace: &Workspace,
    inbound: mpsc::Receiver<Inbound>,
    admission: Arc<Admission>,
    post: impl Post + 'static,
    bell: Bell,
) -> Result<JoinHandle<()>, IngestError> {
    let store = Store::open(&workspace.database())?;
    let ingest = batch::Ingest::new(workspace.clone(), store, admission, Box::new(post));
    thread::Builder::new()
        .name("ingest".to_owned())
        .spawn(move || run(ingest, inbound, &bell))
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

fn run(mut ingest: batch::Ingest, mut inbound: mpsc::Receiver<Inbound>, bell: &Bell) {
    let mut messages = Vec::with_capacity(BATCH_MESSAGES);
    while let Some(first) = inbound.blocking_recv() {
        let mut bytes = first.payload.len();
        messages.push(first);
        while bytes < BATCH_BYTES && messages.len() < BATCH_MESSAGES {
            let Ok(message) = inbound.try_recv() else { break };
            bytes += message.payload.len();
            messages.push(message);
        }
        if ingest.take(&messages) {
            bell.ring();
        }
        for message in messages.drain(..) {
            message.dealt_with();
        }
    }
}
