//! Tests of `exec` through the binary: the files that a run process leaves, and the events that it reports.

mod dla;

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use regatta_test_support::{fake_tensorrt::FakeTensorrt, fixture::Fixture, oracle, strace::Strace};
use regatta_types::{
    Mode, RunId, Scenario,
    documents::{
        Attempt, ConfTexts, Delivery, Document, EngineKind, EngineSpec, LoadgenChoice, RunLength, RunSpec,
        RunTask,
    },
    engine_settings::{EngineSettings, TimingWait},
};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Ended, FEW_QUERIES, MLPERF_CONF, USER_CONF, agent};

/// A run that takes a moment.
fn spec(fixture: &Fixture, engine: EngineKind, scenario: Scenario, mode: Mode) -> RunSpec {
    RunSpec {
        schema: RunSpec::SCHEMA,
        run: RunId::now(),
        device: "0123456789abcdef0123456789abcdef".parse().unwrap(),
        created: "2026-11-21T09:00:00Z".to_owned(),
        round: "v6.1".to_owned(),
        benchmark: fixture.benchmark(),
        scenario,
        mode,
        engine: EngineSpec {
            kind: engine,
            settings: EngineSettings {
                warmup_duration: Some(Duration::ZERO),
                ..EngineSettings::default()
            },
        },
        loadgen: LoadgenChoice::Native,
        length: RunLength::Duration(200),
        conf: ConfTexts {
            mlperf_conf: MLPERF_CONF.to_owned(),
            user_conf: format!("{USER_CONF}*.*.min_duration = 200\n*.*.min_query_count = 1\n"),
            audit_config: None,
        },
        delivery: Delivery::After,
        audit: None,
        system: None,
        state: None,
        gate: None,
        task: RunTask::Measurement,
        assets: None,
    }
}

/// Adds a setting of the spec's engine.
fn set(spec: &mut RunSpec, name: &str, value: &str) {
    let settings = EngineSettings::parse(spec.engine.kind, [(name, value)]).unwrap();
    spec.engine.settings = settings.or(spec.engine.settings.clone());
}

const AGENT: &str = env!("CARGO_BIN_EXE_regatta-agent");
const EXEC: [&str; 4] = ["exec", "run/spec.json", "--scratch", "."];

/// Writes the spec into a run directory of its own.
fn write(fixture: &Fixture, spec: &RunSpec) {
    fs::create_dir_all(fixture.path("run")).unwrap();
    fs::write(fixture.path("run/spec.json"), serde_json::to_vec(spec).unwrap()).unwrap();
}

/// Writes the spec and runs it.
fn exec(fixture: &Fixture, spec: &RunSpec) -> Ended {
    write(fixture, spec);
    agent(fixture.scratch(), &EXEC)
}

/// As [`exec`], under `strace`, which needs absolute paths.
fn exec_under(mut strace: Command, fixture: &Fixture, spec: &RunSpec) -> Ended {
    write(fixture, spec);
    strace.arg("exec").arg(fixture.path("run/spec.json"));
    strace.args(["--scratch", "."]).current_dir(fixture.scratch());
    Ended::from(strace.output().unwrap())
}

fn file(fixture: &Fixture, name: &str) -> PathBuf {
    fixture.path("run/files").join(name)
}

fn attempt(fixture: &Fixture) -> Attempt {
    serde_json::from_slice(&fs::read(file(fixture, "attempt.json")).unwrap()).unwrap()
}

