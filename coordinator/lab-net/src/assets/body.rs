//! The body of a response, read from disk as fast as the device receives it. Memory holds a few pieces for any length. The transfer ends
//! when the device receives nothing for a while or is removed.

use std::{
    io::SeekFrom,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use regatta_types::DeviceId;
use tokio::{
    fs::File,
    io::{self, AsyncReadExt as _, AsyncSeekExt as _},
    sync::{OwnedSemaphorePermit, mpsc},
    time::timeout,
};

use super::tree::FileRange;
use crate::fleet::Admission;

const PIECE: usize = 64 * 1024;
/// The number of pieces in the queue.
const WAITING: usize = 4;
/// The longest time without progress.
const PATIENCE: Duration = Duration::from_secs(60);

/// A response body of known length.
#[derive(Debug)]
pub(super) struct Content {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    left: u64,
}

/// The receiving device, its admission, and its transfer permit, which is released at the end.
pub(super) struct Recipient {
    pub(super) device: DeviceId,
    pub(super) admission: Arc<Admission>,
    pub(super) _turn: OwnedSemaphorePermit,
}

impl Content {
    /// Creates a body with a short text.
    pub(super) fn text(text: &str) -> Self {
        let (sender, pieces) = mpsc::channel(1);
        // A new channel has capacity.
        let _ = sender.try_send(Ok(Bytes::copy_from_slice(text.as_bytes())));
        let left = text.len() as u64;
        Self { pieces, left }
    }

    /// Creates a body with `bytes` bytes of files.
    pub(super) fn of(
        parts: impl Iterator<Item = io::Result<FileRange>> + Send + 'static,
        bytes: u64,
        to: Recipient,
    ) -> Self {
        let (sender, pieces) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            if let Err(error) = send(parts, &sender, &to).await {
                tracing::debug!(device = %to.device, "an asset was not sent to its end: {error}");
                // The body is shorter than its Content-Length, by which the device sees that it is incomplete.
                let _ = sender.try_send(Err(error));
            }
        });
        Self { pieces, left: bytes }
    }
}

async fn send(
    parts: impl Iterator<Item = io::Result<FileRange>>,
    sender: &mpsc::Sender<io::Result<Bytes>>,
    to: &Recipient,
) -> io::Result<()> {
    for part in parts {
        let part = part?;
        let mut file = File::open(&part.path).await?;
        file.seek(SeekFrom::Start(part.from)).await?;
        let mut left = part.bytes - part.from;
        while left > 0 {
            if !to.admission.admits(&to.device) {
                return Err(io::Error::other("the device was removed from the lab"));
            }
            let requested = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let mut piece = vec![0; requested];
            file.read_exact(&mut piece).await?;
            left -= requested as u64;
            match timeout(PATIENCE, sender.send(Ok(Bytes::from(piece)))).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(io::Error::other("it has gone")),
                Err(_) => return Err(io::Error::from(io::ErrorKind::TimedOut)),
            }
        }
    }
    Ok(())
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.pieces.poll_recv(context).map(|piece| {
            let piece = piece?;
            if let Ok(bytes) = &piece {
                self.left = self.left.saturating_sub(bytes.len() as u64);
            }
            Some(piece.map(Frame::data))
        })
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
