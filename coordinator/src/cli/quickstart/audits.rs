//! The quickstart's audits: all audits of the round, for every scenario of an edge submission.

use regatta_catalogue::catalogue::Catalogue;
use regatta_types::{DeviceId, benchmark::Benchmark};

use super::{agent::Agent, flow::Session, subject::EDGE};
use crate::exit::Failure;
use regatta_lab_runs::audit::{drafts, find};
use regatta_lab_store::{RunRow, Store};
use regatta_lab_views::wording;

/// The number of further attempts for a failed audit, because speeds vary on a machine with other work.
const TRIES: usize = 1;

impl Session<'_> {
    /// Runs the audits of the device's newest good runs. A scenario without such runs is already reported.
    pub(super) fn audit(
        &self,
        store: &Store,
        agent: &mut Agent,
        catalogue: &Catalogue,
        benchmark: &Benchmark,
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
                (self.tell)(&format!("again: {}", wording::why_not(&rows[at])));
                again.push(rows[at].draft.repeated());
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
