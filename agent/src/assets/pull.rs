//! Downloads files from one byte sequence, one after the other, and hashes each while writing it. Bytes that a file
//! already contains are hashed again and not requested. After a lost connection, the next one starts at the first
//! missing byte.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use regatta_fsutil::hash::hex;
use sha2::{Digest as _, Sha256};

use super::{
    AssetError,
    client::{Body, Client, GetError},
};

/// Size of one read in bytes.
const PIECE: usize = 64 * 1024;
/// Unflushed bytes of a file, which a power cut may lose and which take memory on a small board.
const UNFLUSHED: u64 = 32 << 20;
/// Longest time without a byte.
const PATIENCE: Duration = Duration::from_secs(600);
/// Pauses before a retry. The pause doubles from the first to the second value.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// Interval at which a pause checks for cancellation.
const LOOK: Duration = Duration::from_millis(100);

/// A file of the byte sequence.
#[derive(Debug)]
pub(super) struct AssetPiece {
    /// The path to write.
    pub(super) path: PathBuf,
    /// Its length.
    pub(super) bytes: u64,
    /// Its SHA-256, hexadecimal.
    pub(super) sha256: String,
    /// Its name in messages.
    pub(super) name: String,
}

/// Downloads byte sequences from one server.
pub(super) struct Puller<'a> {
    client: Client,
    cancelled: &'a AtomicBool,
    /// Bytes that are verified or being downloaded.
    done: u64,
    report: &'a mut dyn FnMut(u64, Option<String>),
    /// The open response, and the offset of its next byte.
    open: Option<(u64, Body)>,
    /// Time of the last received byte.
    heard: Instant,
    pause: Duration,
}

/// A file that is being written.
struct Target {
    file: File,
    hasher: Sha256,
    written: u64,
    unflushed: u64,
}

impl<'a> Puller<'a> {
    /// Returns a puller that starts its count at `done`. `report` receives the count, and the reason for a pause.
    pub(super) fn new(
        client: Client,
        cancelled: &'a AtomicBool,
        done: u64,
        report: &'a mut dyn FnMut(u64, Option<String>),
    ) -> Self {
        Self {
            client,
            cancelled,
            done,
            report,
            open: None,
            heard: Instant::now(),
            pause: PAUSES.0,
        }
    }

    /// Returns the length in bytes of the resource at `address`.
    pub(super) fn length(&mut self, address: &str, name: &str) -> Result<u64, AssetError> {
        self.open = None;
        self.open_at(address, 0, name)?;
        Ok(self.open.take().map_or(0, |(_, body)| body.left))
    }

    /// Downloads the files at `address` one after the other.
    pub(super) fn pull(
        &mut self,
        address: &str,
        pieces: impl Iterator<Item = Result<AssetPiece, AssetError>>,
    ) -> Result<(), AssetError> {
        self.open = None;
        let mut begin = 0;
        for piece in pieces {
            let piece = piece?;
            self.pull_one(address, begin, &piece)?;
            begin += piece.bytes;
        }
        Ok(())
    }

    /// Downloads a file that the progress does not count.
    pub(super) fn pull_uncounted(&mut self, address: &str, piece: AssetPiece) -> Result<(), AssetError> {
        let done = self.done;
        let pulled = self.pull(address, std::iter::once(Ok(piece)));
        self.done = done;
        pulled
    }

    fn pull_one(&mut self, address: &str, begin: u64, piece: &AssetPiece) -> Result<(), AssetError> {
        let disk = |source| disk(piece, source);
        let done = self.done;
        // A second attempt starts from scratch, if the file had contents that did not match.
        for _ in 0..2 {
            self.done = done;
            let mut target = Target::open(piece).map_err(disk)?;
            let found = target.written;
            self.advance(found);
            self.fill(address, begin, piece, &mut target)?;
            let is_right = hex(&target.hasher.clone().finalize()) == piece.sha256;
            if is_right {
                return Ok(());
            }
            target.file.set_len(0).map_err(disk)?;
            if found == 0 {
                break;
            }
        }
        self.done = done;
        Err(AssetError::Wrong {
            what: piece.name.clone(),
        })
    }

