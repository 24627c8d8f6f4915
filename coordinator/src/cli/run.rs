//! `regatta run`: asks devices for runs, and waits for them if wished.

use std::path::PathBuf;

use anyhow::Context as _;
use regatta_fsutil::regular_file;

use super::{
    Context,
    context::{say, tell},
    progress,
    resolve::resolve,
    run_document::document,
};
use crate::{
    assets,
    exit::{self, CommandResult, Failure},
    runs::{Catalogue, Plan, StateWords, Words, take_form},
    store::{RunDraft, RunRow, Store},
    tables,
    workspace::Workspace,
};

/// Flags of `run`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A plan: several requests in one file
    #[arg(value_name = "PLAN.toml", conflicts_with_all = ["benchmark", "scenario", "mode", "device"])]
    plan: Option<PathBuf>,
    /// The device's name or id; the only one, when there is one
    #[arg(long)]
    device: Option<String>,
    /// The benchmark: digits, which comes along, or one of configs/benchmarks in the workspace
    #[arg(long, required_unless_present = "plan")]
    benchmark: Option<String>,
    /// Scenarios, comma separated: SingleStream, MultiStream, Server, Offline
    #[arg(long, value_delimiter = ',', required_unless_present = "plan")]
    scenario: Vec<String>,
    /// Modes, comma separated: AccuracyOnly, PerformanceOnly, SubmissionRun, FindPeakPerformance [default: PerformanceOnly]
    #[arg(long, value_delimiter = ',')]
    mode: Vec<String>,
    /// The round whose rules apply, such as v6.1 [default: the newest]
    #[arg(long)]
    round: Option<String>,
    /// What computes the answers: null, tract, tensorrt or sim [default: tract]
    #[arg(long)]
    engine: Option<String>,
    /// 60 s per run
    #[arg(long, conflicts_with = "duration")]
    test_run: bool,
    /// Another length, such as 3s
    #[arg(long, value_name = "T")]
    duration: Option<String>,
    /// Which LoadGen: native, official or official:REVISION [default: native]
    #[arg(long)]
    loadgen: Option<String>,
    /// Whose values for the benchmark are taken: a system's name, a file that ends in .toml, or none
    /// [default: the device's own system, where there is one]
    #[arg(long, value_name = "SYSTEM")]
    system: Option<String>,
    /// A setting of the engine, KEY=VALUE
    #[arg(long, value_name = "K=V", value_parser = pair)]
    set: Vec<(String, String)>,
    /// A line of user.conf, KEY=VALUE or MODEL.SCENARIO.KEY=VALUE
    #[arg(long, value_name = "K=V", value_parser = pair)]
    conf: Vec<(String, String)>,
    /// The state that the device is set to for the run: MaxP, MaxQ or as-is; a plan may name single clocks [default: as-is]
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// An asset that the run needs beside its benchmark's files, such as a calibration cache
    #[arg(long, value_name = "PATH")]
    asset: Vec<String>,
    /// When logs leave the device: after the run, or live [default: after]
    #[arg(long)]
    stream: Option<String>,
    /// Wait until every run has ended; this is what happens by itself
    #[arg(long, overrides_with = "no_wait")]
    wait: bool,
    /// Return at once
    #[arg(long)]
    no_wait: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("not of the form KEY=VALUE".to_owned()),
    }
}

impl Args {
    /// A length and a state on the command line are meant for every run of a plan.
    fn change(&self, words: &mut Words) {
        if let Some(state) = &self.state {
            words.state = Some(StateWords::Preset(state.clone()));
        }
        if self.test_run || self.duration.is_some() {
            words.test_run = self.test_run;
            words.duration.clone_from(&self.duration);
        }
    }

