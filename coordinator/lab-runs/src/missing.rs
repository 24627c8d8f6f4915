//! The differences between the files of an ended run that have arrived and its signed evidence. The evidence is authoritative: listed files that are
//! missing are requested, files that differ are requested again, and unlisted files are dropped.

use regatta_types::{
    RunId, StreamName,
    documents::document_name::{EVIDENCE, EVIDENCE_SIGNATURE},
};

use super::evidence::Proven;
use regatta_lab_store::{self as store, Store, StreamRow, workspace::RunDir};

/// The files that the device must deliver, or deliver again, and those that are not the run's.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// Every file of the run by the signed evidence, with the evidence and its signature. Empty without signed evidence.
    listed: Vec<StreamName>,
    /// Listed files that are not here completely.
    incomplete: Vec<StreamName>,
    /// Files that were delivered and acknowledged, and are now missing or changed on this disk.
    damaged: Vec<StreamName>,
    /// Files that were delivered, and are not those that the evidence lists.
    contradicted: Vec<StreamName>,
    /// Streams that neither the evidence nor the device's list of files has.
    unlisted: Vec<StreamName>,
}

impl Missing {
    /// Returns the differences of a run with these streams.
    pub(super) fn of(proven: &Proven, streams: &[StreamRow]) -> Self {
        let evidence = proven.signed();
        let own = [EVIDENCE, EVIDENCE_SIGNATURE]
            .into_iter()
            .filter_map(|name| name.parse().ok());
        let listed: Vec<StreamName> = evidence.map_or_else(Vec::new, |evidence| {
            let files = evidence.files.iter().map(|file| file.name.clone());
            files.chain(own).collect()
        });
        let is_received = |name: &StreamName| {
            streams
                .iter()
                .any(|stream| stream.is_complete && stream.name == *name)
        };
        let is_sound = |stream: &StreamRow| {
            let mut proofs = proven.delivery.streams.iter();
            proofs.any(|proof| proof.name == stream.name && proof.sha256 == stream.stated_sha256)
        };
        let is_contradicted = |name: &StreamName| {
            let is_listed = evidence.is_some_and(|evidence| evidence.file(name.as_str()).is_some());
            is_listed && proven.file(name.as_str()).is_err()
        };
        let names = |matches: &dyn Fn(&StreamRow) -> bool| -> Vec<StreamName> {
            let matching = streams.iter().filter(|stream| matches(stream));
            matching.map(|stream| stream.name.clone()).collect()
        };
        Self {
            incomplete: listed
                .iter()
                .filter(|&name| !is_received(name))
                .cloned()
                .collect(),
            damaged: names(&|stream| stream.is_complete && !is_sound(stream)),
            contradicted: names(&|stream| {
                stream.is_complete && is_sound(stream) && is_contradicted(&stream.name)
            }),
            unlisted: names(&|stream| evidence.is_some() && !stream.listed && !listed.contains(&stream.name)),
            listed,
        }
    }

    /// Returns whether nothing is missing and nothing is left over.
    pub(super) fn is_nothing(&self) -> bool {
        [
            &self.incomplete,
            &self.damaged,
            &self.contradicted,
            &self.unlisted,
        ]
        .into_iter()
        .all(Vec::is_empty)
    }

    /// Returns whether only files are left that their device delivered other than its evidence lists them.
    pub(super) fn is_contradiction(&self) -> bool {
        !self.contradicted.is_empty()
            && [&self.incomplete, &self.damaged, &self.unlisted]
                .into_iter()
                .all(Vec::is_empty)
    }

    /// Marks the missing files as open in the store, so that the dispatcher requests them from the device, and drops the unlisted ones.
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
        for name in &self.contradicted {
            tracing::warn!(%run, "{name} differs from the signed evidence: requesting it again");
        }
        let dropped = store.all_or_nothing(|store| {
            let mut again = self.damaged.iter().chain(&self.contradicted);
            again.try_for_each(|name| store.streams().reset(run, name))?;
            if self.listed.is_empty() {
                return Ok(Vec::new());
            }
            store.streams().list_signed(run, &self.listed)
        })?;
        for name in &dropped {
            tracing::warn!(%run, "{name} is dropped, because the signed evidence does not list it");
            dir.remove_stream(name);
        }
        Ok(())
    }
}
