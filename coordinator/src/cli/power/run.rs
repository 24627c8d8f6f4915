//! `regatta power run`: a session per scenario, with a meter and a device of the lab.
//!
//! A session that fails is recorded with its reason. Nothing of it is used for another one.

use std::{
    cell::Cell,
    io,
    sync::{Arc, atomic::Ordering},
    thread,
};

use regatta_config::catalogue::Catalogue;
use regatta_types::{DeviceId, RunId};
use serde_json::{Value, json};

use super::{
    super::{
        Context, context::notify, device_availability::expect_available, interrupts, meter::unknown, resolve,
        resolve::unresolved, runtime, setting_flags::pair,
    },
    machines::{MachineArgs, Machines},
    sessions::Sessions,
};
use crate::{
    exit::{self, CommandResult, Failure},
    tables,
};
use regatta_campaigns::PowerJob;
use regatta_lab_power::SessionRecord;
use regatta_lab_runs::{RunFiles, StateWords, Words};
use regatta_lab_store::{MeterRow, RunDraft, Store, workspace::Workspace};

/// Flags of `power run`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RunArgs {
    /// The device's name or id; the only one, when there is one
    #[arg(long)]
    device: Option<String>,
    /// The meter's name; the only one, when there is one
    #[arg(long)]
    meter: Option<String>,
    /// The benchmark
    #[arg(long, required_unless_present = "job")]
    benchmark: Option<String>,
    /// Scenarios, comma separated; each is a session of its own
    #[arg(long, value_delimiter = ',', required_unless_present = "job")]
    scenario: Vec<String>,
    /// The round whose rules apply, such as v6.1 [default: the newest]
    #[arg(long)]
    round: Option<String>,
    /// The engine: null, tract, tensorrt or sim [default: tract]
    #[arg(long)]
    engine: Option<String>,
    /// Another length of each run, such as 3s
    #[arg(long, value_name = "T")]
    duration: Option<String>,
    /// The system with the settings for the benchmark
    #[arg(long, value_name = "SYSTEM")]
    system: Option<String>,
    /// The state that the device is set to for both runs: MaxP, MaxQ or as-is [default: as-is]
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// A line of user.conf for both runs, KEY=VALUE or MODEL.SCENARIO.KEY=VALUE, such as target_qps=500
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    conf: Vec<(String, String)>,
    /// End a run that has not ended after this time [default: ten times the run's length, one hour at least]
    #[arg(long, value_name = "T")]
    limit: Option<String>,
    /// Use Regatta's own power programs, with any PTDaemon on this machine; such a session can never be submitted
    #[arg(long, conflicts_with_all = ["ssh", "device_power_dev", "identity", "password_stdin", "accept_host_key"])]
    informative: bool,
    /// Only checks whether a session can succeed
    #[arg(long)]
    preflight: bool,
    /// Make the one session that the first line of standard input describes, and end it when standard input closes
    #[arg(long, hide = true)]
    job: bool,
    #[command(flatten)]
    machines: MachineArgs,
}

