//! `regatta accuracy`: judges logged answers, of Regatta's runs or any others. With `--official` the reference script judges, and
//! Regatta's figure is the cross-check.

mod args;
mod official;
mod script_options;

use std::path::{Path, PathBuf};

pub(super) use args::Args;
use args::{AccuracyLog, no_scratch};
use official::ScriptOutput;
use regatta_catalogue::catalogue::Catalogue;
use regatta_fsutil::regular_file;
use regatta_mllog::read::ResponseCount;
use regatta_types::{
    ExitCode,
    benchmark::{AccuracyMetric, Benchmark, BoundSide},
    documents::AccuracyResult,
};
use serde_json::{Value, json};

use super::Context;
use crate::exit::{CommandResult, Failure};
use regatta_lab_runs::{judge_accuracy, judge_by_script};
use regatta_lab_store::workspace::Workspace;
use regatta_lab_views::wording;

/// The result for one log.
#[derive(Debug)]
struct Judged {
    /// Regatta's own figure, if the labels are available.
    own: Option<AccuracyResult>,
    /// The reference script's figures, for a metric that Regatta does not compute.
    figures: Option<AccuracyResult>,
    /// The reference script's output.
    official: Option<ScriptOutput>,
    /// The number of responses in the log, for a script's output.
    responses: Option<ResponseCount>,
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let workspace = context.open_if_there()?;
    let catalogue =
        Catalogue::read(workspace.as_ref().map(Workspace::configs).as_deref()).map_err(Failure::usage)?;
    let logs = args.logs(context)?;
    // Labels are optional only for the reference script, which may read them from elsewhere.
    let scratch = match labels(args.scratch.as_deref(), workspace.as_ref()) {
        Err(_) if args.official.is_some() => None,
        found => Some(found?),
    };
    if args.keep.is_some() && logs.len() > 1 {
        return Err(Failure::misuse(
            "--keep is for one log: the outputs would overwrite each other",
        ));
    }
    let mut found = Vec::with_capacity(logs.len());
    for log in logs {
        let benchmark = catalogue.benchmark(&log.benchmark).map_err(Failure::usage)?;
        let judged = judge(args, benchmark, scratch.as_deref(), &log.path)?;
        found.push((log, judged));
    }
    let documents: Vec<Value> = found.iter().map(|(log, judged)| document(log, judged)).collect();
    context.print(&json!({ "accuracy": documents }), || {
        let texts = found.iter().map(|(log, judged)| match &log.run {
            Some((run, subject)) => format!("{} {subject}: {}", wording::short_id(*run), text(judged)),
            None => text(judged),
        });
        texts.collect::<Vec<_>>().join("\n")
    })?;
    Ok(if found.iter().all(|(_, judged)| judged.is_good()) {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

fn judge(args: &Args, benchmark: &Benchmark, scratch: Option<&Path>, log: &Path) -> Result<Judged, Failure> {
    let Some(script) = &args.official else {
        let scratch = scratch.ok_or_else(no_scratch)?;
        let own = if benchmark.accuracy.metric == AccuracyMetric::Script {
            if args.dtype.is_some() {
                return Err(Failure::misuse(
                    "--dtype has no effect on a benchmark with the metric `script`, whose command reads the log itself",
                ));
            }
            judge_by_script(benchmark, scratch, log)?
        } else {
            judge_accuracy(benchmark, args.dtype, scratch, log)?
        };
        return Ok(Judged {
            own: Some(own),
            figures: None,
            official: None,
            responses: None,
        });
    };
    // The cross-check needs labels. The reference script may read them from elsewhere.
    let is_own = benchmark.accuracy.metric != AccuracyMetric::ClipFid;
    let own = scratch.filter(|_| is_own).map(|scratch| {
        judge_accuracy(benchmark, args.dtype, scratch, log)
            .map_err(|error| format!("{:#}", anyhow::Error::from(error)))
    });
    let script = official::run(args, script, benchmark, scratch, log);
    let (own, official) = match (own, script) {
        // The script's traceback seldom explains what is wrong with a log.
        (Some(Err(why)), Err(failure)) => return Err(failure.hint(format!("nothing was kept; {why}"))),
        (own, script) => (own, Some(script?)),
    };
    let own = own.and_then(|own| own.map_err(|why| tracing::warn!("no cross-check: {why}")).ok());
    let responses = count_responses(log, benchmark);
    let figures = official
        .as_ref()
        .filter(|_| !is_own)
        .and_then(|script| official::figures(&script.output, benchmark, responses));
    if !is_own && figures.is_none() {
        return Err(Failure::could_not(
            "the script's output does not contain a figure for which the benchmark has a bound",
        ));
    }
    Ok(Judged {
        own,
        figures,
        official,
        responses,
    })
}

/// Counts the responses of a log. `None`, with a warning, when the log cannot be read; the script has read it.
fn count_responses(log: &Path, benchmark: &Benchmark) -> Option<ResponseCount> {
    let opened = regular_file::open(log).map_err(anyhow::Error::from);
    let counted = opened.and_then(|file| Ok(ResponseCount::read(file, benchmark.dataset.total_samples)?));
    counted
        .map_err(|error| tracing::warn!("cannot count the responses in {}: {error:#}", log.display()))
        .ok()
}

/// Returns the directory of the labels: the named one, otherwise the workspace's scratch directory, otherwise `MLPERF_SCRATCH_PATH`.
pub(super) fn labels(named: Option<&Path>, workspace: Option<&Workspace>) -> Result<PathBuf, Failure> {
    named
        .map(Path::to_owned)
        .or_else(|| workspace.map(Workspace::scratch))
        .or_else(|| std::env::var_os("MLPERF_SCRATCH_PATH").map(PathBuf::from))
        .ok_or_else(no_scratch)
}

impl Judged {
    fn is_good(&self) -> bool {
        let is_reached = match self.own.as_ref().or(self.figures.as_ref()) {
            Some(figures) => figures.is_reached(),
            None => self.responses.is_none_or(|responses| responses.missing == 0),
        };
        is_reached && self.agrees() != Some(false)
    }

    /// Returns whether the two figures agree. `None` when one of them is missing.
    fn agrees(&self) -> Option<bool> {
        let own = self.own.as_ref()?;
        official::agrees(&self.official.as_ref()?.output, own)
    }
}

fn document(log: &AccuracyLog, judged: &Judged) -> Value {
    let mut document = match judged.own.as_ref().or(judged.figures.as_ref()) {
        Some(own) => serde_json::to_value(own).unwrap_or_default(),
        None => json!({}),
    };
    let Some(fields) = document.as_object_mut() else {
        return document;
    };
    if let Some((run, _)) = &log.run {
        fields.insert("run".to_owned(), json!(run));
    }
    if let Some(script) = &judged.official {
        let output = String::from_utf8_lossy(&script.output);
        let official = json!({ "output": output, "kept": script.kept, "agrees": judged.agrees() });
        fields.insert("official".to_owned(), official);
    }
    document
}

fn text(judged: &Judged) -> String {
    let Some(script) = &judged.official else {
        return judged.own.as_ref().map(line).unwrap_or_default();
    };
    let output = String::from_utf8_lossy(&script.output);
    let check = match (judged.agrees(), &judged.own) {
        (Some(true), _) => "ours agrees".to_owned(),
        (Some(false), Some(own)) => format!("OURS DIFFERS: {}", line(own)),
        _ => match &judged.figures {
            Some(figures) => bounds(figures),
            None => "no cross-check".to_owned(),
        },
    };
    let missing = match judged.responses {
        Some(responses) if responses.missing > 0 => format!(
            "; INCOMPLETE: {} of {} samples have no response",
            responses.missing,
            responses.missing + responses.answered
        ),
        _ => String::new(),
    };
    format!("{output}kept in {} ({check}{missing})", script.kept.display())
}

/// Formats the official script's line, and whether the accuracy target is met.
fn line(found: &AccuracyResult) -> String {
    let target = found.target.unwrap_or(0.0);
    let target = match (found.is_percentage(), found.side) {
        (true, _) => format!("{target:.3}%"),
        (false, BoundSide::AtLeast) => format!("{target:.5}"),
        // An error may be small.
        (false, BoundSide::AtMost) => format!("≤ {target}"),
    };
    let missed: Vec<String> = found
        .further
        .iter()
        .filter(|figure| !figure.is_reached())
        .map(|figure| format!("{} {}", figure.figure, figure.value))
        .collect();
    let missed = match (found.incomplete(), &missed[..]) {
        (Some(why), _) => format!("not reached, {why}"),
        (None, _) if found.is_reached() => "reached".to_owned(),
        (None, []) => "missed".to_owned(),
        (None, missed) => format!("missed by {}", missed.join(", ")),
    };
    format!("{}; target {target}: {missed}", found.official_line())
}

/// Formats figures of the reference script with their bounds.
fn bounds(figures: &AccuracyResult) -> String {
    let further = figures.further.iter().map(|figure| {
        let bound =
            |sign: &str, bound: Option<f64>| bound.map_or(String::new(), |bound| format!(" {sign} {bound}"));
        let (least, most) = (bound("≥", figure.at_least), bound("≤", figure.at_most));
        format!(
            "{} {}{least}{most}",
            figure.figure,
            if figure.is_reached() { "is" } else { "is NOT" }
        )
    });
    let is_within = figures
        .target
        .is_none_or(|target| figures.side.admits(figures.value, target));
    let target = figures.target.unwrap_or(0.0);
    let first = format!(
        "{} {} {} {target}",
        figures.metric,
        if is_within { "is" } else { "is NOT" },
        match figures.side {
            BoundSide::AtLeast => '≥',
            BoundSide::AtMost => '≤',
        }
    );
    std::iter::once(first)
        .chain(further)
        .collect::<Vec<_>>()
        .join(", ")
}
