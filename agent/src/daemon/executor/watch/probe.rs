//! A sensor as an open file. Each read starts at the beginning, and the kernel then returns the current value. No file
//! is opened while LoadGen runs.

use std::{fs::File, os::unix::fs::FileExt as _, path::Path};

/// Largest value in bytes. Kernel values are shorter.
const MAX: usize = 256;

/// An open file that contains a value.
#[derive(Debug)]
pub(super) struct Probe(File);

impl Probe {
    /// Opens the file. Returns `None` if it does not exist or cannot be read.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let probe = Self(File::open(path).ok()?);
        // A sensor of a powered-off component fails on every read.
        probe.text().map(|_| probe)
    }

    /// Reads the current text.
    pub(super) fn text(&self) -> Option<String> {
        let mut bytes = [0; MAX];
        let length = self.0.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(bytes.get(..length)?).ok()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Reads the current number.
    pub(super) fn number(&self) -> Option<i64> {
        self.text()?.parse().ok()
    }
}
