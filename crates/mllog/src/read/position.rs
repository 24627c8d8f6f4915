//! A byte source that knows where it is: offset, line, and the bytes just passed.
//!
//! It feeds the accuracy reader, whose files have hundreds of megabytes; it holds no more than its source's buffer.

use std::io::{self, BufRead, Read};

/// What the official truncation puts where it cut (`truncate_accuracy_log.py`); on Windows with `\r` before each `\n`.
pub(super) const CUT: &[u8] = b"\n\n...\n\n";
/// The mark's length with every `\r`.
pub(super) const LONGEST_CUT: usize = CUT.len() + 4;

/// Counts what is read from `R`.
#[derive(Debug)]
pub(super) struct Positioned<R> {
    input: R,
    offset: u64,
    line: u64,
    /// The last sixteen bytes passed, newest lowest; zero before the beginning. A shift per byte costs next to nothing.
    passed: u128,
}

impl<R: BufRead> Positioned<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            offset: 0,
            line: 1,
            passed: 0,
        }
    }

    /// Bytes passed so far.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The line of the next byte, counted from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The next byte, not passed; `None` at the end.
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            match self.input.fill_buf() {
                Ok(buffer) => return Ok(buffer.first().copied()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Passes the next byte, which `peek` has shown to be `byte`.
    pub(super) fn pass(&mut self, byte: u8) {
        self.input.consume(1);
        self.offset += 1;
        self.line += u64::from(byte == b'\n');
        self.passed = self.passed << 8 | u128::from(byte);
    }

    /// The next byte that is not JSON white space, not passed; `None` at the end.
    pub(super) fn peek_past_space(&mut self) -> io::Result<Option<u8>> {
        while let Some(byte) = self.peek()? {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Ok(Some(byte));
            }
            self.pass(byte);
        }
        Ok(None)
    }

    /// Whether the official truncation cut the file at this place, give or take the length of its mark. Called when
    /// reading has failed already: it passes the bytes that it looks at.
    pub(super) fn at_official_cut(&mut self) -> io::Result<bool> {
        let mut around = self.passed.to_be_bytes().to_vec();
        while around.len() < size_of::<u128>() + LONGEST_CUT {
            let Some(byte) = self.peek()? else { break };
            self.pass(byte);
            around.push(byte);
        }
        around.retain(|byte| *byte != b'\r');
        Ok(around.windows(CUT.len()).any(|window| window == CUT))
    }
}

impl<R: BufRead> Read for Positioned<R> {
    /// Gives one byte at a time, so that the position is that of the JSON parser and nothing is read ahead.
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let Some(slot) = target.first_mut() else {
            return Ok(0);
        };
        let Some(byte) = self.peek()? else { return Ok(0) };
        *slot = byte;
        self.pass(byte);
        Ok(1)
    }
}