    /// Downloads the missing bytes of a file.
    fn fill(
        &mut self,
        address: &str,
        begin: u64,
        piece: &AssetPiece,
        target: &mut Target,
    ) -> Result<(), AssetError> {
        let mut buffer = vec![0; PIECE];
        while target.written < piece.bytes {
            let at = begin + target.written;
            if self.open.as_ref().is_none_or(|(next, _)| *next != at) {
                self.open_at(address, at, &piece.name)?;
            }
            let Some((next, body)) = &mut self.open else {
                continue;
            };
            let left = usize::try_from(piece.bytes - target.written)
                .unwrap_or(PIECE)
                .min(PIECE);
            match body.read(buffer.get_mut(..left).unwrap_or_default()) {
                Ok(0) => self.cut(io::ErrorKind::UnexpectedEof.into())?,
                Ok(read) => {
                    *next += read as u64;
                    (self.heard, self.pause) = (Instant::now(), PAUSES.0);
                    let bytes = buffer.get(..read).unwrap_or_default();
                    target.write(bytes).map_err(|source| disk(piece, source))?;
                    self.advance(read as u64);
                    self.check_still_needed()?;
                }
                Err(error) => self.cut(error)?,
            }
        }
        Ok(())
    }

    fn advance(&mut self, bytes: u64) {
        self.done += bytes;
        (self.report)(self.done, None);
    }

    /// Opens the resource at `address` from a byte offset, with retries.
    fn open_at(&mut self, address: &str, from: u64, name: &str) -> Result<(), AssetError> {
        loop {
            self.check_still_needed()?;
            match self.client.get(address, from) {
                Ok(body) => {
                    self.open = Some((from, body));
                    return Ok(());
                }
                Err(GetError::Refused { status, why }) => {
                    return Err(AssetError::Refused {
                        what: name.to_owned(),
                        status,
                        why,
                    });
                }
                Err(GetError::Network(error)) => self.cut(error)?,
            }
        }
    }

    /// Handles a lost connection: waits, or fails after `PATIENCE` without a byte.
    fn cut(&mut self, error: io::Error) -> Result<(), AssetError> {
        self.open = None;
        if self.heard.elapsed() > PATIENCE {
            return Err(AssetError::Network {
                server: self.client.server().to_owned(),
                minutes: PATIENCE.as_secs() / 60,
                source: error,
            });
        }
        tracing::info!("assets: {error}; next attempt in {:?}", self.pause);
        let waits = format!("waiting for {}: {error}", self.client.server());
        (self.report)(self.done, Some(waits));
        let until = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSES.1);
        while Instant::now() < until {
            self.check_still_needed()?;
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn check_still_needed(&self) -> Result<(), AssetError> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(AssetError::Cancelled);
        }
        Ok(())
    }
}

impl Target {
    /// Opens a file for continuation: hashes its contents, and truncates it if it is too long.
    fn open(piece: &AssetPiece) -> io::Result<Self> {
        if let Some(directory) = piece.path.parent() {
            fs::create_dir_all(directory)?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&piece.path)?;
        if file.metadata()?.len() > piece.bytes {
            file.set_len(0)?;
        }
        let (mut hasher, mut written) = (Sha256::new(), 0);
        let mut buffer = vec![0; PIECE];
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            hasher.update(buffer.get(..read).unwrap_or_default());
            written += read as u64;
        }
        file.seek(SeekFrom::Start(written))?;
        Ok(Self {
            file,
            hasher,
            written,
            unflushed: 0,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hasher.update(bytes);
        self.written += bytes.len() as u64;
        self.unflushed += bytes.len() as u64;
        if self.unflushed >= UNFLUSHED {
            self.file.sync_data()?;
            self.unflushed = 0;
        }
        Ok(())
    }
}

fn disk(piece: &AssetPiece, source: io::Error) -> AssetError {
    AssetError::Disk {
        path: piece.path.clone(),
        source,
    }
}
