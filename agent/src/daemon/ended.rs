//! From ended to sealed: one run after the other, never beside a running one. How a run is sealed stands in `sealing.rs`.

use std::{path::Path, sync::Arc, time::Instant};

use regatta_rules::{
    RunId,
    documents::{RunPhase, RunState},
};
use tokio::task::{JoinError, spawn_blocking};

use super::{
    link::Link,
    run_dir::Ending,
    sealing::{self, SealRequest, Sealed},
    service::Service,
};

impl<L: Link> Service<L> {
    /// A run has ended, one way or another: it is to be sealed.
    pub(super) fn end_run(&mut self, id: RunId, ending: Ending) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        self.reserve.release_if_full();
        run.end(ending);
        self.last_ended = Some(Instant::now());
        self.to_seal.push_back(id);
    }

    /// Seals the next run that has ended, one at a time and never beside a running one. The files of one
    /// that ended well go on their way while they are hashed.
    pub(super) fn seal_next(&mut self) {
        if self.sealing.is_some() || self.active.is_some() {
            return;
        }
        let Some(id) = self.to_seal.pop_front() else {
            return;
        };
        let Some(run) = self.runs.get_mut(&id) else { return };
        let ending = run.job.ending.clone().unwrap_or(Ending {
            phase: run.phase(),
            reason: None,
        });
        // Its process has flushed what it logged. Of a run that ended badly nothing leaves before it is sealed.
        if ending.phase == RunPhase::Draining {
            run.open_for_delivery();
        }
        let request = SealRequest {
            run: id,
            dir: run.dir.clone(),
            identity: Arc::clone(&self.identity),
            already_sealed: run.job.sealed,
            outcome: RunState {
                phase: ending.phase,
                reason: ending.reason,
                revision: run.job.state.revision.saturating_add(1),
            },
            before: run.job.before.clone(),
            after: self.facts.read(),
            window: run.job.window.clone(),
            device_state: run.job.device_state.clone(),
            foreign_root: foreign_root(&self.config.system_root),
        };
        self.sealing = Some((id, spawn_blocking(move || sealing::seal(&request))));
    }

    pub(super) fn take_sealed(&mut self, id: RunId, sealed: Result<Sealed, JoinError>) {
        self.sealing = None;
        let sealed = sealed.unwrap_or_else(|e| {
            tracing::error!("run {id}: the sealing thread ended: {e}");
            Sealed {
                streams: Vec::new(),
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

/// Why what was read of the device says nothing about it.
fn foreign_root(root: &Path) -> Option<String> {
    (root != Path::new("/")).then(|| {
        format!(
            "the device's state and sensors were read below {}, not from the machine itself",
            root.display()
        )
    })
}
