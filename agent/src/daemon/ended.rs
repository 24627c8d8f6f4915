//! From the end of a run to its sealing. Runs are sealed one at a time, never while a run is active. `sealing.rs`
//! implements sealing.

use std::{path::Path, sync::Arc, time::Instant};

use regatta_types::RunId;
use tokio::task::JoinError;

use super::{
    link::Link,
    run_dir::Ending,
    sealing::{self, SealRequest, Sealed},
    sealing_thread::{SealNews, Sealing},
    service::Service,
};

impl<L: Link> Service<L> {
    /// Ends a run and queues it for sealing.
    pub(super) fn end_run(&mut self, id: RunId, ending: Ending) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        self.storage.reserve.release_if_full();
        run.end(ending);
        self.last_ended = Some(Instant::now());
        self.to_seal.push_back(id);
    }

    /// Starts sealing the next run that has ended. Sealing waits for the active run and for the last flush of a live
    /// run.
    pub(super) fn seal_next(&mut self) {
        if self.sealing.is_some() || self.active.is_some() || self.live.is_some() {
            return;
        }
        let Some(id) = self.to_seal.pop_front() else {
            return;
        };
        let Some(run) = self.runs.get_mut(&id) else { return };
        let request = SealRequest {
            run: id,
            dir: run.dir.clone(),
            identity: Arc::clone(&self.identity),
            already_sealed: run.job.sealed && run.job.owed.is_empty(),
            listed_evidence: sealing::EVIDENCE
                .parse()
                .ok()
                .and_then(|evidence| run.outbox.sha256(&evidence)),
            outcome: run.provable_state(),
            before: run.job.before.clone(),
            after: self.facts.read(),
            window: run.job.window.clone(),
            device_state: run.job.device_state.clone(),
            foreign_root: foreign_root(&self.config.system_root),
        };
        self.sealing = Some(Sealing::start(request));
    }

    /// Handles a report of the sealing thread. Flushed files are delivered while they are hashed.
    pub(super) fn take_seal_news(&mut self, news: SealNews) {
        match news {
            SealNews::Flushed(id, on_disk) => {
                if let Some(run) = self.runs.get_mut(&id) {
                    run.open_for_delivery(&on_disk);
                }
            }
            SealNews::Sealed(id, sealed) => self.take_sealed(id, sealed),
        }
    }

    fn take_sealed(&mut self, id: RunId, sealed: Result<Sealed, JoinError>) {
        self.sealing = None;
        let sealed = sealed.unwrap_or_else(|e| {
            tracing::error!("run {id}: the sealing thread ended: {e}");
            Sealed {
                streams: Vec::new(),
                unread: Vec::new(),
                all_hashed: false,
                incomplete: Some(sealing::SealError::Thread),
            }
        });
        if let Some(run) = self.runs.get_mut(&id) {
            run.take_sealed(sealed);
            run.settle_delivery();
            self.due.states.insert(id);
        }
    }
}

/// Returns why the facts do not describe this machine, if the configuration names another root.
fn foreign_root(root: &Path) -> Option<String> {
    (root != Path::new("/")).then(|| {
        format!(
            "the device's state and sensors were read below {}, not from the machine itself",
            root.display()
        )
    })
}