const WHOLE_RUN: &str = "\
{\"event\":\"phase\",\"phase\":\"preparing\"}
{\"event\":\"phase\",\"phase\":\"ready\"}
{\"event\":\"phase\",\"phase\":\"running\"}
{\"event\":\"phase\",\"phase\":\"draining\"}
";

#[test]
fn run_reports_its_phases_and_leaves_all_evidence() {
    let fixture = Fixture::new();
    let mut spec = spec(
        &fixture,
        EngineKind::Null,
        Scenario::SingleStream,
        Mode::PerformanceOnly,
    );
    spec.conf.audit_config = Some("*.*.accuracy_log_sampling_target = 5\n".to_owned());
    let ended = exec(&fixture, &spec);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, WHOLE_RUN), "{ended:?}");

    let texts = [
        ("mlperf.conf", &spec.conf.mlperf_conf),
        ("user.conf", &spec.conf.user_conf),
        ("audit.config", spec.conf.audit_config.as_ref().unwrap()),
    ];
    for (name, text) in texts {
        assert_eq!(&fs::read_to_string(file(&fixture, name)).unwrap(), text, "{name}");
    }
    for log in [
        "mlperf_log_summary.txt",
        "mlperf_log_detail.txt",
        "mlperf_log_accuracy.json",
    ] {
        assert!(fs::metadata(file(&fixture, log)).unwrap().len() > 0, "{log}");
    }
    assert!(!fixture.path("run/attempt.json.part").exists());

    let attempt = attempt(&fixture);
    assert_eq!((attempt.valid, attempt.invalid_reasons.len()), (Some(true), 0));
    assert!(attempt.engine.starts_with("null "), "{}", attempt.engine);
    let loadgen = attempt.loadgen.unwrap();
    assert_eq!(loadgen.implementation, "regatta-loadgen");
    assert_eq!(loadgen.mlperf_conf_sha256.len(), 64);
    assert_eq!(attempt.timing.unwrap().wait, "block");
    let (started, ended) = (attempt.started.unwrap(), attempt.ended.unwrap());
    assert_eq!(started.boot_id, ended.boot_id);
    assert!(
        ended.monotonic_ns - started.monotonic_ns >= 200_000_000,
        "the run lasts as long as was asked"
    );
}

/// Machines differ in what they allow; every machine reports it.
#[test]
fn attempt_records_how_the_timing_thread_ran() {
    let fixture = Fixture::new();
    let mut spec = spec(&fixture, EngineKind::Null, Scenario::Offline, Mode::AccuracyOnly);
    spec.engine.settings = EngineSettings {
        timing_cpu: Some(1023),
        timing_priority: Some(9),
        timing_wait: Some(TimingWait::Spin),
        stall_timeout: Some(Duration::from_secs(60)),
        ..spec.engine.settings
    };
    assert_eq!(exec(&fixture, &spec).code, 0);
    let timing = attempt(&fixture).timing.unwrap();
    assert_eq!(timing.wait, "spin");
    assert!(timing.refused[0].starts_with("The timing thread could not be pinned to a processor"));
    let refused = timing
        .refused
        .iter()
        .any(|output| output.contains("a real-time priority"));
    assert_eq!(timing.realtime_priority == Some(9), !refused, "{timing:?}");
    let detail = fs::read_to_string(file(&fixture, "mlperf_log_detail.txt")).unwrap();
    assert!(
        detail.contains("The timing thread could not be pinned"),
        "{detail}"
    );
}

#[test]
fn a_spec_with_a_setting_that_its_engine_does_not_accept_is_refused_when_it_is_read() {
    for (settings, reported) in [
        (r#"{"gpu_batch_size":8}"#, "it is one of tensorrt and sim"),
        (r#"{"batch_sise":8}"#, "hint: did you mean `batch_size`?"),
        (
            r#"{"batch_size":"8"}"#,
            "invalid type: string \"8\", expected an integer from 1 to",
        ),
    ] {
        let fixture = Fixture::new();
        let spec = spec(&fixture, EngineKind::Null, Scenario::Offline, Mode::AccuracyOnly);
        write(&fixture, &spec);
        let path = fixture.path("run/spec.json");
        let text = fs::read_to_string(&path).unwrap();
        let changed = text.replace(r#"{"warmup_duration":0.0}"#, settings);
        assert_ne!(text, changed);
        fs::write(&path, changed).unwrap();
        let ended = agent(fixture.scratch(), &EXEC);
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(
            ended.stderr.contains("spec.json cannot be used") && ended.stderr.contains(reported),
            "{ended:?}"
        );
        assert!(!fixture.path("run/files").exists(), "nothing was written");
    }
}

#[cfg(feature = "tract")]
#[test]
fn an_accuracy_run_has_no_verdict_and_ends_well() {
    let fixture = Fixture::new();
    let spec = spec(&fixture, EngineKind::Tract, Scenario::Offline, Mode::AccuracyOnly);
    let ended = exec(&fixture, &spec);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, WHOLE_RUN), "{ended:?}");
    assert_eq!(attempt(&fixture).valid, None);
    assert!(attempt(&fixture).engine.starts_with("tract "));
}

#[test]
fn an_invalid_run_ends_with_1_and_its_reasons_stand_in_the_attempt() {
    let fixture = Fixture::new();
    let mut spec = spec(&fixture, EngineKind::Sim, Scenario::Server, Mode::PerformanceOnly);
    set(&mut spec, "sim_units", "gpu=150000+0");
    spec.conf.user_conf = format!("{FEW_QUERIES}*.*.min_duration = 200\n");
    let ended = exec(&fixture, &spec);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, WHOLE_RUN), "{ended:?}");
    let attempt = attempt(&fixture);
    assert_eq!(attempt.valid, Some(false));
    assert!(!attempt.invalid_reasons.is_empty());
}

