//! `regatta run --submission`: measures everything that the results of a submission still need, as a campaign: accuracy and performance runs of every
//! required scenario, then the audits.

use jiff::Timestamp;
use regatta_catalogue::{
    catalogue::Catalogue,
    round::{Round, SystemCategory},
};
use regatta_text::quote_for_shell_if_needed;
use regatta_types::{
    EngineKind, ExitCode, Scenario,
    benchmark::Benchmark,
    documents::{DeviceFacts, LoadgenChoice, PowerSetting},
};

use super::{
    super::{
        Context,
        campaign::{
            checked_plan::{CheckedPlan, check_text},
            plan::plan_document,
            start::start,
            watch::until_ended,
        },
        context::tell,
    },
    Args,
};
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_campaigns::{SubmissionCells, SubmissionSettings, submission_plan};
use regatta_lab_net::fleet::default_engine;
use regatta_lab_store::{DeviceRow, StatePreset, Store};
use regatta_lab_views::submission_status::{
    ResultStatus, StatusRequest, SubmissionStatus, submission_status,
};

/// Flags of `run --submission`.
#[derive(Debug, clap::Args)]
pub(super) struct SubmissionFlags {
    /// Measure everything that the results of a submission need and do not have yet: all required scenarios in both modes, then the audits
    #[arg(long, conflicts_with_all = ["plan", "mode", "stream", "repeat", "retry", "force", "max_temperature", "min_memory", "min_disk", "gate_wait"])]
    pub(super) submission: bool,
    /// The category of the systems, which determines the scenarios: edge, datacenter or datacenter,edge [default: edge]
    #[arg(long, requires = "submission")]
    category: Option<SystemCategory>,
    /// Measure complete results again
    #[arg(long, requires = "submission")]
    again: bool,
    /// Continue when assets are missing, because the devices have local copies of the benchmark's files
    #[arg(long, requires = "submission")]
    local_files: bool,
}

impl SubmissionFlags {
    fn category(&self) -> SystemCategory {
        self.category.unwrap_or_default()
    }
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let lab = Lab {
        store: &store,
        catalogue: &catalogue,
    };
    let request = SubmissionRequest::of(args, &lab)?;
    let status = request.status(&lab)?;
    let cells = request.cells(args, &status)?;
    if cells.is_empty() {
        return finish(&request, &lab, context);
    }
    let name = format!("submission-{}", Timestamp::now().strftime("%Y%m%d-%H%M%S"));
    let text = submission_plan(&name, &cells, &request.settings)?;
    let checked = check_text(&text, "the plan of the submission", &workspace, &store)?;
    expect_files(args, &request, &checked)?;
    if args.dry_run {
        let document = plan_document(&checked, &store)?;
        context.print(&document, || tables::campaign_plan(&document))?;
        return Ok(ExitCode::Success);
    }
    args.waiting.expect_served(context, &workspace)?;
    checked.missing.iter().for_each(|missing| tell(missing));
    start(&checked, &store)?;
    tell(&format!(
        "campaign {name} has started: {} cells; it continues when this command ends, and after a restart of `regatta serve`",
        checked.expanded.cells.len()
    ));
    if args.waiting.no_wait {
        let document = serde_json::json!({ "campaign": name, "cells": checked.expanded.cells.len() });
        context.print(&document, || {
            format!("follow it: `regatta campaign status {name} --watch`, then `regatta submission status`")
        })?;
        return Ok(ExitCode::Success);
    }
    until_ended(&name, context, &workspace, &store)?;
    finish(&request, &lab, context)
}

/// Returns an error if runs would fail because files are missing.
fn expect_files(args: &Args, request: &SubmissionRequest<'_>, checked: &CheckedPlan) -> Result<(), Failure> {
    if args.submission.local_files || checked.missing_files.is_empty() {
        return Ok(());
    }
    let joined = |names: &mut dyn Iterator<Item = &str>, separator: &str| {
        let quoted: Vec<_> = names.map(quote_for_shell_if_needed).collect();
        quoted.join(separator)
    };
    let benchmarks = joined(&mut args.benchmark.iter().map(String::as_str), " ");
    let devices = joined(
        &mut request.devices.iter().map(|device| device.name.as_str()),
        ",",
    );
    Err(Failure::misuse(checked.missing_files.join("; ")).hint(format!(
        "prepare them: `regatta benchmark prepare {benchmarks} --for {devices} --round {}`\nor, if the devices have local copies: repeat this \
         command with --local-files",
        request.round.name
    )))
}

