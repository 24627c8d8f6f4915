//! Archives of published data sets, checked and unpacked: tar, tar.gz and zip.
//!
//! Only regular files and directories are unpacked, below one directory and within limits. A link, a path that leads elsewhere, and more or
//! larger files than expected are errors. What an interrupted call has unpacked is kept, so that a second one continues.
//!
//! The crate downloads nothing and knows no data set.

mod archive;
mod entry;
mod error;
mod file_writer;
mod tar_archive;
mod unpacking;
mod zip_archive;

pub use archive::{Archive, ArchiveKind};
pub use entry::Entry;
pub use error::{ArchiveError, RefusedEntry};
pub use unpacking::{Limits, UnpackReport, Unpacking};
