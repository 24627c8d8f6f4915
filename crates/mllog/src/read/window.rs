//! A byte source seen through one buffer of its own: the bytes at hand are a slice, and the place is known.
//!
//! It is what makes [`super::AccuracyScanner`] quick, which can look at runs of bytes. It knows nothing of JSON.

use std::io::{self, Read};

/// What the official truncation puts where it cut (`truncate_accuracy_log.py`); on Windows with `\r` before each `\n`.
const CUT: &[u8] = b"\n\n...\n\n";
/// The mark's length with every `\r`.
const LONGEST_CUT: usize = CUT.len() + 4;

/// Large enough that a system call costs nothing beside what is done with the bytes, small enough for a core's cache.
const BUFFER: usize = 256 << 10;

/// Bytes of `R`, from the one not yet passed.
#[derive(Debug)]
pub(super) struct Window<R> {
    input: R,
    buffer: Vec<u8>,
    /// The next byte, in the buffer.
    start: usize,
    /// The end of what has been read, in the buffer.
    end: usize,
    /// Offset of the buffer's first byte in the input.
    base: u64,
    /// Line feeds before the buffer's first byte.
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

    /// Bytes passed so far.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// The line of the next byte, counted from 1. It counts anew, so it is for errors.
    pub(super) fn line(&self) -> u64 {
        self.lines + line_feeds(self.buffer.get(..self.start).unwrap_or_default()) + 1
    }

    /// What is at hand, without reading on.
    #[inline]
    pub(super) fn at_hand(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// The next byte, not passed; `None` at the end.
    #[inline]
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.start == self.end && !self.refill()? {
            return Ok(None);
        }
        Ok(self.buffer.get(self.start).copied())
    }

    /// Passes `count` bytes of those at hand.
    #[inline]
    pub(super) fn pass(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Reads on, keeping what is not passed (and a little before it). False when there is nothing more, or no room.
    pub(super) fn refill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let gone = self.start.saturating_sub(LONGEST_CUT);
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

    /// Whether the official truncation cut the file at this place, give or take the length of its mark.
    pub(super) fn at_official_cut(&mut self) -> io::Result<bool> {
        while self.end - self.start < LONGEST_CUT && self.refill()? {}
        let from = self.start.saturating_sub(LONGEST_CUT);
        let to = (self.start + LONGEST_CUT).min(self.end);
        let mut around = self.buffer.get(from..to).unwrap_or_default().to_vec();
        around.retain(|byte| *byte != b'\r');
        Ok(around.windows(CUT.len()).any(|window| window == CUT))
    }
}

fn line_feeds(bytes: &[u8]) -> u64 {
    // In portions whose count fits a byte, which the compiler counts many at a time.
    let portions = bytes.chunks(usize::from(u8::MAX));
    let counts = portions.map(|portion| portion.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>());
    counts.map(u64::from).sum()
}