#[test]
fn a_run_that_cannot_begin_fails_with_a_reason() {
    let fixture = Fixture::new();
    fs::remove_file(fixture.path("map.txt")).unwrap();
    let spec = spec(
        &fixture,
        EngineKind::Tensorrt,
        Scenario::Offline,
        Mode::PerformanceOnly,
    );
    let ended = exec(&fixture, &spec);
    assert_eq!(ended.code, 3);
    insta::assert_snapshot!(format!("{}---\n{}", ended.stdout, ended.stderr));
}

/// Without the limit, such a run would occupy the device until somebody aborts it.
#[test]
fn settings_with_which_no_run_ends_fail_the_run_before_an_engine_is_loaded() {
    for (line, output) in [
        (
            "*.*.min_query_count = -1",
            "user.conf, line 1: `*.*.min_query_count` is -1, but must be ",
        ),
        (
            "*.*.samples_per_query = 9223372036854775807",
            "user.conf, line 1: samples_per_query is 9223372036854775807, but must be ",
        ),
    ] {
        let fixture = Fixture::new();
        let mut spec = spec(
            &fixture,
            EngineKind::Tract,
            Scenario::MultiStream,
            Mode::PerformanceOnly,
        );
        spec.conf.user_conf = line.to_owned();
        let ended = exec(&fixture, &spec);
        assert_eq!(ended.code, 2, "{ended:?}");
        let failed = ended.stdout.lines().last().unwrap();
        assert!(
            failed.starts_with("{\"event\":\"failed\"") && failed.contains(output),
            "{ended:?}"
        );
    }
}

#[cfg(feature = "tract")]
#[test]
fn a_sample_that_breaks_after_the_start_fails_the_run_and_its_log_is_kept() {
    let fixture = Fixture::new();
    let whole = fs::read(fixture.sample_file(3)).unwrap();
    fixture.write_sample(3, &whole[..whole.len() - 1]);
    let ended = exec(
        &fixture,
        &spec(&fixture, EngineKind::Tract, Scenario::Offline, Mode::AccuracyOnly),
    );
    assert_eq!(ended.code, 3, "{ended:?}");
    insta::assert_snapshot!(format!("{}---\n{}", ended.stdout, ended.stderr));
    assert!(
        fs::metadata(file(&fixture, "mlperf_log_detail.txt"))
            .unwrap()
            .len()
            > 0
    );
    assert_eq!(attempt(&fixture).valid, Some(false));
}

const LOGS: [&str; 3] = [
    "mlperf_log_summary.txt",
    "mlperf_log_detail.txt",
    "mlperf_log_accuracy.json",
];

#[test]
fn the_logs_are_on_the_disk_before_the_verdict() {
    let fixture = Fixture::new();
    let Some(strace) = Strace::find() else { return };
    let spec = spec(&fixture, EngineKind::Null, Scenario::Offline, Mode::AccuracyOnly);
    let mut files: Vec<PathBuf> = LOGS.iter().map(|log| file(&fixture, log)).collect();
    files.extend([fixture.path("run/attempt.json.part"), fixture.path("run/files")]);
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let ended = exec_under(strace.listing(AGENT, &files, "fsync,/^rename"), &fixture, &spec);
    assert_eq!(ended.code, 0, "{ended:?}");
    let seen = strace.seen();
    let calls: Vec<&str> = seen.lines().filter(|call| call.contains("= 0")).collect();
    let last = |what: &str| calls.iter().rposition(|call| call.contains(what)).unwrap();
    let verdict = last(" rename");
    for log in LOGS {
        assert!(last(&format!("/{log}>)")) < verdict, "{log}: {seen}");
    }
    assert!(
        last("/run/files>)") > verdict,
        "the verdict's name is on the disk too: {seen}"
    );
}

