//! Reads archives of published data sets (tar, tar.gz and zip), checks them and unpacks them.
//!
//! Only regular files and directories are unpacked, into one directory and within limits. Links, paths that leave the directory, and more or larger
//! files than expected are errors. Files from an interrupted call are kept, so that the next call continues.
//!
//! The crate does not download anything, and does not know any data sets.

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
