//! One sensor as an open file: read again and again from its beginning, which the kernel answers anew each time. Nothing is
//! opened while LoadGen runs.

use std::{fs::File, os::unix::fs::FileExt as _, path::Path};

/// Longer than any value of the kernel's that is read here.
const LONGEST: usize = 256;

/// An open file that holds a value.
#[derive(Debug)]
pub(super) struct Probe(File);

impl Probe {
    /// Opens it; `None` where it is not there or this user may not.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let probe = Self(File::open(path).ok()?);
        // A sensor whose part is switched off refuses now and later.
        probe.text().map(|_| probe)
    }

    /// What it says now.
    pub(super) fn text(&self) -> Option<String> {
        let mut bytes = [0; LONGEST];
        let length = self.0.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(bytes.get(..length)?).ok()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The number that it says now.
    pub(super) fn number(&self) -> Option<i64> {
        self.text()?.parse().ok()
    }
}
