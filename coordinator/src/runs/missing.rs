//! What a run that has ended still lacks here, by what its device has signed and by what lies on this disk. The device's list of files
//! is not signed: it alone does not make a run complete.

use regatta_types::{RunId, StreamName};

use super::evidence::Proven;
use crate::{
    store::{self, Store, StreamRow},
    workspace::RunDir,
};

/// Files that are to come, or to come again.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Missing {
    /// Named by valid evidence, and not here.
    unlisted: Vec<StreamName>,
    /// Delivered and acknowledged, and gone from this disk or changed on it.
    damaged: Vec<StreamName>,
}

impl Missing {
    /// What is missing of a run with these streams.
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

    /// Whether nothing is.
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Has the missing files waited for: the dispatcher asks the device for them.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) fn wait_for(&self, store: &Store, dir: &RunDir, run: RunId) -> store::Result<()> {
        for name in &self.damaged {
            tracing::error!(
                %run,
                "{} is gone or changed since it was delivered: asking for it again. hint: is the disk sound?",
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
