//! Assembles one stream into a file.
//!
//! A chunk is appended at the end of the file: bytes before it are a repetition and skipped, and a chunk beyond it would leave a gap
//! and is refused. SHA-256 is kept up while writing and computed anew from the file after a
//! restart. The file is longer than what is committed while its newest bytes are being flushed, or after a crash; then it
//! is cut.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    sync::Arc,
};

use regatta_types::StreamName;
use regatta_wire::{
    chunk::Chunk,
    message::{StreamEnd, StreamVerdict},
};
use sha2::{Digest as _, Sha256};

use regatta_fsutil::{atomic_file::sync_directory, hash::hex};

use crate::{store::StreamRow, workspace::RunDir};

/// What became of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkOutcome {
    /// At least one new byte.
    Appended,
    /// Nothing new.
    Repeated,
    /// It lies beyond the end of what is here.
    Gap,
}

/// A stream that is not whole.
#[derive(Debug)]
pub(super) struct Assembly {
    name: StreamName,
    dir: RunDir,
    file: Arc<File>,
    hasher: Sha256,
    /// Bytes in the file, of which the first `committed` are flushed and recorded.
    written: u64,
    committed: u64,
    end: Option<StreamEnd>,
}

impl Assembly {
    /// Goes on with a stream where the store says that it was.
    pub(super) fn open(dir: &RunDir, row: &StreamRow) -> io::Result<Self> {
        fs::create_dir_all(dir.partial())?;
        let path = dir.partial_file(&row.name);
        if !path.exists() && dir.file(&row.name).exists() {
            // Renamed, but not recorded as whole before a crash: not whole until it is.
            fs::rename(dir.file(&row.name), &path)?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)?;
        // A disk that lost what it had flushed: the device hears the smaller offset and sends the rest again.
        let committed = row.committed.min(file.metadata()?.len());
        if committed < row.committed {
            tracing::error!(
                stream = %row.name,
                "{} bytes that had been flushed to disk are gone, asking for them again: is the disk sound?",
                row.committed - committed
            );
        }
        file.set_len(committed)?;
        let hasher = hash_prefix(&mut file)?;
        sync_directory(&dir.partial())?;
        sync_directory(dir.path())?;
        let end = row.stated_end();
        Ok(Self {
            name: row.name.clone(),
            dir: dir.clone(),
            file: Arc::new(file),
            hasher,
            written: committed,
            committed,
            end,
        })
    }

    /// Takes what is new of a chunk. A chunk beyond the stated end voids that end: ends are not signed, and a forged one must not
    /// block the stream. The device states the end again once everything is acknowledged.
    ///
    /// # Errors
    /// When the file cannot be written; what had been committed is untouched.
    pub(super) fn take(&mut self, chunk: &Chunk<'_>) -> io::Result<ChunkOutcome> {
        if chunk.offset > self.written {
            return Ok(ChunkOutcome::Gap);
        }
        let known = usize::try_from(self.written - chunk.offset).unwrap_or(usize::MAX);
        let Some(new) = chunk.data.get(known..).filter(|new| !new.is_empty()) else {
            return Ok(ChunkOutcome::Repeated);
        };
        let mut file = &*self.file;
        if let Err(error) = file.write_all(new) {
            // A part may have been written: back to where the stream was.
            file.set_len(self.written)?;
            file.seek(SeekFrom::Start(self.written))?;
            return Err(error);
        }
        self.hasher.update(new);
        let reached = self.written + new.len() as u64;
        self.end.take_if(|end| reached > end.length);
        self.written = reached;
        Ok(ChunkOutcome::Appended)
    }

    /// Takes the device's statement of where the stream ends.
    pub(super) fn ends(&mut self, end: StreamEnd) {
        self.end = Some(end);
    }

    /// Bytes that a chunk would add.
    pub(super) const fn new_bytes(&self, chunk: &Chunk<'_>) -> u64 {
        if chunk.offset > self.written {
            return 0;
        }
        (chunk.offset + chunk.data.len() as u64).saturating_sub(self.written)
    }

    /// Bytes in the file that are not committed yet.
    pub(super) const fn uncommitted(&self) -> u64 {
        self.written - self.committed
    }

    /// Bytes in the file.
    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    /// The file, when it holds bytes that are not committed and have to be flushed.
    pub(super) fn unflushed(&self) -> Option<Arc<File>> {
        (self.written > self.committed).then(|| Arc::clone(&self.file))
    }

    /// Takes note that everything before `flushed` is on disk, and judges the stream if that is all of it: an equal one
    /// becomes a file of the run, a different one is dropped. The row is to be recorded before anything is acknowledged.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn settle(&mut self, flushed: u64) -> io::Result<(StreamRow, Option<StreamVerdict>)> {
        // Bytes that came since the flush began are judged with the next one.
        let judged = self
            .end
            .as_ref()
            .filter(|end| self.written == flushed && flushed >= end.length)
            .map(|end| self.is_equal(end));
        match judged {
            Some(true) => {
                self.become_whole()?;
                self.committed = flushed;
                Ok((self.row(true), Some(StreamVerdict::Equal)))
            }
            Some(false) => {
                self.start_again()?;
                Ok((self.row(false), Some(StreamVerdict::Different)))
            }
            None => {
                self.committed = flushed;
                Ok((self.row(false), None))
            }
        }
    }

    fn is_equal(&self, end: &StreamEnd) -> bool {
        let found: [u8; 32] = self.hasher.clone().finalize().into();
        self.written == end.length && found == end.sha256
    }

    fn become_whole(&self) -> io::Result<()> {
        // An empty stream has had nothing to flush, yet its file must last.
        self.file.sync_all()?;
        fs::create_dir_all(self.dir.files())?;
        fs::rename(self.dir.partial_file(&self.name), self.dir.file(&self.name))?;
        sync_directory(&self.dir.files())?;
        sync_directory(&self.dir.partial())?;
        sync_directory(self.dir.path())
    }

    fn start_again(&mut self) -> io::Result<()> {
        let mut file = &*self.file;
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.sync_all()?;
        self.hasher = Sha256::new();
        self.written = 0;
        self.committed = 0;
        self.end = None;
        Ok(())
    }

    fn row(&self, whole: bool) -> StreamRow {
        StreamRow {
            name: self.name.clone(),
            // Kept as it is by the store.
            listed: false,
            committed: self.committed,
            stated_length: self.end.as_ref().map(|end| end.length),
            stated_sha256: self.end.as_ref().map(|end| hex(&end.sha256)),
            whole,
        }
    }
}

/// Hashes the file from its start and leaves it positioned at its end.
fn hash_prefix(file: &mut File) -> io::Result<Sha256> {
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 256 * 1024];
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok(hasher);
        }
        hasher.update(&piece[..read]);
    }
}