    fn words(&self) -> Words {
        Words {
            device: self.device.clone(),
            benchmark: self.benchmark.clone().unwrap_or_default(),
            scenario: self.scenario.clone(),
            mode: self.mode.clone(),
            round: self.round.clone(),
            engine: self.engine.clone(),
            loadgen: self.loadgen.clone(),
            test_run: self.test_run,
            duration: self.duration.clone(),
            stream: self.stream.clone(),
            system: self.system.clone(),
            set: self.set.iter().cloned().collect(),
            conf: self.conf.iter().cloned().collect(),
            state: self.state.clone().map(StateWords::Preset),
            asset: self.asset.clone(),
        }
    }
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let catalogue = Catalogue::read(Some(&workspace)).map_err(Failure::usage)?;
    let requests = match &args.plan {
        None => vec![args.words()],
        Some(path) => {
            let text =
                regular_file::read_text(path).with_context(|| format!("cannot read {}", path.display()))?;
            let plan = Plan::from_toml(&text).with_context(|| path.display().to_string());
            let mut requests = plan.map_err(Failure::usage)?.run;
            requests.iter_mut().for_each(|words| args.change(words));
            requests
        }
    };
    let mut drafts = Vec::new();
    let served: Vec<String> = store.assets()?.into_iter().map(|row| row.asset.path).collect();
    let is_asset = |place: &str| served.iter().any(|path| assets::holds(path, place));
    let draft = |words: &Words| {
        let mut drafts = resolve(words, &catalogue, &store)?;
        for draft in &mut drafts {
            take_form(&mut draft.spec, &is_asset, &workspace.scratch()).map_err(Failure::usage)?;
            assets::name_in(&mut draft.spec, &words.asset, &store, workspace.config())
                .map_err(Failure::usage)?;
        }
        Ok(drafts)
    };
    for (index, words) in requests.iter().enumerate() {
        let of_request = draft(words).map_err(|failure: Failure| match &args.plan {
            Some(path) => failure.context(format!("{}: [[run]] number {}", path.display(), index + 1)),
            None => failure,
        })?;
        drafts.extend(of_request);
    }
    // Either all runs of a plan are asked for, or none.
    store.all_or_nothing(|store| drafts.iter().try_for_each(|draft| store.add_run(draft)))?;
    finish(args.no_wait, &drafts, context, &workspace, &store)
}

/// Tells of runs that were asked for, and waits for them unless that is not wished.
pub(super) fn finish(
    no_wait: bool,
    drafts: &[RunDraft],
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> CommandResult {
    let ids: Vec<_> = drafts.iter().map(|draft| draft.spec.run).collect();
    let print = |rows: &[RunRow]| {
        let documents: Vec<_> = rows.iter().map(document).collect();
        context.print(&serde_json::json!({ "runs": documents }), || tables::runs(rows))
    };
    if no_wait {
        if !workspace.is_served() {
            tell("nobody runs them yet: start `regatta serve` in this workspace");
        }
        print(&progress::rows(store, &ids)?)?;
        return Ok(exit::OK);
    }
    if !workspace.is_served() {
        return Err(Failure::could_not(format!(
            "{} queued, but no coordinator serves {}",
            if ids.len() == 1 {
                "the run is".to_owned()
            } else {
                format!("{} runs are", ids.len())
            },
            workspace.root().display()
        ))
        .hint("start `regatta serve` there; `regatta runs list` then shows how they fare"));
    }
    tell_who_is_away(drafts, store)?;
    let rows = progress::wait(context, workspace, store, &ids)?;
    print(&rows)?;
    if context.format == super::Format::Text {
        for audit in rows.iter().filter_map(tables::audit) {
            say(&audit)?;
        }
    }
    let good = rows.iter().all(RunRow::is_good);
    if !good {
        say_why(context, &rows)?;
    }
    Ok(if good { exit::OK } else { exit::NO })
}

/// Waiting for a device that is switched off looks like nothing at all.
fn tell_who_is_away(drafts: &[RunDraft], store: &Store) -> Result<(), Failure> {
    for device in store.devices()?.iter().filter(|device| !device.online) {
        if drafts.iter().any(|draft| draft.spec.device == device.id) {
            tell(&format!(
                "{} is not there, last heard of at {}: its runs begin when it is back; Ctrl-C leaves them queued",
                device.name,
                tables::time(&device.last_seen)
            ));
        }
    }
    Ok(())
}

fn say_why(context: &Context, rows: &[RunRow]) -> std::io::Result<()> {
    if context.format == super::Format::Text {
        for row in rows.iter().filter(|row| !row.is_good()) {
            say(&tables::why_not(row))?;
        }
    }
    Ok(())
}
