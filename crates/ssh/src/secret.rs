//! A password in memory. It is never printed, and is overwritten when it is dropped.

use std::fmt;

/// A password.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps a password.
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the password.
    pub fn expose(&self) -> &str {
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
        // Keeps the compiler from removing the overwrite.
        std::hint::black_box(&bytes);
    }
}
