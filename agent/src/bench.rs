//! `bench`: runs one benchmark without a coordinator, from flags to a verdict on standard output. It keeps no record
//! except LoadGen's logs.

mod board;
pub(crate) mod choice;
mod report;
pub(crate) mod system;

use std::{
    fs, io, mem,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, anyhow};
use regatta_catalogue::{known, system::SystemRequest};
use regatta_fsutil::regular_file;
use regatta_harness::IssueLog;
use regatta_loadgen::request::{ConfText, RunRequest};
use regatta_types::{
    ExitCode, Scenario,
    benchmark::Benchmark,
    documents::{EngineKind, EngineSpec, SystemUse},
    engine_settings::EngineSettings,
};

use self::{board::Origin, choice::Named, report::BenchReport};
use crate::{
    cli::BenchArgs,
    exit::Failure,
    run_process::prepared_run::{PreparedRun, RunPlan, ended_well},
};

/// Runs one benchmark. The exit code is 0 if the run is valid.
///
/// # Errors
/// [`Failure`] when the run cannot start or gives no result.
pub(crate) fn bench(args: &BenchArgs) -> Result<ExitCode, Failure> {
    if args.issue_log.is_some() && args.engine != EngineKind::Null {
        return Err(Failure::usage(anyhow!(
            "--issue-log needs --engine null, but the engine is {}",
            args.engine
        )));
    }
    if args.write_board.is_some() {
        board::check(args.engine)?;
    }
    let benchmark = choice::benchmark(&Named {
        sut: args.engine,
        model: &args.benchmark,
        file: args.data.benchmark_file.as_deref(),
        counts: args.data.total_samples.zip(args.data.performance_samples),
    })?;
    let model = benchmark.loadgen_model.clone();
    let not_submittable = benchmark.not_submittable.clone();
    let log_dir = args.log_dir.clone().unwrap_or_else(|| new_log_dir(args));
    let mut request = request(args, &benchmark, &log_dir)?;
    let mut settings = choice::settings(args.engine, &args.settings)?;
    let system = match &args.system {
        Some(name) => Some(take_system(name, args, &benchmark, &mut request, &mut settings)?),
        None => None,
    };
    let benchmark = choice::in_form(benchmark, args.engine, &settings, args.data.scratch.as_deref())?;
    let run_plan = RunPlan {
        request,
        engine: EngineSpec {
            kind: args.engine,
            settings: settings.clone(),
        },
        loadgen: args.loadgen.clone(),
        scratch: args.data.scratch.clone(),
        benchmark,
        learn: args.write_board.is_some(),
    };
    let ready = run_plan
        .prepare(None)
        .inspect_err(|error| report::tell_missing_engine(args.format, error))?;
    fs::create_dir_all(&log_dir)
        .with_context(|| format!("the log directory {} cannot be created", log_dir.display()))?;
    if let (Some(path), Some(found)) = (&args.write_board, ready.harness().board()) {
        let origin = Origin {
            model: &model,
            scenario: args.scenario,
            settings: &settings,
        };
        board::write(path, found, ready.harness().engine(), &origin)?;
    }
    let outcome = match &args.issue_log {
        None => ready.run(ready.harness().sut())?,
        Some(path) => run_with_issue_log(&ready, path)?,
    };
    ready.keep_response_units(&log_dir)?;
    let report = BenchReport::new(args, system, ready.harness().engine(), not_submittable, &outcome);
    if let Some(fault) = ready.fault() {
        return Err(fault);
    }
    // A server that was started again has no result.
    for warning in ready.end()? {
        tracing::warn!("{warning}");
    }
    report
        .print(args.format, &mut io::stdout().lock())
        .context("the result cannot be printed")?;
    Ok(if ended_well(&outcome) {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

/// Adds a system's values for settings that the user did not set, and returns their origin.
fn take_system(
    name: &str,
    args: &BenchArgs,
    benchmark: &Benchmark,
    request: &mut RunRequest,
    settings: &mut EngineSettings,
) -> Result<SystemUse, Failure> {
    let system_request = SystemRequest {
        benchmark,
        scenario: args.scenario,
        power: args.power_setting,
        engine: args.engine,
    };
    let mut chosen = system::chosen(name, &system_request)?;
    *settings = chosen.settings_under(mem::take(settings));
    if let Some(conf) = request.user_conf.take() {
        let conf = system::conf_over(&chosen.conf, &benchmark.loadgen_model, &system_request, conf)?;
        request.user_conf = Some(conf);
    }
    Ok(chosen.from)
}

fn run_with_issue_log(
    ready: &PreparedRun,
    path: &Path,
) -> Result<regatta_loadgen::outcome::Outcome, Failure> {
    let log = IssueLog::around(ready.harness().sut());
    let outcome = ready.run(&log)?;
    log.write(path)
        .with_context(|| format!("the issue log {} cannot be written", path.display()))?;
    Ok(outcome)
}

/// The directory of a run's logs that the user did not name.
fn new_log_dir(args: &BenchArgs) -> PathBuf {
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    format!("logs/{}-{}-{}-{now}", args.benchmark, args.scenario, args.mode).into()
}

/// Returns the `mlperf.conf` of the newest round that is built in, with the benchmark's own lines.
///
/// # Errors
/// [`Failure`] when no round is built in.
pub(crate) fn newest_mlperf_conf(benchmark: &Benchmark) -> Result<String, Failure> {
    let newest = known::newest_round_conf()
        .map_err(Failure::could_not)?
        .context("no round is built into this program")?;
    Ok(newest.render(&benchmark.mlperf_conf))
}

/// Returns the benchmark's first guesses as a `user.conf`.
fn first_guesses(benchmark: &Benchmark) -> String {
    let lines = benchmark
        .user_conf
        .iter()
        .map(|(key, value)| format!("{key} = {value}\n"));
    lines.collect()
}

fn request(args: &BenchArgs, benchmark: &Benchmark, log_dir: &Path) -> Result<RunRequest, Failure> {
    let mut request = RunRequest::new(&benchmark.loadgen_model, args.scenario, args.mode, log_dir);
    request.mlperf_conf = Some(match &args.mlperf_conf {
        Some(path) => conf("--mlperf-conf", path)?,
        None => ConfText::new("mlperf.conf", newest_mlperf_conf(benchmark)?),
    });
    request.user_conf = Some(match &args.user_conf {
        Some(path) => conf("--user-conf", path)?,
        None => ConfText::new("user.conf", first_guesses(benchmark)),
    });
    let audit_conf = args.audit_conf.as_deref();
    request.audit_config = audit_conf.map(|path| conf("--audit-conf", path)).transpose()?;
    if let Some(length) = args.duration {
        request.overrides.min_duration = Some(Duration::from_millis(length.millis()));
        // The conf's minimum count of Offline samples is meant for the full duration, and takes an hour on a small
        // board. With a count of 1, LoadGen computes the count from duration and rate. In other scenarios, early
        // stopping needs the conf's count.
        if args.scenario == Scenario::Offline {
            request.overrides.min_query_count = Some(1);
        }
    }
    Ok(request)
}

fn conf(flag: &str, path: &Path) -> Result<ConfText, Failure> {
    let text = regular_file::read_text(path)
        .with_context(|| format!("{flag} names {}, which cannot be read", path.display()))?;
    Ok(ConfText::new(path.display().to_string(), text))
}
