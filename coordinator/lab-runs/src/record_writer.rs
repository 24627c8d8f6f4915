//! Writes the records of finished runs: the files of several runs at once, then their rows in one transaction. `finish` judges the runs.

use std::fs;

use regatta_fsutil::{atomic_file::AtomicFile, hash::hex, parallel};
use regatta_types::documents::{Record, document_name};

use super::device_judgement::judge_device;
use regatta_lab_store::{self as store, RunOutcome, RunRow, Store, workspace::RunDir};

/// A judged run, whose record is not written yet.
pub(super) struct PendingRecord<'a> {
    pub(super) run: &'a RunRow,
    pub(super) dir: RunDir,
    pub(super) record: Record,
    pub(super) outcome: RunOutcome,
    /// The device's public key, if the store has it.
    pub(super) device_key: Option<[u8; 32]>,
}

/// Writes the files and rows of judged runs, and returns each run's result. A device with `limit` failures in a row is quarantined.
///
/// A run that has changed since it was judged gets no row: the finisher takes it again.
pub(super) fn write_records(
    pending: &[PendingRecord<'_>],
    store: &Store,
    limit: u32,
) -> Vec<anyhow::Result<()>> {
    let written = parallel::for_each_file(pending, |pending| pending.write_files());
    let is_written: Vec<bool> = written.iter().map(Result::is_ok).collect();
    let to_store = || {
        pending
            .iter()
            .zip(&is_written)
            .filter(|(_, is_written)| **is_written)
    };
    let together = store.all_or_nothing(|store| {
        to_store()
            .map(|(pending, _)| pending.store_row(store, limit))
            .collect::<store::Result<Vec<bool>>>()
    });
    let mut stored = match together {
        Ok(stored) => stored.into_iter().map(Ok).collect::<Vec<_>>(),
        // One run's failure does not delay the others.
        Err(_) => to_store()
            .map(|(pending, _)| store.all_or_nothing(|store| pending.store_row(store, limit)))
            .collect(),
    }
    .into_iter();
    let mut results = Vec::with_capacity(pending.len());
    for (pending, written) in pending.iter().zip(written) {
        let result = match written {
            Err(error) => Err(anyhow::Error::from(error).context(document_name::RECORD)),
            Ok(()) => match stored.next() {
                Some(Ok(is_recorded)) => {
                    pending.tell(is_recorded);
                    Ok(())
                }
                Some(Err(error)) => Err(error.into()),
                None => Err(anyhow::anyhow!("its row was not written")),
            },
        };
        results.push(result);
    }
    results
}

impl PendingRecord<'_> {
    fn write_files(&self) -> std::io::Result<()> {
        if let Some(key) = &self.device_key {
            AtomicFile::new(&self.dir.device_key()).write(format!("{}\n", hex(key)).as_bytes())?;
        }
        let mut text = serde_json::to_vec_pretty(&self.record)?;
        text.push(b'\n');
        AtomicFile::new(&self.dir.record()).write(&text)
    }

    /// Returns `false` when the run has changed meanwhile, for example by a new state.
    fn store_row(&self, store: &Store, limit: u32) -> store::Result<bool> {
        let is_recorded = store.runs().record(self.run, &self.record, &self.outcome)?;
        if is_recorded {
            judge_device(store, self.run.id, limit)?;
        }
        Ok(is_recorded)
    }

    fn tell(&self, is_recorded: bool) {
        if is_recorded {
            // Fails, as intended, while the directory still has a partial stream.
            let _ = fs::remove_dir(self.dir.partial());
            tracing::info!(run = %self.run.id, phase = %self.record.state.phase, complete = self.outcome.complete, "recorded");
        }
    }
}
