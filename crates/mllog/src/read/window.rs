//! A byte source with its own buffer. The unread bytes in it are a slice, and their position in the input is known.
//!
//! [`super::AccuracyScanner`] is fast because it can scan whole runs of bytes. This module does not parse JSON.

use std::io::{self, Read};

/// The mark at which the official truncation cut the file (`truncate_accuracy_log.py`). On Windows, `\r` precedes each `\n`.
const CUT: &[u8] = b"\n\n...\n\n";
/// The length of the mark including every `\r`, in bytes.
const MAX_CUT: usize = CUT.len() + 4;

/// The size of the buffer in bytes: large enough to make system calls cheap, small enough for a core's cache.
const BUFFER: usize = 256 << 10;

/// The bytes of `R`, from the first one that was not consumed.
#[derive(Debug)]
pub(super) struct Window<R> {
    input: R,
    buffer: Vec<u8>,
    /// The index of the next byte in the buffer.
    start: usize,
    /// The end of the filled part of the buffer.
    end: usize,
    /// The offset of the buffer's first byte in the input.
    base: u64,
    /// The number of line feeds before the buffer's first byte.
    lines: u64,
    ended: bool,
}

impl<R: Read> Window<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            base: 0,
            lines: 0,
            ended: false,
        }
    }

    /// Returns the number of consumed bytes.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Returns the line of the next byte, from 1. It counts line feeds on every call, so it is meant for errors.
    pub(super) fn line(&self) -> u64 {
        self.lines + line_feeds(self.buffer.get(..self.start).unwrap_or_default()) + 1
    }

    /// Returns the buffered bytes without reading more.
    #[inline]
    pub(super) fn at_hand(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Returns the next byte without consuming it, or `None` at the end.
    #[inline]
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.start == self.end && !self.refill()? {
            return Ok(None);
        }
        Ok(self.buffer.get(self.start).copied())
    }

    /// Consumes `count` of the buffered bytes.
    #[inline]
    pub(super) fn pass(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Reads more bytes, and keeps the unconsumed ones and a few before them. Returns false at the end or if the buffer is full.
    pub(super) fn refill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let gone = self.start.saturating_sub(MAX_CUT);
        self.lines += line_feeds(self.buffer.get(..gone).unwrap_or_default());
        self.buffer.copy_within(gone..self.end, 0);
        self.base += gone as u64;
        self.start -= gone;
        self.end -= gone;
        loop {
            let Some(free) = self.buffer.get_mut(self.end..).filter(|free| !free.is_empty()) else {
                return Ok(false);
            };
            match self.input.read(free) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(false);
                }
                Ok(count) => {
                    self.end += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns whether the official truncation cut the file near this position, within the length of its mark.
    pub(super) fn at_official_cut(&mut self) -> io::Result<bool> {
        while self.end - self.start < MAX_CUT && self.refill()? {}
        let from = self.start.saturating_sub(MAX_CUT);
        let to = (self.start + MAX_CUT).min(self.end);
        let mut around = self.buffer.get(from..to).unwrap_or_default().to_vec();
        around.retain(|byte| *byte != b'\r');
        Ok(around.windows(CUT.len()).any(|window| window == CUT))
    }
}

fn line_feeds(bytes: &[u8]) -> u64 {
    // Each portion's count fits in a byte, so that the compiler can vectorize the loop.
    let portions = bytes.chunks(usize::from(u8::MAX));
    let counts = portions.map(|portion| portion.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>());
    counts.map(u64::from).sum()
}
