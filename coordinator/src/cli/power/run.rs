//! `regatta power run`: a session per scenario, with a meter and a device of the lab.
//!
//! A session that fails is recorded with its reason. Nothing of it is used for another one.

use regatta_catalogue::catalogue::Catalogue;
use regatta_text::HumanDuration;
use regatta_types::{
    DeviceId, EngineKind, ExitCode, RunId, Scenario,
    documents::{LoadgenChoice, PowerSessionRecord},
};
use serde_json::json;

use super::{
    super::{
        Context,
        context::notify,
        device_availability::expect_available,
        interrupts,
        meter::unknown,
        resolve::resolve,
        runtime,
        setting_flags::{Assignment, SettingFlags, assignment},
    },
    machines::{MachineArgs, machines_failure},
    session_report::{SessionPrinter, session_failure},
};
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_power::{Cancel, CancelReason, PowerSessionJob, PowerSessionRunner, SessionMachines};
use regatta_lab_runs::{RunFiles, RunRequestInput, vocabulary};
use regatta_lab_store::{MeterRow, RunDraft, StatePreset, Store};

/// Flags of `power run`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RunArgs {
    /// The device's name or id [default: the only device]
    #[arg(long)]
    device: Option<String>,
    /// The meter's name [default: the only meter]
    #[arg(long)]
    meter: Option<String>,
    /// The benchmark
    #[arg(long)]
    benchmark: String,
    /// Scenarios, comma separated; each gets a separate session
    #[arg(long, value_parser = vocabulary::scenario(), ignore_case = true, value_delimiter = ',', required = true)]
    scenario: Vec<Scenario>,
    #[command(flatten)]
    settings: SettingFlags,
    /// The engine [default: the best that the device has: tensorrt, else tract]
    #[arg(long, value_parser = vocabulary::engine(), ignore_case = true)]
    engine: Option<EngineKind>,
    /// Another length of each run, such as 3s
    #[arg(long, value_name = "DURATION")]
    duration: Option<HumanDuration>,
    /// Which LoadGen: native, official or official:REVISION; only a session with an official one can be submitted [default: native]
    #[arg(long)]
    loadgen: Option<LoadgenChoice>,
    /// The state that the device is set to for both runs [default: as-is]
    #[arg(long, value_name = "STATE", value_parser = vocabulary::state(), ignore_case = true)]
    state: Option<StatePreset>,
    /// A line of user.conf for both runs, KEY=VALUE or MODEL.SCENARIO.KEY=VALUE, such as target_qps=500
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    conf: Vec<Assignment>,
    /// End a run that has not ended after this time [default: ten times the run's length, at least one hour]
    #[arg(long, value_name = "DURATION")]
    limit: Option<HumanDuration>,
    /// Use Regatta's power programs, with any PTDaemon on this machine; the session can never be submitted
    #[arg(long, conflicts_with_all = ["ssh", "device_power_dev", "identity", "password_stdin", "accept_host_key"])]
    informative: bool,
    /// Only check whether a session can succeed
    #[arg(long)]
    preflight: bool,
    #[command(flatten)]
    machines: MachineArgs,
}

pub(super) fn run(args: &RunArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let files = RunFiles::read(&workspace, &store)?;
    let drafts = resolve(&args.input()?, &[], &catalogue, &files, &store)?;
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
    let connect = || args.connect(&meter, device, &store);
    let mut runner = PowerSessionRunner::new(&workspace, &store, rules, &meter, connect()?);
    if args.preflight {
        let result = runner.preflight(first, None).map_err(session_failure)?;
        let lines = &result.lines;
        context.print(&json!({ "preflight": lines }), || tables::preflight(lines))?;
        return Ok(if result.passed() {
            ExitCode::Success
        } else {
            ExitCode::Negative
        });
    }
    if !workspace.is_served() {
        let root = workspace.root().display();
        return Err(
            Failure::could_not(format!("no coordinator serves {root}")).hint("start `regatta serve` there")
        );
    }
    if let Some(device) = store.devices().get(device)? {
        expect_available(&device)?;
    }
    let runtime = runtime()?;
    let cancel = Cancel::default();
    let cancelled = cancel.clone();
    interrupts::on_end_request(&runtime, move || cancelled.request(CancelReason::Interrupted))?;
    let made = MadeSessions::make(&mut runner, &drafts, connect, &cancel);
    made.report(drafts.len(), context, &cancel)
}