pub(super) fn run(args: &RunArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let job = args.job.then(PowerJob::receive).transpose()?;
    let (words, mut id) = match job {
        Some(job) => (job.words, Some(job.session)),
        None => (words(args), None),
    };
    let drafts = drafts(&words, &catalogue, &store, &workspace)?;
    let round = catalogue.round(words.round.as_deref()).map_err(Failure::usage)?;
    let rules = round.power.as_ref().ok_or_else(|| {
        Failure::misuse(format!("round {} has no rules for power", round.name))
            .hint("name another with --round")
    })?;
    let meter = the_meter(args.meter.as_deref(), &store)?;
    let Some(first) = drafts.first() else {
        return Err(Failure::misuse("name a scenario with --scenario"));
    };
    let device = &first.spec.device;
    let mut sessions = Sessions {
        workspace: &workspace,
        store: &store,
        rules,
        meter: &meter,
        machines: args.reach(&meter, device, &store)?,
        meter_was_read: Cell::new(false),
    };
    if args.preflight {
        let result = sessions.preflight(first, None)?;
        let lines = &result.lines;
        context.print(&json!({ "preflight": lines }), || tables::preflight(lines))?;
        return Ok(if result.passed() { exit::OK } else { exit::NO });
    }
    if !workspace.is_served() {
        let root = workspace.root().display();
        return Err(
            Failure::could_not(format!("no coordinator serves {root}")).hint("start `regatta serve` there")
        );
    }
    if let Some(device) = store.device(device)? {
        expect_available(&device)?;
    }
    let runtime = runtime()?;
    let interrupted = interrupts::end_requested(&runtime)?;
    if args.job {
        let interrupted = Arc::clone(&interrupted);
        thread::spawn(move || {
            // Any end counts, also one with an error.
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            interrupted.store(true, Ordering::Relaxed);
        });
    }
    let mut records = Vec::new();
    let mut failure = None;
    for draft in &drafts {
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        if !records.is_empty() {
            // A connection of the session before may be lost.
            match args.reach(&meter, device, &store) {
                Ok(machines) => sessions.machines = machines,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let id = id.take().unwrap_or_else(|| RunId::now().to_string());
        match sessions.make(id, draft, &interrupted) {
            Ok(record) => records.push(record),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    let left = drafts.len() - records.len();
    if left > 0 && failure.is_none() {
        notify(&format!(
            "interrupted: {left} of {} sessions did not start",
            drafts.len()
        ));
    }
    let passed = left == 0 && records.iter().all(SessionRecord::passes);
    let documents: Vec<&Value> = records.iter().map(SessionRecord::document).collect();
    context.print(&json!({ "sessions": documents }), || {
        records
            .iter()
            .map(tables::power_session)
            .collect::<Vec<_>>()
            .join("\n\n")
    })?;
    let is_interrupted = interrupted.load(Ordering::Relaxed);
    match failure {
        // The records of the sessions before are printed already.
        Some(error) => Err(error),
        None if passed => Ok(exit::OK),
        None if is_interrupted => Ok(exit::INTERRUPTED),
        None => Ok(exit::NO),
    }
}

impl RunArgs {
    /// Connects to the machines of a session.
    fn reach(&self, meter: &MeterRow, device: &DeviceId, store: &Store) -> Result<Machines, Failure> {
        match self.informative {
            true => Machines::informative(&meter.settings),
            false => Machines::reach(&self.machines, &meter.settings, device, store),
        }
    }
}

/// What the flags request.
fn words(args: &RunArgs) -> Words {
    Words {
        device: args.device.clone(),
        benchmark: args.benchmark.clone().unwrap_or_default(),
        scenario: args.scenario.clone(),
        round: args.round.clone(),
        engine: args.engine.clone(),
        duration: args.duration.clone(),
        system: args.system.clone(),
        state: args.state.clone().map(StateWords::Preset),
        conf: args.conf.iter().cloned().collect(),
        limit: args.limit.clone(),
        ..Words::default()
    }
}

/// The drafts of the sessions, one per scenario.
fn drafts(
    words: &Words,
    catalogue: &Catalogue,
    store: &Store,
    workspace: &Workspace,
) -> Result<Vec<RunDraft>, Failure> {
    let mut drafts = resolve(words, catalogue, store)?;
    let files = RunFiles::read(workspace, store)?;
    for draft in &mut drafts {
        files.add_to(draft, &words.asset).map_err(unresolved)?;
    }
    Ok(drafts)
}

/// The meter that the user names, or the only one.
fn the_meter(name: Option<&str>, store: &Store) -> Result<MeterRow, Failure> {
    if let Some(name) = name {
        return store.meter(name)?.ok_or_else(|| unknown(name));
    }
    let mut meters = store.meters()?;
    match (meters.pop(), meters.is_empty()) {
        (Some(meter), true) => Ok(meter),
        (None, _) => Err(Failure::misuse("the lab has no meter").hint("`regatta meter add` adds one")),
        (Some(_), false) => {
            Err(Failure::misuse("which meter? name one with --meter").hint("`regatta meter list` shows them"))
        }
    }
}