/// Runs a spec whose detail log the disk refuses, and expects the error.
fn exec_that_cannot_flush(strace: &Strace, fixture: &Fixture, spec: &RunSpec) -> Ended {
    let detail = file(fixture, LOGS[1]);
    let ended = exec_under(strace.before(AGENT, &[&detail], "fsync:error=EIO"), fixture, spec);
    assert_eq!(ended.code, 3, "{ended:?}");
    ended
}

#[test]
fn logs_that_cannot_be_flushed_have_no_verdict() {
    let fixture = Fixture::new();
    let Some(strace) = Strace::find() else { return };
    let spec = spec(&fixture, EngineKind::Null, Scenario::Offline, Mode::AccuracyOnly);
    let ended = exec_that_cannot_flush(&strace, &fixture, &spec);
    assert!(
        ended
            .stderr
            .contains("cannot be flushed to disk: Input/output error"),
        "{ended:?}"
    );
    assert!(attempt(&fixture).ended.is_none());
}

/// The first error explains why a run failed.
#[cfg(feature = "tract")]
#[test]
fn a_disk_that_fails_hides_no_fault_of_the_run() {
    let fixture = Fixture::new();
    let Some(strace) = Strace::find() else { return };
    let whole = fs::read(fixture.sample_file(3)).unwrap();
    fixture.write_sample(3, &whole[..whole.len() - 1]);
    let spec = spec(&fixture, EngineKind::Tract, Scenario::Offline, Mode::AccuracyOnly);
    let ended = exec_that_cannot_flush(&strace, &fixture, &spec);
    let (fault, besides) = ended.stderr.split_once("; besides, ").unwrap();
    assert!(fault.contains("sample"), "{fault}");
    assert!(besides.contains("cannot be flushed to disk"), "{besides}");
}

#[test]
fn unreadable_specs_are_distinguished() {
    let fixture = Fixture::new();
    let newer = serde_json::json!({ "schema": RunSpec::SCHEMA + 1 }).to_string();
    let output: Vec<String> = [
        ("missing", None),
        ("not JSON", Some("{")),
        ("newer", Some(newer.as_str())),
    ]
    .into_iter()
    .map(|(name, text)| {
        if let Some(text) = text {
            fs::write(fixture.path("spec.json"), text).unwrap();
        }
        let ended = agent(fixture.scratch(), &["exec", "spec.json"]);
        format!("{name}: exit {}\n{}", ended.code, ended.stderr)
    })
    .collect();
    insta::assert_snapshot!(output.join("\n"));
}

/// Returns fakes of CUDA's driver and of TensorRT, with an engine of batches up to 8.
fn over_fakes(fixture: &Fixture) -> FakeTensorrt {
    over_fakes_of("", fixture)
}

/// As [`over_fakes`], for the device `device`.
fn over_fakes_of(device: &str, fixture: &Fixture) -> FakeTensorrt {
    let fakes = FakeTensorrt::new();
    if !fixture.path("model.onnx").exists() {
        fs::write(fixture.path("model.onnx"), "the fake reads no model").unwrap();
    }
    let build = ["engine", "build", "--onnx", "model.onnx", "--batch", "8"];
    let mut build = fakes.agent(AGENT, fixture.scratch(), &build);
    let built = build.env("FAKE_CUDA_FAULTS", device).output().unwrap();
    assert!(built.status.success(), "{built:?}");
    fakes
}

#[test]
fn tensorrt_runs_and_leaves_what_the_others_leave() {
    let fixture = Fixture::new();
    let fakes = over_fakes(&fixture);
    let spec = spec(
        &fixture,
        EngineKind::Tensorrt,
        Scenario::Offline,
        Mode::AccuracyOnly,
    );
    write(&fixture, &spec);
    let ended = Ended::from(fakes.agent(AGENT, fixture.scratch(), &EXEC).output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (0, WHOLE_RUN), "{ended:?}");
    let engine = attempt(&fixture).engine;
    assert!(engine.starts_with("tensorrt 8.5.2 on fake GPU"), "{engine}");
}

