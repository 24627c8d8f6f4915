//! The quickstart's audits: all audits of the round, for every scenario of an edge submission.

use regatta_catalogue::catalogue::Catalogue;
use regatta_types::{Mode, Scenario, benchmark::Benchmark};

use super::{agent::Agent, flow::Session, subject::EDGE};
use crate::exit::Failure;
use regatta_lab_runs::audit::{drafts, find};
use regatta_lab_store::{RunDraft, RunRow, Store};
use regatta_lab_views::wording;

/// The number of further attempts for a scenario with a failed audit.
const TRIES: usize = 2;

impl Session<'_> {
    /// Runs the audits. If one fails, its scenario is measured again first, because audits compare speeds, which drift on a busy machine. The new run
    /// replaces the earlier one.
    pub(super) fn audit(
        &self,
        store: &Store,
        agent: &mut Agent,
        catalogue: &Catalogue,
        benchmark: &Benchmark,
        runs: &mut [RunRow],
    ) -> Result<Vec<RunRow>, Failure> {
        let requested = self.audits_of(&EDGE, store, catalogue, benchmark, runs)?;
        let mut audits = self.run_all(store, agent, &requested)?;
        for _ in 0..TRIES {
            let failed = || audits.iter().filter(|row| !row.is_good());
            for row in failed() {
                (self.tell)(&format!("again: {}", wording::why_not(row)));
            }
            let scenarios: Vec<Scenario> = EDGE
                .into_iter()
                .filter(|&scenario| failed().any(|row| row.scenario == scenario))
                .collect();
            if scenarios.is_empty() {
                break;
            }
            self.measure_again(&scenarios, store, agent, runs)?;
            let requested = self.audits_of(&scenarios, store, catalogue, benchmark, runs)?;
            audits.retain(|row| !scenarios.contains(&row.scenario));
            audits.extend(self.run_all(store, agent, &requested)?);
        }
        audits.sort_by_key(|row| EDGE.iter().position(|&scenario| scenario == row.scenario));
        Ok(audits)
    }

    /// Returns the audits of the newest good runs in these scenarios. A scenario without such runs is already reported.
    fn audits_of(
        &self,
        scenarios: &[Scenario],
        store: &Store,
        catalogue: &Catalogue,
        benchmark: &Benchmark,
        runs: &[RunRow],
    ) -> Result<Vec<RunDraft>, Failure> {
        let Some(run) = runs.first() else {
            return Ok(Vec::new());
        };
        let mut requested = Vec::new();
        for &scenario in scenarios {
            match find(self.workspace, store, &run.device, benchmark, scenario) {
                Ok(audited) => {
                    let round = catalogue
                        .round(Some(&audited.performance.draft.spec.round))
                        .map_err(Failure::usage)?;
                    requested.extend(drafts(self.workspace, round, &audited, &[])?);
                }
                Err(error) => (self.tell)(&format!("{scenario} is not audited: {error}")),
            }
        }
        Ok(requested)
    }

    /// Repeats the performance runs of these scenarios. A new run that is not good does not replace the earlier one.
    fn measure_again(
        &self,
        scenarios: &[Scenario],
        store: &Store,
        agent: &mut Agent,
        runs: &mut [RunRow],
    ) -> Result<(), Failure> {
        let mut earlier: Vec<&mut RunRow> = runs
            .iter_mut()
            .filter(|row| row.mode == Mode::PerformanceOnly && scenarios.contains(&row.scenario))
            .collect();
        let requested: Vec<RunDraft> = earlier.iter().map(|row| row.draft.repeated()).collect();
        for (earlier, row) in earlier.iter_mut().zip(self.run_all(store, agent, &requested)?) {
            if row.is_good() {
                **earlier = row;
            }
        }
        Ok(())
    }
}
