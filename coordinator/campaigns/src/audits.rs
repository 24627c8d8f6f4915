//! The audits of a plan's cells: the compliance tests that follow a table's combinations. It drafts no runs; [`super::audit_draft`] does
//! when the audited runs exist.

use regatta_catalogue::catalogue::Catalogue;
use regatta_types::Mode;

use super::{cell_table::CellTable, plan_file::CampaignPlan, plan_problem::PlanProblem};
use regatta_lab_store::Placement;

/// The audits of one table.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Audits {
    /// The names of the tests, as the round has them.
    tests: Vec<String>,
    /// The combinations of performance runs, each with that of its accuracy runs. Both are places in the table's list of combinations.
    audited: Vec<(usize, usize)>,
    /// The number of the table's modes.
    modes: usize,
}

/// One audit of one combination.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Audit<'a> {
    pub(super) test: &'a str,
    /// Its place after the table's modes.
    pub(super) order: usize,
    /// The place of the combination of performance runs.
    pub(super) performance: usize,
    /// The place of the combination of accuracy runs.
    pub(super) accuracy: usize,
}

impl Audits {
    /// Returns the audits of a table. `modes` has the mode of each of its combinations, mode after mode. The placement comes with the number
    /// of devices.
    ///
    /// # Errors
    /// Returns [`PlanProblem`] when the round or the benchmark does not have such an audit, or when an audit would run without an accuracy run.
    pub(super) fn of(
        plan: &CampaignPlan,
        table: &CellTable,
        modes: &[Mode],
        placement: Placement,
        devices: usize,
        catalogue: &Catalogue,
    ) -> Result<Self, PlanProblem> {
        let Some(first) = table.audits.first() else {
            return Ok(Self::default());
        };
        let tests = tests(plan, table, catalogue)?;
        let mut kinds: Vec<Mode> = Vec::new();
        for mode in modes {
            if !kinds.contains(mode) {
                kinds.push(*mode);
            }
        }
        let per_mode = modes.len() / kinds.len().max(1);
        let position = |mode: Mode| kinds.iter().position(|kind| *kind == mode);
        let pairs = [
            position(Mode::PerformanceOnly).zip(position(Mode::AccuracyOnly)),
            position(Mode::SubmissionRun).map(|both| (both, both)),
        ];
        let audited: Vec<(usize, usize)> = pairs
            .into_iter()
            .flatten()
            .flat_map(|(performance, accuracy)| {
                (0..per_mode).map(move |index| (performance * per_mode + index, accuracy * per_mode + index))
            })
            .collect();
        if audited.is_empty() {
            let what =
                "an audit compares a performance run with an accuracy run, and these cells do not have both";
            return Err(plan
                .problem(&first.span(), what)
                .hint("write mode = [\"AccuracyOnly\", \"PerformanceOnly\"]"));
        }
        if placement != Placement::Each && devices > 1 {
            let what = format!(
                "an audit needs both of its runs on one device, and placement `{placement}` may spread them over {devices}"
            );
            return Err(plan
                .problem(&first.span(), what)
                .hint("write placement = \"each\", or name one device"));
        }
        Ok(Self {
            tests,
            audited,
            modes: kinds.len(),
        })
    }

    /// Returns the number of combinations that are audits.
    pub(super) const fn combinations(&self) -> usize {
        self.tests.len() * self.audited.len()
    }

    /// Returns every audit.
    pub(super) fn each(&self) -> impl Iterator<Item = Audit<'_>> {
        let tests = self.tests.iter().enumerate();
        tests.flat_map(move |(index, test)| {
            self.audited.iter().map(move |(performance, accuracy)| Audit {
                test,
                order: self.modes + index,
                performance: *performance,
                accuracy: *accuracy,
            })
        })
    }
}

/// Returns the names of the tests, each checked against the round and the benchmark.
fn tests(plan: &CampaignPlan, table: &CellTable, catalogue: &Catalogue) -> Result<Vec<String>, PlanProblem> {
    let place = table.benchmark.span();
    let chain = |error| plan.problem(&place, regatta_text::ErrorChain(&error).to_string());
    let benchmark = catalogue.benchmark(table.benchmark.get_ref()).map_err(chain)?;
    let round = catalogue.round(table.round.as_deref()).map_err(chain)?;
    let required = round.audits_of(benchmark);
    let mut tests: Vec<String> = Vec::new();
    for word in &table.audits {
        let named = word.get_ref();
        let Some(test) = round.audits.keys().find(|test| test.eq_ignore_ascii_case(named)) else {
            let known: Vec<&str> = round.audits.keys().map(String::as_str).collect();
            let what = format!("round {} has no {named}; it has {}", round.name, known.join(", "));
            return Err(plan.problem(&word.span(), what));
        };
        if !required.contains(&test.as_str()) {
            let what = match required.as_slice() {
                [] => format!("round {} requires no audit of {}", round.name, benchmark.name),
                required => format!(
                    "round {} requires no {test} of {}, but {}",
                    round.name,
                    benchmark.name,
                    required.join(", ")
                ),
            };
            return Err(plan.problem(&word.span(), what));
        }
        if !tests.contains(test) {
            tests.push(test.clone());
        }
    }
    Ok(tests)
}
