//! Assembles the chunks of one stream into a file.
//!
//! A chunk is appended at the end of the file. Bytes that the file already has are skipped. A chunk beyond the end would leave a gap and
//! is refused.
//!
//! The caller flushes files and directories, for many streams together.
//!
//! SHA-256 is updated on every write and recomputed from the file after a restart. The file can be longer than its committed part: during
//! a flush, or after a crash. After a crash it is truncated to the committed length.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::PathBuf,
    sync::Arc,
};

use regatta_types::StreamName;
use regatta_wire::{
    chunk::Chunk,
    message::{StreamEnd, StreamVerdict},
};
use sha2::{Digest as _, Sha256};

use regatta_fsutil::hash::hex;

use regatta_lab_store::{StreamRow, workspace::RunDir};

/// The effect of a chunk on the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkOutcome {
    /// At least one byte was new.
    Appended,
    /// Every byte was already in the file.
    Repeated,
    /// The chunk begins beyond the end of the file.
    Gap,
    /// The chunk has bytes beyond the end of the stream.
    BeyondEnd,
}

/// A stream whose file is not complete yet.
#[derive(Debug)]
pub(super) struct Assembly {
    name: StreamName,
    dir: RunDir,
    file: Arc<File>,
    hasher: Sha256,
    /// Length of the file in bytes. The first `committed` bytes are flushed and recorded.
    written: u64,
    committed: u64,
    end: Option<StreamEnd>,
    /// Whether the file's name, and its length when it was opened, may not be on disk yet.
    is_name_unflushed: bool,
}

/// The files and directories to flush before the bytes of a stream are committed.
#[derive(Debug)]
pub(super) struct Unflushed {
    pub(super) file: Arc<File>,
    /// The directories with the file's name, if it may not be on disk.
    pub(super) directories: Vec<PathBuf>,
}

impl Assembly {
    /// Opens a stream at the offset that the store has recorded.
    ///
    /// # Errors
    /// Returns an error when the file or a directory cannot be created, read or truncated.
    pub(super) fn open(dir: &RunDir, row: &StreamRow) -> io::Result<Self> {
        dir.make_partial()?;
        let path = dir.partial_file(&row.name);
        if !path.exists() && dir.file(&row.name).exists() {
            // A crash came between the rename and the record. The stream is incomplete until the store says otherwise.
            fs::rename(dir.file(&row.name), &path)?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)?;
        // The disk lost flushed bytes. The device is sent the smaller offset and repeats the rest.
        let committed = row.committed.min(file.metadata()?.len());
        if committed < row.committed {
            tracing::error!(
                stream = %row.name,
                "{} bytes that had been flushed to disk are missing and are requested again: check the disk",
                row.committed - committed
            );
        }
        file.set_len(committed)?;
        let hasher = hash_prefix(&mut file)?;
        let end = row.stated_end();
        Ok(Self {
            name: row.name.clone(),
            dir: dir.clone(),
            file: Arc::new(file),
            hasher,
            written: committed,
            committed,
            end,
            is_name_unflushed: true,
        })
    }

    /// Appends the new bytes of a chunk.
    ///
    /// The device has signed the end of the stream, so a chunk beyond it is not the device's, or its end is outdated. The device states a
    /// new end after its last chunk, and sends the chunk again.
    ///
    /// # Errors
    /// Returns an error when the file cannot be written. Committed bytes are not changed.
    pub(super) fn take(&mut self, chunk: &Chunk<'_>) -> io::Result<ChunkOutcome> {
        if chunk.offset > self.written {
            return Ok(ChunkOutcome::Gap);
        }
        if self.is_beyond_end(chunk) {
            return Ok(ChunkOutcome::BeyondEnd);
        }
        let known = usize::try_from(self.written - chunk.offset).unwrap_or(usize::MAX);
        let Some(new) = chunk.data.get(known..).filter(|new| !new.is_empty()) else {
            return Ok(ChunkOutcome::Repeated);
        };
        let mut file = &*self.file;
        if let Err(error) = file.write_all(new) {
            // Part of the chunk may have been written. Restore the previous length.
            file.set_len(self.written)?;
            file.seek(SeekFrom::Start(self.written))?;
            return Err(error);
        }
        self.hasher.update(new);
        self.written += new.len() as u64;
        Ok(ChunkOutcome::Appended)
    }

    /// Records the end of the stream as the device states it.
    pub(super) fn ends(&mut self, end: StreamEnd) {
        self.end = Some(end);
    }

    /// Returns whether a chunk has bytes beyond the end that the device has stated.
    fn is_beyond_end(&self, chunk: &Chunk<'_>) -> bool {
        let chunk_end = chunk.offset + chunk.data.len() as u64;
        self.end.as_ref().is_some_and(|end| chunk_end > end.length)
    }

    /// Returns the number of bytes that [`Self::take`] would write of a chunk.
    pub(super) fn new_bytes(&self, chunk: &Chunk<'_>) -> u64 {
        if chunk.offset > self.written || self.is_beyond_end(chunk) {
            return 0;
        }
        (chunk.offset + chunk.data.len() as u64).saturating_sub(self.written)
    }

    /// Returns the number of bytes in the file that are not committed yet.
    pub(super) const fn uncommitted(&self) -> u64 {
        self.written - self.committed
    }

    /// Returns the length of the file in bytes.
    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    /// Takes the files and directories to flush before the present bytes are committed. An empty stream that has ended is flushed too,
    /// because its file must survive a crash.
    pub(super) fn take_unflushed(&mut self) -> Option<Unflushed> {
        let has_ended_unflushed = self.is_name_unflushed && self.end.is_some();
        (self.written > self.committed || has_ended_unflushed).then(|| Unflushed {
            file: Arc::clone(&self.file),
            directories: if std::mem::take(&mut self.is_name_unflushed) {
                vec![self.dir.partial(), self.dir.path().to_owned()]
            } else {
                Vec::new()
            },
        })
    }

    /// Returns the directories that a complete stream changes. They must be flushed before it is recorded.
    pub(super) fn directories(&self) -> [PathBuf; 3] {
        [self.dir.files(), self.dir.partial(), self.dir.path().to_owned()]
    }

    /// Marks the first `flushed` bytes as committed and compares a stream that has reached its end.
    ///
    /// A stream with the stated length and SHA-256 moves to the run's files. Any other is truncated to nothing. The caller flushes the
    /// [`directories`](Self::directories) of a complete stream, then records the returned row, then acknowledges.
    ///
    /// # Errors
    /// Returns an error when the file cannot be moved or truncated.
    pub(super) fn settle(&mut self, flushed: u64) -> io::Result<(StreamRow, Option<StreamVerdict>)> {
        // Bytes that arrived during the flush wait for the next one.
        let judged = self
            .end
            .as_ref()
            .filter(|end| !self.is_name_unflushed && self.written == flushed && flushed >= end.length)
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
        self.dir.make_files()?;
        fs::rename(self.dir.partial_file(&self.name), self.dir.file(&self.name))
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

    fn row(&self, is_complete: bool) -> StreamRow {
        StreamRow {
            name: self.name.clone(),
            // The store does not overwrite this column.
            listed: false,
            committed: self.committed,
            stated_length: self.end.as_ref().map(|end| end.length),
            stated_sha256: self.end.as_ref().map(|end| hex(&end.sha256)),
            is_complete,
        }
    }
}

/// Hashes the file from the start and leaves the position at the end.
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
