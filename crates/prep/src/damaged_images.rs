//! Images that are damaged: what is wrong with each, and their list. `regatta_jpeg` finds the damage; preparations decide whether they take it.

use std::fmt;

use regatta_jpeg::{Damage, JpegError};

use crate::image_formats::FormatError;

/// The largest number of images that a message names.
const MAX_NAMED: usize = 10;

/// An image of a dataset that is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedImage {
    /// Its name in the labels or annotations.
    pub name: String,
    /// What is wrong with it.
    pub fault: ImageFault,
}

/// What is wrong with an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageFault {
    /// It cannot be decoded.
    #[error(transparent)]
    Undecodable(JpegError),
    /// It is an image of another format that cannot be decoded.
    #[error(transparent)]
    Unreadable(FormatError),
    /// It can be decoded, but the benchmark's reference does not do it.
    #[error("{0}, and the benchmark's reference does not decode it")]
    RefusedByReference(Damage),
    /// The reference decodes it as well as it can.
    #[error(transparent)]
    Damaged(Damage),
}

impl ImageFault {
    /// Returns whether the reference has a sample of the image nevertheless.
    #[must_use]
    pub const fn has_sample(&self) -> bool {
        matches!(self, Self::Damaged(_))
    }
}

/// Displays the first images of a list with what is wrong with them, and the number of others.
pub(crate) struct FirstDamaged<'a>(pub(crate) &'a [DamagedImage]);

impl fmt::Display for FirstDamaged<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, image) in self.0.iter().take(MAX_NAMED).enumerate() {
            let separator = if number == 0 { "" } else { "; " };
            write!(f, "{separator}{}: {}", image.name, image.fault)?;
        }
        match self.0.len().saturating_sub(MAX_NAMED) {
            0 => Ok(()),
            others => write!(f, "; and {others} others"),
        }
    }
}
