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
use regatta_text::HumanDuration;
use regatta_types::{DeviceId, EngineKind, RunId, Scenario};
use serde_json::{Value, json};

use super::{
    super::{
        Context,
        context::notify,
        device_availability::expect_available,
        interrupts,
        meter::unknown,
        resolve::{resolve, unresolved},
        runtime,
        setting_flags::pair,
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
use regatta_lab_runs::{KnownRequest, RunFiles, RunRequestInput, vocabulary};
use regatta_lab_store::{MeterRow, RunDraft, StatePreset, Store, SystemChoice};
use regatta_lab_views::lookup;

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
    #[arg(long, value_parser = vocabulary::scenario(), ignore_case = true, value_delimiter = ',', required_unless_present = "job")]
    scenario: Vec<Scenario>,
    /// The round whose rules apply, such as v6.1 [default: the newest]
    #[arg(long)]
    round: Option<String>,
    /// The engine [default: tract]
    #[arg(long, value_parser = vocabulary::engine(), ignore_case = true)]
    engine: Option<EngineKind>,
    /// Another length of each run, such as 3s
    #[arg(long, value_name = "T")]
    duration: Option<HumanDuration>,
    /// The system with the settings for the benchmark
    #[arg(long, value_name = "SYSTEM")]
    system: Option<SystemChoice>,
    /// The state that the device is set to for both runs [default: as-is]
    #[arg(long, value_name = "STATE", value_parser = vocabulary::state(), ignore_case = true)]
    state: Option<StatePreset>,
    /// A line of user.conf for both runs, KEY=VALUE or MODEL.SCENARIO.KEY=VALUE, such as target_qps=500
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    conf: Vec<(String, String)>,
    /// End a run that has not ended after this time [default: ten times the run's length, one hour at least]
    #[arg(long, value_name = "T")]
    limit: Option<HumanDuration>,
    /// Uses Regatta's own power programs, with any PTDaemon on this machine; such a session can never be submitted
    #[arg(long, conflicts_with_all = ["ssh", "device_power_dev", "identity", "password_stdin", "accept_host_key"])]
    informative: bool,
    /// Only checks whether a session can succeed
    #[arg(long)]
    preflight: bool,
    /// Makes the one session that the first line of standard input describes, and ends it when standard input closes
    #[arg(long, hide = true)]
    job: bool,
    #[command(flatten)]
    machines: MachineArgs,
}

pub(super) fn run(args: &RunArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let job = args.job.then(PowerJob::receive).transpose()?;
    let files = RunFiles::read(&workspace, &store)?;
    let (drafts, mut id) = match job {
        Some(job) => {
            let draft = draft_of_job(&job, &catalogue, &files, &store)?;
            (vec![draft], Some(job.session))
        }
        None => (resolve(&args.input(), &[], &catalogue, &files, &store)?, None),
    };
    let Some(first) = drafts.first() else {
        return Err(Failure::misuse("name a scenario with --scenario"));
    };
    let round = catalogue.round(Some(&first.spec.round)).map_err(Failure::usage)?;
    let rules = round.power.as_ref().ok_or_else(|| {
        Failure::misuse(format!("round {} has no rules for power", round.name))
            .hint("name another with --round")
    })?;
    let meter = the_meter(args.meter.as_deref(), &store)?;
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
    /// Returns the request of the flags.
    fn input(&self) -> RunRequestInput {
        RunRequestInput {
            device: self.device.clone(),
            benchmark: self.benchmark.clone().unwrap_or_default(),
            scenario: self.scenario.clone(),
            round: self.round.clone(),
            engine: self.engine,
            duration: self.duration,
            system: self.system.clone(),
            state: self.state.map(Into::into),
            conf: self.conf.iter().cloned().collect(),
            limit: self.limit,
            ..RunRequestInput::default()
        }
    }

    /// Connects to the machines of a session.
    fn reach(&self, meter: &MeterRow, device: &DeviceId, store: &Store) -> Result<Machines, Failure> {
        match self.informative {
            true => Machines::informative(&meter.settings),
            false => Machines::reach(&self.machines, &meter.settings, device, store),
        }
    }
}

/// Returns the draft of a session that a campaign requests.
fn draft_of_job(
    job: &PowerJob,
    catalogue: &Catalogue,
    files: &RunFiles<'_>,
    store: &Store,
) -> Result<RunDraft, Failure> {
    let known = KnownRequest::find(&job.request, catalogue).map_err(unresolved)?;
    let device = lookup::device(store, Some(job.device.as_str()))?;
    known.draft_with_files(&device, files).map_err(unresolved)
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
