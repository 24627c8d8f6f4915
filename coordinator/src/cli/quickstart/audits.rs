//! The quickstart's audits: all that the round has, of every scenario that an edge system submits.

use regatta_types::{DeviceId, RunId, benchmark::Benchmark};

use super::{agent::Agent, flow::Session, subject::EDGE};
use crate::{
    exit::Failure,
    runs::{
        Catalogue,
        audit::{drafts, find},
    },
    store::{RunRow, Store},
    tables,
};

/// Further tries of an audit that failed: on a machine that does other work besides, speeds waver.
const TRIES: usize = 1;

impl Session<'_> {
    /// Runs the audits of the device's newest good runs. A scenario without such runs has been told of already.
    pub(super) fn audit(
        &self,
        store: &Store,
        agent: &mut Agent,
        (catalogue, benchmark): (&Catalogue, &Benchmark),
        device: &DeviceId,
    ) -> Result<Vec<RunRow>, Failure> {
        let mut requested = Vec::new();
        for scenario in EDGE {
            match find(self.workspace, store, device, benchmark, scenario) {
                Ok(audited) => {
                    let round = catalogue
                        .round(Some(&audited.performance.draft.spec.round))
                        .map_err(Failure::usage)?;
                    requested.extend(drafts(self.workspace, round, &audited, &[])?);
                }
                Err(error) => (self.tell)(&format!("{scenario} is not audited: {error}")),
            }
        }
        let mut rows = self.run_all(store, agent, &requested)?;
        for _ in 0..TRIES {
            let failed: Vec<usize> = (0..rows.len()).filter(|&at| !rows[at].is_good()).collect();
            let mut again = Vec::new();
            for &at in &failed {
                (self.tell)(&format!("again: {}", tables::why_not(&rows[at])));
                let mut draft = rows[at].draft.clone();
                draft.spec.run = RunId::now();
                again.push(draft);
            }
            if again.is_empty() {
                break;
            }
            for (at, row) in failed.into_iter().zip(self.run_all(store, agent, &again)?) {
                rows[at] = row;
            }
        }
        Ok(rows)
    }
}
