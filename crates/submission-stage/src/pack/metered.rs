//! A reader with a byte limit, which stops an archive that expands to a multiple of its size.

use std::{
    cell::Cell,
    io::{self, Read},
    rc::Rc,
};

/// The number of bytes that may still be read, shared with the reader.
#[derive(Debug, Clone, Default)]
pub(super) struct Allowance {
    left: Rc<Cell<u64>>,
    is_exceeded: Rc<Cell<bool>>,
}

/// A reader that stays within its allowance.
#[derive(Debug)]
pub(super) struct MeteredReader<R> {
    inner: R,
    allowance: Allowance,
}

impl Allowance {
    /// Allows `bytes` bytes from here on.
    pub(super) fn set(&self, bytes: u64) {
        self.left.set(bytes);
    }

    /// Returns whether a read would have exceeded the allowance.
    pub(super) fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }
}

impl<R> MeteredReader<R> {
    /// Creates a reader with this allowance.
    pub(super) const fn new(inner: R, allowance: Allowance) -> Self {
        Self { inner, allowance }
    }
}

impl<R: Read> Read for MeteredReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.allowance.left.get();
        // Reading one byte more than allowed distinguishes the end of the data from the end of the allowance.
        let most = usize::try_from(left.saturating_add(1)).unwrap_or(usize::MAX);
        let most = most.min(into.len());
        let read = self.inner.read(into.get_mut(..most).unwrap_or_default())?;
        let Some(after) = left.checked_sub(read as u64) else {
            self.allowance.is_exceeded.set(true);
            return Err(io::Error::other("more data than is allowed"));
        };
        self.allowance.left.set(after);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metered_reader_stops_at_its_limit() {
        let allowance = Allowance::default();
        let mut reader = MeteredReader::new([7; 10].as_slice(), allowance.clone());
        let mut bytes = Vec::new();
        allowance.set(10);
        assert_eq!(reader.read_to_end(&mut bytes).unwrap(), 10);
        assert!(!allowance.is_exceeded());
        let mut reader = MeteredReader::new([7; 10].as_slice(), allowance.clone());
        allowance.set(9);
        reader.read_to_end(&mut bytes).unwrap_err();
        assert!(allowance.is_exceeded());
    }
}
