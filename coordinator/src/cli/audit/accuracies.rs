//! TEST01 part III on the command line: the script that computes the two accuracies, and their allowed difference.

use std::{error::Error, path::Path, process::Command};

use regatta_catalogue::catalogue::Catalogue;
use regatta_submission_stage::audit::{
    AuditRequest,
    part_three::{AccuracyScript, compare_accuracies, limits, limits_by_name},
};
use regatta_types::documents::AccuracyDelta;

use super::super::{Context, accuracy::labels};
use crate::exit::Failure;
use regatta_lab_runs::accuracy_line;

/// The truncated log of the accuracy run, stored beside the audit's directory while scripts read it. It is not part of a submission.
const BASELINE: &str = "mlperf_log_accuracy_baseline.json";

/// Compares the accuracies of a benchmark's two runs.
pub(super) fn compare(
    args: &super::verify_args::Args,
    request: &AuditRequest<'_>,
    name: &str,
    catalogue: &Catalogue,
    context: &Context,
) -> Result<Vec<AccuracyDelta>, Failure> {
    // The round knows more benchmarks than there are benchmark files.
    let (limits, own) = match (limits_by_name(request.round, name), catalogue.benchmark(name)) {
        (Some(limits), own) => (limits, own.ok()),
        (None, own) => {
            let own = own.map_err(Failure::usage)?;
            (limits(request.round, own), Some(own))
        }
    };
    let baseline = request.output.join(BASELINE);
    let baseline = baseline.as_path();
    let run = |script: &mut AccuracyScript<'_>| compare_accuracies(request, &limits, baseline, script);
    let compared = match (&args.accuracy_script, own) {
        (Some(command), _) => run(&mut |log| run_script(command, log)),
        (None, Some(benchmark)) if benchmark.not_submittable.is_some() => {
            let workspace = context.open_if_there()?;
            let scratch = labels(args.scratch.as_deref(), workspace.as_ref())?;
            run(&mut |log| Ok(accuracy_line(benchmark, None, &scratch, log)?))
        }
        (None, _) => {
            return Err(Failure::misuse(
                "the responses differ; to compare accuracies instead, the rules require the output of the reference script",
            )
            .hint("name it with --accuracy-script 'python3 SCRIPT ... --mlperf-accuracy-file'"));
        }
    };
    // A leftover file only affects the tidiness of a submission.
    let _ = std::fs::remove_file(baseline);
    Ok(compared?)
}

/// Runs a command with a log's path as its last argument, and returns its output.
fn run_script(command: &str, log: &Path) -> Result<String, Box<dyn Error + Send + Sync>> {
    let output = Command::new("sh")
        .args(["-c", &format!("{command} \"$1\""), "sh"])
        .arg(log)
        .output()?;
    let printed = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let last = printed.lines().last().unwrap_or_default();
        return Err(format!("the accuracy script ended with {}: {last}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
