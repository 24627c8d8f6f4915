//! `regatta accuracy`: judges logged answers, of Regatta's runs or any others. With `--official` the reference script judges, and
//! Regatta's figure is the cross-check.

mod args;
mod official;
mod script_options;

use std::path::{Path, PathBuf};

pub(super) use args::Args;
use args::no_scratch;
use official::ScriptOutput;
use regatta_config::catalogue::Catalogue;
use regatta_types::{benchmark::Benchmark, documents::AccuracyResult};
use serde_json::{Value, json};

use super::Context;
use crate::{
    exit::{self, CommandResult, Failure},
    runs::judge_accuracy,
    workspace::Workspace,
};

/// The result for one log.
#[derive(Debug)]
struct Judged {
    /// Regatta's own figure, if the labels are available.
    own: Option<AccuracyResult>,
    /// The reference script's output.
    official: Option<ScriptOutput>,
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let workspace = context.open_if_there()?;
    let catalogue =
        Catalogue::read(workspace.as_ref().map(Workspace::configs).as_deref()).map_err(Failure::usage)?;
    let benchmark = catalogue.benchmark(&args.benchmark).map_err(Failure::usage)?;
    // Labels are optional only for the reference script, which may read them from elsewhere.
    let scratch = match labels(args.scratch.as_deref(), workspace.as_ref()) {
        Err(_) if args.official.is_some() => None,
        found => Some(found?),
    };
    if args.keep.is_some() && args.log.len() > 1 {
        return Err(Failure::misuse(
            "--keep is for one log: the outputs would overwrite each other",
        ));
    }
    let mut found = Vec::with_capacity(args.log.len());
    for log in &args.log {
        found.push(judge(args, benchmark, scratch.as_deref(), log)?);
    }
    let documents: Vec<Value> = found.iter().map(document).collect();
    context.print(&json!({ "accuracy": documents }), || {
        found.iter().map(text).collect::<Vec<_>>().join("\n")
    })?;
    Ok(if found.iter().all(Judged::is_good) {
        exit::OK
    } else {
        exit::NO
    })
}

fn judge(args: &Args, benchmark: &Benchmark, scratch: Option<&Path>, log: &Path) -> Result<Judged, Failure> {
    let Some(script) = &args.official else {
        let scratch = scratch.ok_or_else(no_scratch)?;
        return Ok(Judged {
            own: Some(judge_accuracy(benchmark, args.dtype, scratch, log)?),
            official: None,
        });
    };
    // The cross-check needs labels. The reference script may read them from elsewhere.
    let own = scratch.map(|scratch| {
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
    Ok(Judged { own, official })
}

/// The directory of the labels: the named one, otherwise the workspace's scratch directory, otherwise `MLPERF_SCRATCH_PATH`.
pub(super) fn labels(named: Option<&Path>, workspace: Option<&Workspace>) -> Result<PathBuf, Failure> {
    named
        .map(Path::to_owned)
        .or_else(|| workspace.map(Workspace::scratch))
        .or_else(|| std::env::var_os("MLPERF_SCRATCH_PATH").map(PathBuf::from))
        .ok_or_else(no_scratch)
}

impl Judged {
    fn is_good(&self) -> bool {
        self.own.as_ref().is_none_or(AccuracyResult::is_reached) && self.agrees() != Some(false)
    }

    /// Returns whether the two figures agree. `None` when one of them is missing.
    fn agrees(&self) -> Option<bool> {
        let own = self.own.as_ref()?;
        official::agrees(&self.official.as_ref()?.output, own)
    }
}

fn document(judged: &Judged) -> Value {
    let mut document = match &judged.own {
        Some(own) => serde_json::to_value(own).unwrap_or_default(),
        None => json!({}),
    };
    if let (Some(script), Some(fields)) = (&judged.official, document.as_object_mut()) {
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
        _ => "no cross-check".to_owned(),
    };
    format!("{output}kept in {} ({check})", script.kept.display())
}

/// Formats the official script's line, and whether the accuracy target is met.
fn line(found: &AccuracyResult) -> String {
    let target = found.target.unwrap_or(0.0);
    let target = if found.is_fraction() {
        format!("{target:.5}")
    } else {
        format!("{target:.3}%")
    };
    format!(
        "{}; target {target}: {}",
        found.official_line(),
        if found.is_reached() { "reached" } else { "missed" }
    )
}
