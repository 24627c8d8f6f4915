//! A password in memory: never printed, gone from memory when it is dropped.

use std::fmt;

/// A password.
#[derive(Clone)]
pub(crate) struct Secret(String);

impl Secret {
    /// Takes a password over.
    pub(crate) const fn new(text: String) -> Self {
        Self(text)
    }

    /// The password itself, for the one place that needs it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.0).into_bytes();
        bytes.fill(0);
        // The compiler may not leave the writing out.
        std::hint::black_box(&bytes);
    }
}
