//! `exec`: one run in its own process, from the spec to LoadGen's verdict, or to the end of another task.
//!
//! It reports its phases as events on standard output and writes all files of the run to `files/`. It does not use the
//! network or seal the run. The daemon does both, even if this process crashes.

mod built_engines;
pub(crate) mod clock;
pub(crate) mod daemon_bond;
pub(crate) mod event;
mod loadgens;
mod missing_engine;
pub(crate) mod prepared_run;
pub(crate) mod run_output;
mod serving;
mod tuning;

use std::{io, path::Path};

use anyhow::Context;
use regatta_engines::{EngineBuilder, MissingEngine};
use regatta_fsutil::hash::sha256_hex;
use regatta_fsutil::regular_file::{self, MAX_TEXT};
use regatta_loadgen::{
    outcome::Outcome,
    request::{ConfText, RunRequest},
};
use regatta_types::{
    ExitCode,
    documents::{Attempt, Document, EngineSpec, LoadgenIdentity, RunPhase, RunSpec, RunTask},
    engine_settings::EngineBuild,
};

use self::{
    event::RunProcessEvent,
    prepared_run::{PreparedRun, RunPlan, ended_well},
    run_output::RunOutput,
};
use crate::{
    cli::{BuildCommand, ExecArgs},
    exit::Failure,
    thread_counters::ThreadCounters,
    timing_cpu,
};

/// Executes a run and returns the exit code: valid or not valid.
///
/// # Errors
/// [`Failure`], which was also reported as an event.
pub(crate) fn exec(args: &ExecArgs) -> Result<ExitCode, Failure> {
    run(args).inspect_err(|failure| {
        tell(&RunProcessEvent::Failed {
            reason: failure.to_string(),
        })
    })
}

fn run(args: &ExecArgs) -> Result<ExitCode, Failure> {
    let spec = read_spec(&args.spec)?;
    let run_output = RunOutput::of_spec(&args.spec);
    tell_phase(RunPhase::Preparing);
    run_output.lay_out(&spec.conf)?;
    let run_plan = RunPlan {
        benchmark: spec.benchmark.clone(),
        engine: engine(&spec),
        loadgen: spec.loadgen.clone(),
        request: request(&spec, &run_output),
        scratch: args.scratch.clone(),
        learn: false,
    };
    let mut attempt = Attempt::requested(&spec);
    let begun = clock::read();
    if spec.task == RunTask::AssetFetch {
        // The daemon has downloaded them.
        attempt.started = Some(begun);
        tell_phase(RunPhase::Ready);
        return end_without_loadgen(&run_output, attempt);
    }
    if spec.task == RunTask::Tune {
        attempt.started = Some(begun);
        tell_phase(RunPhase::Ready);
        tell_phase(RunPhase::Running);
        tuning::tune(&spec, &args.spec, &run_output, args.scratch.as_deref())?;
        return end_without_loadgen(&run_output, attempt);
    }
    if spec.task == RunTask::EngineInspection {
        attempt.started = Some(begun);
        tell_phase(RunPhase::Ready);
        built_engines::inspect(&run_plan, &run_output)?;
        return end_without_loadgen(&run_output, attempt);
    }
    if spec.task == RunTask::EngineRemoval {
        attempt.started = Some(begun);
        tell_phase(RunPhase::Ready);
        built_engines::remove(&run_plan, &run_output)?;
        return end_without_loadgen(&run_output, attempt);
    }
    if spec.task == RunTask::ModelServer {
        return serve(&spec, args, &run_output, attempt);
    }
    let mut recalibrates = run_plan.engine.settings.engine_build == Some(EngineBuild::Recalibrate);
    if recalibrates {
        built_engines::remove_calibrated(&run_plan)?;
    }
    let mut build = |missing: &MissingEngine| {
        let report = |reason| tell(&RunProcessEvent::Preparing { reason });
        let mut command = BuildCommand::of(missing);
        // The run's other engines use the new scales.
        if std::mem::take(&mut recalibrates) {
            command = command.with_new_scales();
        }
        Ok(missing_engine::build(&command, report)?)
    };
    let mut builder = EngineBuilder::new(&mut build);
    let ready = run_plan.clone().prepare(Some(&mut builder))?;
    run_output.keep_mlperf_conf(ready.mlperf_conf())?;
    attempt.engine = ready.harness().engine().to_string();
    run_output.write_attempt(&attempt)?;
    tell_phase(RunPhase::Ready);
    if spec.task == RunTask::EngineBuild {
        attempt.started = Some(begun);
        built_engines::keep_calibrations(&run_plan, &run_output)?;
        return end_without_loadgen(&run_output, attempt);
    }
    let ended = measure(&ready, &mut attempt).and_then(|outcome| match ready.fault() {
        Some(fault) => Err(fault),
        None => {
            attempt.warnings = ready.end()?;
            Ok(outcome)
        }
    });
    match (ended, keep(&ready, &run_output, &attempt)) {
        (Ok(outcome), Ok(())) if ended_well(&outcome) => Ok(ExitCode::Success),
        (Ok(_), Ok(())) => Ok(ExitCode::Negative),
        (Ok(_), Err(unkept)) => Err(unkept.into()),
        (Err(failure), Ok(())) => Err(failure),
        // A full disk may have caused the failure, or may be an additional one.
        (Err(failure), Err(unkept)) => Err(failure.besides(unkept)),
    }
}