/// Prints the progress after the campaign. The exit code is 0 if all results are complete, or, for a rehearsal, if all of them are rehearsed.
fn finish(request: &SubmissionRequest<'_>, lab: &Lab<'_>, context: &Context) -> CommandResult {
    let status = request.status(lab)?;
    context.print(&status, || tables::submission_status(&status))?;
    let is_done = if request.is_rehearsal {
        status.is_rehearsed()
    } else {
        status.is_complete()
    };
    Ok(if is_done {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

struct Lab<'a> {
    store: &'a Store,
    catalogue: &'a Catalogue,
}

/// A submission as requested on the command line.
struct SubmissionRequest<'a> {
    round: &'a Round,
    category: SystemCategory,
    benchmarks: Vec<&'a Benchmark>,
    devices: Vec<DeviceRow>,
    settings: SubmissionSettings,
    /// Results of the other power setting belong to another system.
    power: PowerSetting,
    /// Whether the results can never be submitted, because of short runs, another LoadGen than the round accepts, or a benchmark that is not in
    /// the rules.
    is_rehearsal: bool,
}

impl<'a> SubmissionRequest<'a> {
    fn of(args: &Args, lab: &Lab<'a>) -> Result<Self, Failure> {
        let input = args.settings.input(args.engine)?;
        let round = lab
            .catalogue
            .round(input.round.as_deref())
            .map_err(Failure::usage)?;
        let benchmarks: Vec<&Benchmark> = args
            .benchmark
            .iter()
            .map(|name| lab.catalogue.benchmark(name).map_err(Failure::usage))
            .collect::<Result<_, _>>()?;
        let settings = SubmissionSettings {
            round: round.name.clone(),
            engine: args.engine,
            system: input.system,
            set: input.set,
            conf: args
                .conf
                .iter()
                .cloned()
                .map(super::Assignment::into_pair)
                .collect(),
            asset: args.asset.clone(),
            test_run: args.test_run,
            duration: args.duration,
            run_limit: args.limit,
        };
        let is_rehearsal = args.test_run
            || args.duration.is_some()
            || args
                .loadgen
                .as_ref()
                .is_some_and(|loadgen| only_rehearses(loadgen, round))
            || benchmarks
                .iter()
                .any(|benchmark| benchmark.not_submittable.is_some());
        Ok(Self {
            round,
            category: args.submission.category(),
            benchmarks,
            devices: args.devices.find_or_only(false, lab.store)?,
            settings,
            power: match args.state {
                Some(StatePreset::MaxQ) => PowerSetting::MaxQ,
                _ => PowerSetting::MaxP,
            },
            is_rehearsal,
        })
    }

    fn status(&self, lab: &Lab<'_>) -> Result<SubmissionStatus, Failure> {
        let request = StatusRequest {
            round: self.round,
            category: self.category,
            devices: &self.devices,
            benchmarks: &self.benchmarks,
            power: Some(self.power),
        };
        Ok(submission_status(&request, lab.catalogue, lab.store)?)
    }

    /// Returns the missing measurements, with one entry per benchmark and device.
    fn cells(&self, args: &Args, status: &SubmissionStatus) -> Result<Vec<SubmissionCells>, Failure> {
        let mut cells = Vec::new();
        for &benchmark in &self.benchmarks {
            let required = self.scenarios(args, benchmark)?;
            for device in &self.devices {
                let own =
                    |result: &&ResultStatus| result.device == device.id && result.benchmark == benchmark.name;
                let done: Vec<Scenario> = status
                    .results
                    .iter()
                    .filter(own)
                    .filter(|result| self.is_finished(args, result))
                    .map(|result| result.scenario)
                    .collect();
                let scenarios: Vec<Scenario> = required
                    .iter()
                    .copied()
                    .filter(|scenario| !done.contains(scenario))
                    .collect();
                if !scenarios.is_empty() {
                    cells.push(self.cells_of(args, benchmark, device, scenarios)?);
                }
            }
        }
        Ok(cells)
    }

    /// Returns whether a result needs no measurement. A result that needs only audits is left to `audit run`, which repeats nothing else.
    fn is_finished(&self, args: &Args, result: &ResultStatus) -> bool {
        if args.submission.again {
            return false;
        }
        if result.needs_only_audits()
            && let Some(next) = &result.next
        {
            tell(&format!(
                "{} {} on {} needs only its audits: `{next}`",
                result.benchmark, result.scenario, result.device_name
            ));
            return true;
        }
        result.is_complete() || (self.is_rehearsal && result.is_rehearsed())
    }

    /// Returns the requested scenarios, or all that the round requires.
    fn scenarios(&self, args: &Args, benchmark: &Benchmark) -> Result<Vec<Scenario>, Failure> {
        let (round, category) = (self.round, self.category);
        let required = round.required_scenarios(benchmark, category).ok_or_else(|| {
            Failure::misuse(format!(
                "round {} does not have {} for {category} systems",
                round.name, benchmark.name
            ))
            .hint(format!(
                "`regatta benchmark show {}` shows its rounds and categories",
                benchmark.name
            ))
        })?;
        if let Some(other) = args.scenario.iter().find(|scenario| !required.contains(scenario)) {
            let known: Vec<&str> = required.iter().map(|scenario| scenario.as_str()).collect();
            return Err(Failure::misuse(format!(
                "round {} has no {other} of {} for {category} systems; it has {}",
                round.name,
                benchmark.name,
                known.join(", ")
            )));
        }
        Ok(required
            .iter()
            .copied()
            .filter(|scenario| args.scenario.is_empty() || args.scenario.contains(scenario))
            .collect())
    }

    fn cells_of(
        &self,
        args: &Args,
        benchmark: &Benchmark,
        device: &DeviceRow,
        scenarios: Vec<Scenario>,
    ) -> Result<SubmissionCells, Failure> {
        let facts = device.reported_facts()?;
        let audits = self.round.audits_of(benchmark).into_iter();
        Ok(SubmissionCells {
            devices: vec![device.id.as_str().to_owned()],
            benchmark: benchmark.name.clone(),
            scenarios,
            audits: audits.map(str::to_owned).collect(),
            builds_engines: self.engine_of(device) == Some(EngineKind::Tensorrt),
            calibrates_again: args.force_calibration,
            state: state(args, &facts),
            loadgen: self.loadgen(args, benchmark, device, &facts)?,
        })
    }

    /// Returns the engine that a device uses.
    fn engine_of(&self, device: &DeviceRow) -> Option<EngineKind> {
        self.settings.engine.or_else(|| default_engine(device))
    }

    /// Returns the LoadGen to run: the named one, otherwise the newest one on the device that the round accepts. The default for a benchmark that
    /// cannot be submitted is Regatta's own.
    fn loadgen(
        &self,
        args: &Args,
        benchmark: &Benchmark,
        device: &DeviceRow,
        facts: &DeviceFacts,
    ) -> Result<LoadgenChoice, Failure> {
        let is_submittable = benchmark.not_submittable.is_none();
        match &args.loadgen {
            Some(LoadgenChoice::Official { revision: None }) if is_submittable => {}
            Some(named) => return Ok(named.clone()),
            None if !is_submittable => return Ok(LoadgenChoice::Native),
            None => {}
        }
        match self.round.newest_accepted_loadgen(&facts.loadgens) {
            Some(revision) => Ok(LoadgenChoice::Official {
                revision: Some(revision.to_owned()),
            }),
            None => Err(no_accepted_loadgen(self.round, device, facts)),
        }
    }
}

/// Returns the error for a device without a LoadGen that a submission to the round may use.
fn no_accepted_loadgen(round: &Round, device: &DeviceRow, facts: &DeviceFacts) -> Failure {
    let (name, round_name) = (&device.name, &round.name);
    let what = if facts.loadgens.is_empty() {
        format!("{name} has no official LoadGen, which round {round_name} requires for a submission")
    } else {
        let installed = facts.loadgens.join(", ");
        format!(
            "{name} has the official LoadGen {installed}, and round {round_name} accepts none of these revisions"
        )
    };
    let newest = round.accepted_loadgens.first().map_or("", String::as_str);
    let rehearsed = facts.loadgens.first().map_or_else(
        || "Regatta's own LoadGen: repeat this command with --loadgen native".to_owned(),
        |revision| format!("LoadGen {revision}: repeat this command with --loadgen official:{revision}"),
    );
    Failure::misuse(what).hint(format!(
        "`regatta device deploy {name}` installs the LoadGens of the agent's package; the newest one of {round_name} is {newest}\n\
         to rehearse with {rehearsed}"
    ))
}

/// Returns whether results with a requested LoadGen can never be submitted.
fn only_rehearses(loadgen: &LoadgenChoice, round: &Round) -> bool {
    match loadgen {
        LoadgenChoice::Native => true,
        LoadgenChoice::Official { revision } => revision
            .as_ref()
            .is_some_and(|revision| !round.accepts_loadgen(revision)),
    }
}

/// Returns the requested state. The default is MaxP on a known board. On other machines, Regatta cannot set clocks.
fn state(args: &Args, facts: &DeviceFacts) -> Option<StatePreset> {
    args.state
        .or_else(|| facts.module.is_some().then_some(StatePreset::MaxP))
}
