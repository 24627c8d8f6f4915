//! Errors of the asset store and of the sources that are copied into it.

use std::{
    io,
    path::{Path, PathBuf},
};

use regatta_types::{assets::NotALine, samples::NotWhole};

/// An error of the asset store.
#[derive(Debug, thiserror::Error)]
pub enum AssetStoreError {
    /// A file or directory cannot be used.
    #[error("cannot use {}", .path.display())]
    Io {
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A manifest cannot hold the name.
    #[error("{} has a name that cannot be kept: too long, not UTF-8, or with control characters in it", .0.display())]
    Name(PathBuf),
    /// The preparation of the samples is not finished.
    #[error(transparent)]
    NotWhole(#[from] NotWhole),
    /// The source is neither a file nor a directory.
    #[error("{} is neither a file nor a directory", .0.display())]
    Kind(PathBuf),
    /// The source has changed during the copy, so that the copy may be a mixture.
    #[error("{} has changed while it was copied; hint: run the same command again once nothing writes there", .0.display())]
    Changed(PathBuf),
    /// A tree's manifest is damaged, so the files that the tree needs are unknown.
    #[error(
        "{} is damaged, and the files of its tree are unknown: add the tree again with `regatta asset add`, or \
         remove it with `regatta asset remove`",
        .path.display()
    )]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// The first line that cannot be parsed.
        #[source]
        source: NotALine,
    },
}

/// Returns a function that adds the path to an error of the system.
pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> AssetStoreError + use<> {
    let path = path.to_owned();
    move |source| AssetStoreError::Io { path, source }
}
