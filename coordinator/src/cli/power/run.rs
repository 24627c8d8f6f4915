//! `regatta power run`: a session per scenario, with a meter and a device of the lab.
//!
//! A session that fails is recorded with its reason. Nothing of it is used for another one.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context as _;
use regatta_config::{catalogue::Catalogue, round::PowerRules};
use regatta_power::{power_dev::PowerDev, session::SessionPlan};
use regatta_submission::{
    check::power::{self as check, Outcome, SessionEnergy},
    tree::Tree,
};
use regatta_types::RunId;
use serde_json::{Value, json};

use super::{
    super::{
        Context, context::tell, lookup, meter::unknown, quickstart::watch_for_interrupts, resolve, runtime,
    },
    session_report::{SessionReporter, failure},
};
use crate::{
    assets,
    exit::{self, CommandResult, Failure},
    power::{MeterLease, OfficialVerdict, PreflightLine, RunWorkload, SessionRecord, preflight, server_conf},
    runs::{StateWords, Words, take_form},
    store::{MeterRow, NewPowerSession, RunDraft, Store},
    tables,
    workspace::Workspace,
};

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
    #[arg(long)]
    benchmark: String,
    /// Scenarios, comma separated; each is a session of its own
    #[arg(long, value_delimiter = ',', required = true)]
    scenario: Vec<String>,
    /// The round whose rules apply, such as v6.1 [default: the newest]
    #[arg(long)]
    round: Option<String>,
    /// What computes the answers: null, tract, tensorrt or sim [default: tract]
    #[arg(long)]
    engine: Option<String>,
    /// Another length of each run, such as 3s
    #[arg(long, value_name = "T")]
    duration: Option<String>,
    /// Whose values for the benchmark are taken
    #[arg(long, value_name = "SYSTEM")]
    system: Option<String>,
    /// The state that the device is set to for both runs: MaxP, MaxQ or as-is [default: as-is]
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// Only checks whether a session can succeed
    #[arg(long)]
    preflight: bool,
}

pub(super) fn run(args: &RunArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let drafts = drafts(args, &catalogue, &store, &workspace)?;
    let round = catalogue.round(args.round.as_deref()).map_err(Failure::usage)?;
    let rules = round.power.as_ref().ok_or_else(|| {
        Failure::misuse(format!("round {} has no rules for power", round.name))
            .hint("name another with --round")
    })?;
    let meter = the_meter(args.meter.as_deref(), &store)?;
    let sessions = Sessions {
        workspace: &workspace,
        store: &store,
        rules,
        meter: &meter,
    };
    if args.preflight {
        let (lines, _) = sessions.preflight(&drafts)?;
        let passed = lines.iter().all(|line| line.passed);
        context.print(&json!({ "preflight": lines }), || tables::preflight(&lines))?;
        return Ok(if passed { exit::OK } else { exit::NO });
    }
    if !workspace.is_served() {
        let root = workspace.root().display();
        return Err(
            Failure::could_not(format!("no coordinator serves {root}")).hint("start `regatta serve` there")
        );
    }
    let runtime = runtime()?;
    let interrupted = watch_for_interrupts(&runtime)?;
    let mut records = Vec::new();
    for draft in &drafts {
        records.push(sessions.make(draft, &interrupted)?);
    }
    let passed = records.iter().all(SessionRecord::passes);
    let documents: Vec<&Value> = records.iter().map(SessionRecord::document).collect();
    context.print(&json!({ "sessions": documents }), || {
        records
            .iter()
            .map(tables::power_session)
            .collect::<Vec<_>>()
            .join("\n\n")
    })?;
    Ok(if passed { exit::OK } else { exit::NO })
}

