//! The files that an ended run still lacks, by the signed evidence and by this disk. The device's list of files is not signed, so it
//! alone does not make a run complete.

use regatta_types::{RunId, StreamName};

use super::evidence::Proven;
use crate::{
    store::{self, Store, StreamRow},
    workspace::RunDir,
};

/// The files that the device must deliver, or deliver again.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Missing {
    /// Files that valid evidence lists and that are not here.
    unlisted: Vec<StreamName>,
    /// Files that were delivered and acknowledged, and are now missing or changed on this disk.
    damaged: Vec<StreamName>,
}

impl Missing {
    /// Returns the missing files of a run with these streams.
    pub(super) fn of(proven: &Proven, streams: &[StreamRow]) -> Self {
        let named = proven.signed().into_iter().flat_map(|evidence| &evidence.files);
        let is_whole = |name: &StreamName| streams.iter().any(|stream| stream.whole && stream.name == *name);
        let is_sound = |stream: &StreamRow| {
            let mut proofs = proven.delivery.streams.iter();
            proofs.any(|proof| proof.name == stream.name && proof.sha256 == stream.stated_sha256)
        };
        Self {
            unlisted: named
                .map(|file| file.name.clone())
                .filter(|name| !is_whole(name))
                .collect(),
            damaged: streams
                .iter()
                .filter(|stream| stream.whole && !is_sound(stream))
                .map(|stream| stream.name.clone())
                .collect(),
        }
    }

    /// Returns whether no file is missing.
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Marks the missing files as open in the store, so that the dispatcher requests them from the device.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(super) fn wait_for(&self, store: &Store, dir: &RunDir, run: RunId) -> store::Result<()> {
        for name in &self.damaged {
            tracing::error!(
                %run,
                "{} is missing or changed since it was delivered: requesting it again. hint: is the disk sound?",
                dir.file(name).display()
            );
        }
        store.all_or_nothing(|store| {
            self.unlisted
                .iter()
                .try_for_each(|name| store.list_stream(run, name))?;
            self.damaged
                .iter()
                .try_for_each(|name| store.stream_is_damaged(run, name))
        })
    }
}