/// The sessions of a command.
#[derive(Default)]
struct MadeSessions {
    records: Vec<PowerSessionRecord>,
    /// Why the sessions after these were not made.
    failure: Option<Failure>,
}

impl MadeSessions {
    /// Makes a session for each draft, until one cannot be made or the user interrupts.
    fn make(
        runner: &mut PowerSessionRunner<'_>,
        drafts: &[RunDraft],
        connect: impl Fn() -> Result<SessionMachines, Failure>,
        cancel: &Cancel,
    ) -> Self {
        let mut made = Self::default();
        for draft in drafts {
            if cancel.requested().is_some() {
                break;
            }
            if !made.records.is_empty() {
                match connect() {
                    Ok(machines) => runner.reconnect(machines),
                    Err(error) => {
                        made.failure = Some(error);
                        break;
                    }
                }
            }
            let session = RunId::now().to_string();
            let job = PowerSessionJob {
                session: &session,
                draft,
            };
            match runner.run(&job, &mut SessionPrinter::new(""), cancel) {
                Ok(record) => made.records.push(record),
                Err(error) => {
                    made.failure = Some(session_failure(error));
                    break;
                }
            }
        }
        made
    }

    /// Prints the records.
    fn report(self, requested: usize, context: &Context, cancel: &Cancel) -> CommandResult {
        let Self { records, failure } = self;
        let left = requested - records.len();
        if left > 0 && failure.is_none() {
            notify(&format!(
                "interrupted: {left} of {requested} sessions did not start"
            ));
        }
        context.print(&json!({ "sessions": records }), || {
            records
                .iter()
                .map(tables::power_session)
                .collect::<Vec<_>>()
                .join("\n\n")
        })?;
        match failure {
            // The records of the sessions before are printed already.
            Some(error) => Err(error),
            None if left == 0 && records.iter().all(PowerSessionRecord::passes) => Ok(ExitCode::Success),
            None if cancel.requested().is_some() => Ok(ExitCode::Interrupted),
            None => Ok(ExitCode::Negative),
        }
    }
}

impl RunArgs {
    /// Returns the request of the flags.
    fn input(&self) -> Result<RunRequestInput, Failure> {
        Ok(RunRequestInput {
            device: self.device.clone(),
            benchmark: self.benchmark.clone(),
            scenario: self.scenario.clone(),
            engine: self.engine,
            loadgen: self.loadgen.clone(),
            duration: self.duration,
            state: self.state.map(Into::into),
            conf: self.conf.iter().cloned().map(Assignment::into_pair).collect(),
            limit: self.limit,
            ..self.settings.input(self.engine)?
        })
    }

    /// Connects to the machines of a session.
    fn connect(
        &self,
        meter: &MeterRow,
        device: &DeviceId,
        store: &Store,
    ) -> Result<SessionMachines, Failure> {
        match self.informative {
            true => SessionMachines::informative(&meter.settings).map_err(machines_failure),
            false => self.machines.connect(&meter.settings, device, store),
        }
    }
}

/// The meter that the user names, or the only one.
fn the_meter(name: Option<&str>, store: &Store) -> Result<MeterRow, Failure> {
    if let Some(name) = name {
        return store.meters().get(name)?.ok_or_else(|| unknown(name));
    }
    let mut meters = store.meters().all()?;
    match (meters.pop(), meters.is_empty()) {
        (Some(meter), true) => Ok(meter),
        (None, _) => Err(Failure::misuse("the lab has no meter").hint("`regatta meter add` adds one")),
        (Some(_), false) => {
            Err(Failure::misuse("which meter? name one with --meter").hint("`regatta meter list` shows them"))
        }
    }
}