/// Serves a model until the coordinator stops the server.
fn serve(
    spec: &RunSpec,
    args: &ExecArgs,
    run_output: &RunOutput,
    mut attempt: Attempt,
) -> Result<ExitCode, Failure> {
    let server = serving::start(spec, run_output, args.scratch.as_deref())?;
    server.description().clone_into(&mut attempt.engine);
    run_output.write_attempt(&attempt)?;
    tell_phase(RunPhase::Ready);
    attempt.started = Some(clock::read());
    tell_phase(RunPhase::Running);
    serving::wait_until_stopped(&server, run_output)?;
    attempt.warnings = serving::stop(server)?;
    end_without_loadgen(run_output, attempt)
}

/// Ends a run that is not a measurement once its work is done. Later runs use the engines or assets that it leaves.
fn end_without_loadgen(run_output: &RunOutput, mut attempt: Attempt) -> Result<ExitCode, Failure> {
    attempt.ended = Some(clock::read());
    tell_phase(RunPhase::Draining);
    run_output.flush()?;
    run_output.write_attempt(&attempt)?;
    Ok(ExitCode::Success)
}

/// Runs LoadGen and records the attempt, even if LoadGen fails.
fn measure(ready: &PreparedRun, attempt: &mut Attempt) -> Result<Outcome, Failure> {
    attempt.started = Some(clock::read());
    tell_phase(RunPhase::Running);
    let before = ThreadCounters::read();
    let outcome = ready.run(ready.harness().sut());
    let timing = ThreadCounters::read().since(before);
    attempt.ended = Some(clock::read());
    tell_phase(RunPhase::Draining);
    attempt.window.timing_sleeps = timing.sleeps;
    attempt.window.timing_preemptions = timing.preemptions;
    attempt.window.timing_migrations = timing.migrations;
    if let Ok(outcome) = &outcome {
        attempt.loadgen = Some(identity(outcome, ready));
        attempt.valid = outcome.valid;
        attempt.invalid_reasons.clone_from(&outcome.reasons);
        attempt.timing = outcome.timing.as_ref().map(|timing| ready.timing_thread(timing));
    }
    outcome
}

/// Writes the logs to disk and then the verdict, so that a power cut cannot leave a verdict without logs.
///
/// # Errors
/// When a file cannot be written or flushed. The verdict is then not written.
fn keep(ready: &PreparedRun, run_output: &RunOutput, attempt: &Attempt) -> anyhow::Result<()> {
    ready.keep_response_units(&run_output.files())?;
    run_output.flush()?;
    run_output.write_attempt(attempt)
}

fn read_spec(path: &Path) -> Result<RunSpec, Failure> {
    let bytes = regular_file::read(path, MAX_TEXT)
        .with_context(|| format!("the spec {} cannot be read", path.display()))?;
    let spec = RunSpec::from_json(&bytes);
    spec.with_context(|| format!("the spec {} cannot be used", path.display()))
        .map_err(Failure::usage)
}

/// Returns the engine's settings. Adds a processor for the issuing thread of a live run.
fn engine(spec: &RunSpec) -> EngineSpec {
    let mut engine = spec.engine.clone();
    engine.settings.timing_cpu = engine.settings.timing_cpu.or_else(|| timing_cpu::of_run(spec));
    engine
}

fn request(spec: &RunSpec, run_output: &RunOutput) -> RunRequest {
    let model = &spec.benchmark.loadgen_model;
    let mut request = RunRequest::new(model, spec.scenario, spec.mode, run_output.files());
    request.mlperf_conf = Some(ConfText::new("mlperf.conf", &spec.conf.mlperf_conf));
    request.user_conf = Some(ConfText::new("user.conf", &spec.conf.user_conf));
    request.audit_config = spec
        .conf
        .audit_config
        .as_ref()
        .map(|text| ConfText::new("audit.config", text));
    request
}

fn identity(outcome: &Outcome, ready: &PreparedRun) -> LoadgenIdentity {
    let ran = &outcome.identity;
    LoadgenIdentity {
        implementation: ran.name.clone(),
        version: ran.version.clone(),
        revision: ran.revision.clone(),
        rng_abi: ran.rng_abi.clone(),
        mlperf_conf_sha256: sha256_hex(ready.mlperf_conf().as_bytes()),
    }
}

fn tell_phase(phase: RunPhase) {
    tell(&RunProcessEvent::Phase { phase });
}

/// Sends an event to the daemon. If the daemon is gone, the run continues: the next daemon finds its files.
fn tell(event: &RunProcessEvent) {
    let _ = event.send(io::stdout().lock());
}
