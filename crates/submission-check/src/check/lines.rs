//! Reads a file's lines as bytes, without copying lines that are completely in the buffer.

use std::{
    cell::Cell,
    io::{self, Read},
};

use memchr::memchr;

/// The number of bytes per read.
const BLOCK: usize = 1 << 16;
/// The largest buffer that is kept for the next file, in bytes.
const MAX_KEPT: usize = 4 << 20;

thread_local! {
    /// The buffer of the file that this thread read before. Reusing it avoids zeroing it again.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The lines of a file, each with its line end, in parts of at most `longest` bytes.
pub(super) struct Lines<R> {
    input: R,
    longest: usize,
    buffer: Vec<u8>,
    /// The range of the buffer that is read but not yet returned.
    begin: usize,
    end: usize,
    /// Whether the input is at its end.
    ended: bool,
}

impl<R: Read> Lines<R> {
    /// Creates a reader; nothing is read yet.
    pub(super) fn new(input: R, longest: usize) -> Self {
        let mut buffer = BUFFER.take();
        buffer.resize(buffer.len().max(BLOCK), 0);
        Self {
            input,
            longest,
            buffer,
            begin: 0,
            end: 0,
            ended: false,
        }
    }

    /// Returns the next line, or `None` at the end. A line longer than the limit is returned in parts.
    ///
    /// # Errors
    /// Returns the error of the input.
    pub(super) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let mut searched = 0;
        loop {
            let held = &self.buffer[self.begin..self.end];
            let most = held.len().min(self.longest);
            let length = match memchr(b'\n', &held[searched..most]) {
                Some(at) => searched + at + 1,
                None if self.ended || most == self.longest => most,
                None => {
                    searched = most;
                    self.fill()?;
                    continue;
                }
            };
            let line = self.begin..self.begin + length;
            self.begin = line.end;
            return Ok((length > 0).then(|| &self.buffer[line]));
        }
    }

    /// Moves the incomplete line to the front of the buffer and reads more of it.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize(2 * self.end, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(count) => {
                    self.end += count;
                    self.ended = count == 0;
                    return Ok(());
                }
            }
        }
    }
}

impl<R> Drop for Lines<R> {
    fn drop(&mut self) {
        if self.buffer.len() <= MAX_KEPT {
            BUFFER.set(std::mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};

    use proptest::prelude::*;

    use super::Lines;

    /// A reader that returns a few bytes at a time.
    struct Slowly<'a>(&'a [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let most = self.1.min(into.len());
            self.0.read(&mut into[..most])
        }
    }

    proptest! {
        /// The lines are those of the standard library, for any sizes of reads, buffer and limit.
        #[test]
        fn lines_are_those_of_the_standard_library(
            parts in prop::collection::vec((0_usize..40_000, any::<bool>()), 0..8),
            step in 1_usize..100_000,
            longest in 1_usize..100_000,
        ) {
            let mut bytes = Vec::new();
            for (length, ended) in parts {
                bytes.resize(bytes.len() + length, b'x');
                bytes.extend(ended.then_some(b'\n'));
            }
            let step = step.max(bytes.len() / 200);
            let longest = longest.max(bytes.len() / 200);
            let mut expected = BufReader::new(bytes.as_slice());
            let mut lines = Lines::new(Slowly(&bytes, step), longest);
            loop {
                let mut line = Vec::new();
                (&mut expected).take(longest as u64).read_until(b'\n', &mut line).unwrap();
                match lines.next().unwrap() {
                    Some(found) => prop_assert!(found == line.as_slice()),
                    None => {
                        prop_assert!(line.is_empty());
                        break;
                    }
                }
            }
        }
    }
}