/// SIGTERM ends a run while a batch computes, and its attempt has no end. The run, and the batch of an engine that can be slow,
/// would take ten minutes.
#[test]
fn a_run_of_any_engine_is_aborted_while_it_computes() {
    // crates/engines tests the end of a model server.
    let kinds = EngineKind::ALL
        .into_iter()
        .filter(|&kind| kind != EngineKind::Server);
    let is_built_in = |kind: &EngineKind| match kind {
        EngineKind::Tract => cfg!(feature = "tract"),
        EngineKind::Onnxruntime => {
            cfg!(all(feature = "onnxruntime", feature = "tract")) && oracle::onnxruntime().is_some()
        }
        _ => true,
    };
    for kind in kinds.filter(is_built_in) {
        expect_abandoned(kind, Scenario::Server, "");
        if [EngineKind::Sim, EngineKind::Tensorrt].contains(&kind) {
            expect_abandoned(kind, Scenario::SingleStream, "");
        }
    }
    expect_abandoned(EngineKind::Tensorrt, Scenario::Server, "discrete,devices=2");
}

/// Aborts a run on a fake of CUDA's driver that behaves as `device`.
fn expect_abandoned(kind: EngineKind, scenario: Scenario, device: &str) {
    let fixture = Fixture::new();
    let fakes = over_fakes_of(device, &fixture);
    let mut spec = spec(&fixture, kind, scenario, Mode::PerformanceOnly);
    spec.conf.user_conf = "*.*.min_duration = 600000\n*.Server.target_qps = 2000\n".to_owned();
    spec.length = RunLength::Duration(600_000);
    // A graph would be computed once before the run begins.
    match kind {
        EngineKind::Sim => set(&mut spec, "sim_units", "gpu=600000000+0"),
        EngineKind::Tensorrt => set(&mut spec, "use_graphs", "false"),
        EngineKind::Null | EngineKind::Tract => {}
        EngineKind::Onnxruntime => {
            let library = oracle::onnxruntime().unwrap().with_file_name("lib");
            set(&mut spec, "onnxruntime_library", library.to_str().unwrap());
        }
        EngineKind::Server => unreachable!("it needs a server"),
    }
    write(&fixture, &spec);
    let mut run = fakes
        .agent(AGENT, fixture.scratch(), &EXEC)
        .env("FAKE_CUDA_FAULTS", format!("{device},slow=600000000"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(run.stdout.take().unwrap()).lines();
    let running = output.find(|line| line.as_ref().unwrap().contains("running"));
    assert!(running.is_some(), "{kind} {scenario}: {:?}", run.wait());
    // LoadGen's first query follows that event; a run that ends before it is abandoned as well.
    thread::sleep(Duration::from_millis(50));
    kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    let ended = run.wait().unwrap().signal();
    assert_eq!(ended, Some(Signal::TERM.as_raw()), "{kind} {scenario}");
    assert!(attempt(&fixture).ended.is_none(), "{kind} {scenario}");
}

/// A running process does not look at the disk again; the next one does.
#[test]
fn a_plan_that_is_swapped_under_a_run_changes_nothing_for_it_and_the_next_refuses_it() {
    let fixture = Fixture::new();
    let fakes = over_fakes(&fixture);
    let spec = spec(
        &fixture,
        EngineKind::Tensorrt,
        Scenario::SingleStream,
        Mode::AccuracyOnly,
    );
    let engines = fs::read_dir(fakes.engines()).unwrap();
    let mut plans = engines.map(|entry| entry.unwrap().path().join("engine.plan"));
    let plan = plans.find(|plan| plan.exists()).unwrap();
    write(&fixture, &spec);
    let mut slow = fakes.agent(AGENT, fixture.scratch(), &EXEC);
    slow.env("FAKE_CUDA_FAULTS", "slow=10000");
    let mut run = slow.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(run.stdout.take().unwrap()).lines();
    let running = output.find(|line| line.as_ref().unwrap().contains("running"));
    assert!(running.is_some(), "{:?}", run.wait());
    let whole = fs::read_to_string(&plan).unwrap();
    fs::write(&plan, whole.replace("output 0", "output 1")).unwrap();
    // The pipe is read to its end, so that the process may write to it.
    assert_eq!(output.count(), 1, "draining");
    assert!(run.wait().unwrap().success());
    assert!(attempt(&fixture).ended.is_some());

    fs::remove_dir_all(fixture.path("run")).unwrap();
    write(&fixture, &spec);
    let next = Ended::from(fakes.agent(AGENT, fixture.scratch(), &EXEC).output().unwrap());
    assert_ne!(next.code, 0, "{next:?}");
    assert!(next.stderr.contains("was changed after it was built"), "{next:?}");
}
