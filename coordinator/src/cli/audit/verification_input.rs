//! The input of `audit verify`: directories, or an audit's run of this workspace. The run's record gets the verdict.

use std::path::PathBuf;

use regatta_submission_stage::audit::{AuditReport, Audited, Dtype};

use super::{super::Context, verify_args::Args};
use crate::exit::Failure;
use regatta_lab_runs as runs;
use regatta_lab_store::{RunRow, Store, workspace::Workspace};
use regatta_lab_views::lookup;

/// The audit to verify, and where the verdict is written.
pub(super) struct VerificationInput {
    pub(super) audited: Audited,
    pub(super) compliance: PathBuf,
    pub(super) output: PathBuf,
    pub(super) dtype: Dtype,
    pub(super) round: Option<String>,
    pub(super) benchmark: Option<String>,
    run: Option<(Workspace, Store, RunRow)>,
}

impl VerificationInput {
    /// Returns the input that the command line names.
    pub(super) fn of(args: &Args, context: &Context) -> Result<Self, Failure> {
        match (&args.run, &args.results, &args.compliance, &args.output) {
            (Some(run), ..) => Self::of_run(args, run, context),
            (None, Some(results), Some(compliance), Some(output)) => Ok(Self {
                audited: Audited::in_results(results),
                compliance: compliance.clone(),
                output: output.clone(),
                dtype: args.dtype.unwrap_or_default(),
                round: args.round.clone(),
                benchmark: args.benchmark.clone(),
                run: None,
            }),
            _ => Err(Failure::misuse(
                "name --results, --compliance and --output, or --run",
            )),
        }
    }

    fn of_run(args: &Args, run: &str, context: &Context) -> Result<Self, Failure> {
        let (workspace, store) = context.open_store()?;
        let row = lookup::run(&store, run)?;
        let spec = &row.draft.spec;
        let Some(of) = spec.audit.as_ref().filter(|of| of.test == args.test.name()) else {
            return Err(Failure::misuse(format!(
                "run {} is not an audit of {}",
                row.id,
                args.test.name()
            )));
        };
        if row.recorded.is_none() {
            return Err(Failure::misuse(format!("run {} has no record yet", row.id)));
        }
        runs::audit::expect_proven(&workspace, &store, row.id, of)?;
        let own = workspace.run(row.id);
        Ok(Self {
            audited: Audited {
                performance: workspace.run(of.performance).files(),
                accuracy: workspace.run(of.accuracy.unwrap_or(of.performance)).files(),
            },
            compliance: own.files(),
            output: own.audit(),
            dtype: args
                .dtype
                .unwrap_or_else(|| Dtype::of(spec.benchmark.model.response)),
            round: Some(args.round.clone().unwrap_or_else(|| spec.round.clone())),
            // Without a script, the accuracies are unchanged.
            benchmark: args
                .benchmark
                .clone()
                .or_else(|| args.accuracy_script.as_ref().map(|_| spec.benchmark.name.clone())),
            run: Some((workspace, store, row)),
        })
    }

    /// Stores the verdict in the run's record, if it is a run of the workspace.
    pub(super) fn keep(&self, report: &AuditReport, explanation: Option<&str>) -> Result<(), Failure> {
        if let Some((workspace, store, row)) = &self.run {
            runs::audit::keep(workspace, store, row, report, explanation.unwrap_or_default())?;
        }
        Ok(())
    }
}