/// The drafts of the sessions, one per scenario.
fn drafts(
    args: &RunArgs,
    catalogue: &Catalogue,
    store: &Store,
    workspace: &Workspace,
) -> Result<Vec<RunDraft>, Failure> {
    let words = Words {
        device: args.device.clone(),
        benchmark: args.benchmark.clone(),
        scenario: args.scenario.clone(),
        round: args.round.clone(),
        engine: args.engine.clone(),
        duration: args.duration.clone(),
        system: args.system.clone(),
        state: args.state.clone().map(StateWords::Preset),
        ..Words::default()
    };
    let mut drafts = resolve(&words, catalogue, store)?;
    let served: Vec<String> = store.assets()?.into_iter().map(|row| row.asset.path).collect();
    let is_asset = |place: &str| served.iter().any(|path| assets::holds(path, place));
    for draft in &mut drafts {
        take_form(&mut draft.spec, &is_asset, &workspace.scratch()).map_err(Failure::usage)?;
        assets::name_in(&mut draft.spec, &[], store, workspace.config()).map_err(Failure::usage)?;
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

/// What the sessions of a command share.
struct Sessions<'a> {
    workspace: &'a Workspace,
    store: &'a Store,
    rules: &'a PowerRules,
    meter: &'a MeterRow,
}

impl Sessions<'_> {
    fn preflight(&self, drafts: &[RunDraft]) -> Result<(Vec<PreflightLine>, Option<PowerDev>), Failure> {
        let directory = self.workspace.root();
        let (mut lines, power_dev) = preflight::check(&self.meter.settings, self.rules, directory);
        if let Some(draft) = drafts.first() {
            let device = lookup::device(self.store, Some(draft.spec.device.as_str()))?;
            lines.insert(
                0,
                preflight::device(&device.name, device.reported_facts().ok().as_ref(), device.online),
            );
        }
        Ok((lines, power_dev))
    }

    /// Makes one session, and records it in any case.
    fn make(&self, draft: &RunDraft, interrupted: &Arc<AtomicBool>) -> Result<SessionRecord, Failure> {
        let id = RunId::now().to_string();
        let lease = MeterLease::take(self.store, &self.meter.name, &id)?;
        if let Some(ended) = lease.ended() {
            tell(&format!(
                "session {} ended without a word; its lease of {} has ended too",
                ended.session, self.meter.name
            ));
        }
        let (lines, power_dev) = self.preflight(std::slice::from_ref(draft))?;
        tell(&tables::preflight(&lines));
        let Some(power_dev) = power_dev.filter(|_| lines.iter().all(|line| line.passed)) else {
            return Err(Failure::could_not(
                "a session cannot succeed: see the lines above; nothing was started",
            ));
        };
        let directory = self.workspace.power_session(&id);
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        self.store.power_session_begins(NewPowerSession {
            id: &id,
            meter: &self.meter.name,
            device: draft.spec.device.as_str(),
            benchmark: &draft.spec.benchmark.name,
            scenario: draft.spec.scenario.as_str(),
        })?;
        let plan = SessionPlan {
            python: PathBuf::from(&self.meter.settings.python),
            power_dev,
            directory,
            conf: server_conf(&self.meter.settings),
            label: String::new(),
        };
        let logs = plan.directory.join("loadgen");
        let stop = Arc::clone(interrupted);
        let mut workload = RunWorkload::new(self.store, self.workspace, &id, logs, draft.clone(), stop);
        let mut reporter = SessionReporter::new("");
        tell(&format!(
            "session {id}: {} {}",
            draft.spec.benchmark.name, draft.spec.scenario
        ));
        let made = plan.execute(&mut workload, &mut |event| reporter.report(event));
        let judged = match made {
            Ok(session) => self.judge(&plan, &session).map_err(Failure::from),
            Err(error) => {
                workload.abort()?;
                Err(failure(error))
            }
        };
        let runs = workload.runs();
        let record = SessionRecord::write(&plan.directory, &id, self.meter, draft, &runs, judged)?;
        self.store
            .power_session_ends(&id, record.verdict(), record.reason())?;
        drop(lease);
        if interrupted.load(Ordering::Relaxed) {
            return Err(Failure::could_not(format!(
                "interrupted; session {id} is recorded as failed"
            )));
        }
        Ok(record)
    }

    /// The verdicts of the official checker and of Regatta, and the energy.
    fn judge(
        &self,
        plan: &SessionPlan,
        session: &std::path::Path,
    ) -> anyhow::Result<(Value, Option<SessionEnergy>)> {
        regatta_power::session::arrange_for_submission(session)?;
        let official = OfficialVerdict::of(&plan.python, &plan.power_dev, session)?;
        let tree = Tree::scan(session)?;
        let own = check::check(&tree, "", self.rules);
        let simulated = check::is_simulated(&tree, "");
        let failed: Vec<String> = own
            .checks
            .iter()
            .filter_map(|check| match &check.outcome {
                Outcome::Failed(reason) => Some(format!("{}: {reason}", check.name)),
                _ => None,
            })
            .collect();
        let verdict = match (official.passes && own.passes(), simulated) {
            (true, true) => "rehearsal",
            (true, false) => "pass",
            (false, _) => "fail",
        };
        let document = json!({
            "verdict": verdict,
            "official_checks": official.checks,
            "official_summary": official.summary(),
            "findings": failed,
        });
        Ok((document, check::energy(&tree, "").ok()))
    }
}
