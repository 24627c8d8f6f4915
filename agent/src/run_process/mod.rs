//! `exec`: one run as a process of its own, from its spec to LoadGen's verdict.
//!
//! It tells its phases as events on standard output, leaves every file of the run in `files/`, and ends. It speaks to no
//! network and seals nothing: that is the daemon's work, which goes on when this process crashes.

pub(crate) mod clock;
pub(crate) mod event;
mod loadgens;
pub(crate) mod prepared_run;
mod run_dir;

use std::{io, path::Path};

use anyhow::Context;
use regatta_fsutil::hash::sha256_hex;
use regatta_fsutil::regular_file::{self, LARGEST_TEXT};
use regatta_loadgen::{
    outcome::Outcome,
    request::{ConfText, RunRequest},
};
use regatta_types::documents::{Attempt, Document, EngineSpec, LoadgenIdentity, RunPhase, RunSpec};

use self::{
    event::Event,
    prepared_run::{PreparedRun, RunPlan, ended_well},
    run_dir::RunDir,
};
use crate::{
    cli::ExecArgs,
    exit::{self, Failure},
    thread_counters::ThreadCounters,
    timing_cpu,
};

/// Runs one run and tells how it ended by exit code: valid, not valid, or a [`Failure`].
///
/// # Errors
/// [`Failure`], which has also been told as an event.
pub(crate) fn exec(args: &ExecArgs) -> Result<u8, Failure> {
    run(args).inspect_err(|failure| {
        tell(&Event::Failed {
            reason: failure.to_string(),
        })
    })
}

fn run(args: &ExecArgs) -> Result<u8, Failure> {
    let spec = read_spec(&args.spec)?;
    let run_dir = RunDir::of_spec(&args.spec);
    tell_phase(RunPhase::Preparing);
    run_dir.lay_out(&spec.conf)?;
    let run_plan = RunPlan {
        benchmark: spec.benchmark.clone(),
        engine: engine(&spec),
        loadgen: spec.loadgen.clone(),
        request: request(&spec, &run_dir),
        scratch: args.scratch.clone(),
        learn: false,
    };
    let mut attempt = Attempt::asked(&spec);
    let ready = run_plan.prepare()?;
    run_dir.keep_mlperf_conf(ready.mlperf_conf())?;
    attempt.engine = ready.harness().engine().to_string();
    run_dir.write_attempt(&attempt)?;
    tell_phase(RunPhase::Ready);
    let ended = measure(&ready, &mut attempt).and_then(|outcome| match ready.fault() {
        Some(fault) => Err(fault),
        None => Ok(outcome),
    });
    match (ended, keep(&ready, &run_dir, &attempt)) {
        (Ok(outcome), Ok(())) if ended_well(&outcome) => Ok(exit::OK),
        (Ok(_), Ok(())) => Ok(exit::NO),
        (Ok(_), Err(unkept)) => Err(unkept.into()),
        (Err(failure), Ok(())) => Err(failure),
        // A disk that is full may be why the run failed, or come on top of it.
        (Err(failure), Err(unkept)) => Err(failure.besides(unkept)),
    }
}

/// Runs LoadGen and takes down in the attempt's record how that went, also when LoadGen ends with an error.
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

/// Puts everything that the run has logged on the disk, and then the verdict: no power cut finds it without the logs.
///
/// # Errors
/// When a file cannot be written or flushed. Then no verdict is written.
fn keep(ready: &PreparedRun, run_dir: &RunDir, attempt: &Attempt) -> anyhow::Result<()> {
    ready.keep_response_units(&run_dir.files())?;
    run_dir.flush()?;
    run_dir.write_attempt(attempt)
}

fn read_spec(path: &Path) -> Result<RunSpec, Failure> {
    let bytes = regular_file::read(path, LARGEST_TEXT)
        .with_context(|| format!("the spec {} cannot be read", path.display()))?;
    let spec = RunSpec::from_json(&bytes);
    spec.with_context(|| format!("the spec {} cannot be used", path.display()))
        .map_err(Failure::usage)
}

/// The engine's settings, with a processor for the issuing thread of a live run.
fn engine(spec: &RunSpec) -> EngineSpec {
    let mut engine = spec.engine.clone();
    if let Some(cpu) = timing_cpu::of_run(spec) {
        engine
            .settings
            .entry(timing_cpu::SETTING.to_owned())
            .or_insert_with(|| cpu.to_string());
    }
    engine
}

fn request(spec: &RunSpec, run_dir: &RunDir) -> RunRequest {
    let model = &spec.benchmark.loadgen_model;
    let mut request = RunRequest::new(model, spec.scenario, spec.mode, run_dir.files());
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
    tell(&Event::Phase { phase });
}

/// Tells the daemon. Should it be gone, the run goes on: its files are what counts, and the next daemon finds them.
fn tell(event: &Event) {
    let _ = event.send(io::stdout().lock());
}
