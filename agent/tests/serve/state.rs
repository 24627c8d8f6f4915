//! Tests of the state guard: the real daemon and helper over a simulated root of an AGX Orin, with fakes of nvpmodel and
//! systemctl. The requested state is set, verified and restored, whichever process is killed.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use regatta_test_support::settable_board::{Socket, bytes_of, get, own_user, put, settable_orin};
use regatta_types::{
    RunId,
    documents::{DeviceFacts, Document as _, Evidence, RunPhase, RunSpec, StateProof, StateSpec},
};
use regatta_wire::message::Command;
use tempfile::TempDir;

use crate::{agent::Agent, coordinator::Coordinator, eventually, mosquitto::Mosquitto};

const GPU_MIN: &str = "sys/class/devfreq/17000000.gpu/min_freq";
const LOCK: &str = "sys/kernel/debug/bpmp/debug/clk/emc/mrq_rate_locked";

/// A lab with one board.
struct Lab {
    _broker: Mosquitto,
    root: TempDir,
    helper: Socket,
    agent: Agent,
    coordinator: Coordinator,
}

impl Lab {
    fn start() -> Option<Self> {
        let broker = Mosquitto::start()?;
        let root = settable_orin();
        // Some seconds of a board's life: sampling reads these.
        put(root.path(), "proc/stat", "cpu  10 0 10 70 10 0 0 0 0 0\n");
        let program = Path::new(env!("CARGO_BIN_EXE_regatta-agent")).with_file_name("regatta-state");
        assert!(
            program.exists(),
            "build it: cargo build --workspace --bin regatta-state"
        );
        let helper = Socket::listen(program, root.path(), own_user());
        let settings = format!(
            "min_free_mib = 16\nstate_socket = '{}'\nsystem_root = '{}'",
            helper.path().display(),
            root.path().display()
        );
        let agent = Agent::start_with(broker.port, &settings);
        let coordinator = Coordinator::start(broker.port, &agent.device);
        Some(Self {
            _broker: broker,
            root,
            helper,
            agent,
            coordinator,
        })
    }

    fn at(&self, path: &str) -> String {
        get(self.root.path(), path)
    }

    fn proof(&self, run: &RunSpec) -> StateProof {
        let streams = self.coordinator.wait_for_streams(run.run, 20);
        evidence(&streams).state.expect("the evidence proves a state")
    }
}

fn evidence(streams: &BTreeMap<String, Vec<u8>>) -> Evidence {
    Evidence::from_json(&streams["evidence.json"]).unwrap()
}

fn in_state(spec: RunSpec, controls: &str) -> RunSpec {
    let words = controls.split(' ').map(|word| word.split_once('=').unwrap());
    RunSpec {
        state: Some(StateSpec {
            name: "own".to_owned(),
            source: "the test".to_owned(),
            controls: words
                .map(|(what, value)| (what.to_owned(), value.to_owned()))
                .collect(),
        }),
        ..spec
    }
}

#[test]
fn a_state_is_set_proven_sampled_and_put_back() {
    let Some(lab) = Lab::start() else { return };
    let before = bytes_of(lab.root.path());
    let spec = in_state(
        lab.agent.spec(60_000),
        "power-mode=MODE_30W fan=200 gpu=lock:612000000 memory=lock:2133000000",
    );
    lab.coordinator.start_run(&spec);
    lab.coordinator.wait_for(spec.run, RunPhase::Running, 30);
    assert_eq!(
        (lab.at(GPU_MIN).as_str(), lab.at(LOCK).as_str()),
        ("612000000", "1")
    );
    let samples_beyond = |count: usize| {
        let table = lab.agent.file(spec.run, "telemetry.csv");
        eventually("more samples", 30, || {
            let lines = fs::read_to_string(&table).unwrap();
            let running = lines.lines().filter(|line| line.contains(",running,")).count();
            (running > count).then_some(running)
        })
    };
    let healthy = samples_beyond(0);
    let counter = "sys/class/hwmon/hwmon5/oc3_event_cnt";
    put(lab.root.path(), counter, "2\n");
    put(
        lab.root.path(),
        "sys/class/devfreq/17000000.gpu/cur_freq",
        "306000000\n",
    );
    // The next sample may have been taken in between.
    samples_beyond(healthy + 1);
    let reason = "seen enough".to_owned();
    lab.coordinator.command(spec.run, &Command::Abort { reason });
    lab.coordinator.wait_for(spec.run, RunPhase::Aborted, 30);
    put(lab.root.path(), counter, "0\n");
    put(
        lab.root.path(),
        "sys/class/devfreq/17000000.gpu/cur_freq",
        "1300500000\n",
    );
    assert_eq!(bytes_of(lab.root.path()), before);

    let streams = lab.coordinator.wait_for_streams(spec.run, 20);
    let evidence = evidence(&streams);
    assert!(
        evidence
            .not_a_measurement
            .iter()
            .any(|why| why.contains("not from the machine itself"))
    );
    let proof = evidence.state.unwrap();
    assert_eq!((&proof.requested, &proof.not_restored), (&spec.state, &None));
    let gpu = proof
        .set
        .iter()
        .find(|control| control.control == "gpu-min")
        .unwrap();
    assert_eq!(
        (gpu.before.as_deref(), gpu.read.as_deref()),
        (Some("1300500000"), Some("612000000"))
    );
    assert_eq!(proof.before, proof.after);
    assert_eq!(proof.before["memory-lock"], "0", "the helper reads for root");
    let findings: Vec<&str> = proof
        .findings
        .iter()
        .map(|finding| finding.what.as_str())
        .collect();
    assert!(
        findings.iter().any(|what| what.contains("oc3 counted events")),
        "{findings:?}"
    );
    assert!(
        findings
            .iter()
            .any(|what| what.contains("below its lock of 612000000")),
        "{findings:?}"
    );
    let seen = &proof.telemetry;
    assert!(seen.window_samples >= 1 && seen.window_ms > 0, "{seen:?}");
    assert_eq!(seen.rails.len(), 4, "{seen:?}");
    assert!(
        seen.milliwatts.is_some() && seen.hottest_millicelsius == Some(46_218),
        "{seen:?}"
    );
    let table = String::from_utf8(streams["telemetry.csv"].clone()).unwrap();
    let mut lines = table.lines();
    let columns = lines.next().unwrap();
    assert!(
        columns.starts_with("seconds,monotonic_ns,phase,cpu_busy_percent,memory_used_kib,cpu_khz:0"),
        "{columns}"
    );
    assert!(
        columns.contains("milliwatts:VDD_GPU_SOC") && columns.contains("memory_hz"),
        "{columns}"
    );
    assert_eq!(u64::try_from(lines.clone().count()).unwrap(), seen.samples);
    assert!(
        lines.all(|line| line.split(',').count() == columns.split(',').count()),
        "{table}"
    );
}

#[test]
fn run_fails_before_measuring_if_the_device_state_changes() {
    let Some(lab) = Lab::start() else { return };
    let before = bytes_of(lab.root.path());
    let spec = in_state(lab.agent.spec(300), "gpu=lock:612000000");
    let (done, file) = (AtomicBool::new(false), lab.root.path().join(GPU_MIN));
    // A fake of a service that resets the clock.
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if fs::read(&file).unwrap() == b"612000000\n" {
                    fs::write(&file, "1300500000\n").unwrap();
                }
                thread::sleep(Duration::from_millis(2));
            }
        });
        lab.coordinator.start_run(&spec);
        let report = lab.coordinator.wait_for(spec.run, RunPhase::Failed, 30);
        done.store(true, Ordering::Relaxed);
        assert_eq!(
            report.state.reason.as_deref(),
            Some("the device is not in the state own: gpu-min was set to 612000000, and reads 1300500000")
        );
    });
    let proof = lab.proof(&spec);
    let gpu_min = proof
        .set
        .iter()
        .find(|control| control.control == "gpu-min")
        .unwrap();
    assert_eq!(
        (gpu_min.requested.as_str(), gpu_min.read.as_deref()),
        ("612000000", Some("1300500000"))
    );
    assert!(
        !lab.agent.file(spec.run, "mlperf_log_detail.txt").exists(),
        "nothing was measured"
    );
    assert_eq!(bytes_of(lab.root.path()), before);
}

#[test]
fn a_daemon_that_is_killed_leaves_the_board_as_it_was() {
    let Some(mut lab) = Lab::start() else { return };
    let before = bytes_of(lab.root.path());
    let doomed = in_state(
        lab.agent.spec(60_000),
        "gpu=lock:612000000 memory=lock:2133000000",
    );
    lab.coordinator.start_run(&doomed);
    lab.coordinator.wait_for(doomed.run, RunPhase::Running, 30);
    assert_eq!(lab.at(LOCK), "1");
    lab.agent.kill();
    eventually("the helper to put the state back without a daemon", 20, || {
        (bytes_of(lab.root.path()) == before).then_some(())
    });
    lab.agent.launch();
    let report = lab.coordinator.wait_for(doomed.run, RunPhase::Failed, 20);
    assert!(report.state.reason.unwrap().starts_with("interrupted: "));
    assert!(
        lab.proof(&doomed)
            .set
            .iter()
            .any(|control| control.control == "gpu-min"),
        "what was set is known"
    );

    // Both at once: only the journal remains.
    let doomed = in_state(
        lab.agent.spec(60_000),
        "gpu=lock:612000000 memory=lock:2133000000",
    );
    lab.coordinator.start_run(&doomed);
    lab.coordinator.wait_for(doomed.run, RunPhase::Running, 30);
    lab.helper.kill_helpers();
    lab.agent.kill();
    assert!(lab.helper.journal().exists() && bytes_of(lab.root.path()) != before);
    lab.agent.launch();
    eventually("the next daemon to follow the journal", 20, || {
        (bytes_of(lab.root.path()) == before).then_some(())
    });
    lab.coordinator.wait_for(doomed.run, RunPhase::Failed, 20);
}

#[test]
fn a_helper_that_is_killed_fails_the_run_and_another_puts_back() {
    let Some(lab) = Lab::start() else { return };
    let before = bytes_of(lab.root.path());
    let spec = in_state(lab.agent.spec(60_000), "gpu=lock:612000000");
    lab.coordinator.start_run(&spec);
    lab.coordinator.wait_for(spec.run, RunPhase::Running, 30);
    lab.helper.kill_helpers();
    let report = lab.coordinator.wait_for(spec.run, RunPhase::Failed, 20);
    let reason = report.state.reason.unwrap();
    assert!(
        reason.starts_with("the device's state is no longer kept: "),
        "{reason}"
    );
    assert_eq!(bytes_of(lab.root.path()), before);
    assert_eq!(lab.proof(&spec).not_restored, None);
}

/// Returns whether the device reports that its helper is installed.
fn reports_helper(coordinator: &Coordinator) -> Option<bool> {
    let hello = coordinator.wait_for_hello(true);
    let facts: DeviceFacts = serde_json::from_slice(&hello.facts_json).unwrap();
    facts.state_helper
}

#[test]
fn without_a_helper_a_state_is_refused_with_a_way_out_and_as_is_runs() {
    let Some(broker) = Mosquitto::start() else { return };
    let agent = Agent::start_with(broker.port, "min_free_mib = 16\nstate_socket = 'nobody-listens'");
    let coordinator = Coordinator::start(broker.port, &agent.device);
    assert_eq!(reports_helper(&coordinator), Some(false));
    let spec = in_state(agent.spec(300), "gpu=lock:max");
    let as_is = agent.spec(300);
    coordinator.start_run(&spec);
    coordinator.start_run(&as_is);
    let report = coordinator.wait_for(spec.run, RunPhase::Failed, 20);
    let reason = report.state.reason.unwrap();
    assert!(
        reason.contains("hint: install the regatta-agent package as root, or run with --state as-is"),
        "{reason}"
    );
    coordinator.wait_for(as_is.run, RunPhase::Done, 30);
    let streams = coordinator.wait_for_streams(as_is.run, 20);
    let proof = evidence(&streams).state.unwrap();
    assert!(proof.requested.is_none() && proof.set.is_empty());
    assert!(streams.contains_key("telemetry.csv"));
}

#[test]
fn the_device_answers_an_identity_query_between_runs() {
    let Some(lab) = Lab::start() else { return };
    assert_eq!(reports_helper(&lab.coordinator), Some(true));
    let (spec, question) = (lab.agent.spec(60_000), RunId::now());
    lab.coordinator.start_run(&spec);
    lab.coordinator.wait_for(spec.run, RunPhase::Running, 30);
    lab.coordinator.command(question, &Command::Examine);
    let heard = lab.coordinator.known().heartbeats.len();
    eventually("two heartbeats", 20, || {
        (lab.coordinator.known().heartbeats.len() >= heard + 2).then_some(())
    });
    assert!(
        lab.coordinator.known().examined.is_empty(),
        "not while a run is on"
    );
    let reason = "enough".to_owned();
    lab.coordinator.command(spec.run, &Command::Abort { reason });
    let (id, examined) = eventually("the answer", 20, || {
        lab.coordinator.known().examined.first().cloned()
    });
    assert_eq!(id, question);
    let json: serde_json::Value = serde_json::from_str(&examined.json).unwrap();
    assert_eq!(json["board"]["model"], "NVIDIA Jetson AGX Orin Developer Kit");
    assert!(examined.text.starts_with("fit to measure"), "{}", examined.text);
}

#[test]
fn an_abort_while_the_state_is_being_set_ends_the_run_and_leaves_the_board() {
    let Some(lab) = Lab::start() else { return };
    let before = bytes_of(lab.root.path());
    put(lab.root.path(), "nvpmodel-is-slow", "");
    let spec = in_state(lab.agent.spec(60_000), "power-mode=MODE_30W");
    lab.coordinator.start_run(&spec);
    eventually("the transaction", 20, || {
        lab.helper.journal().exists().then_some(())
    });
    let reason = "enough".to_owned();
    lab.coordinator.command(spec.run, &Command::Abort { reason });
    thread::sleep(Duration::from_millis(100));
    fs::remove_file(lab.root.path().join("nvpmodel-is-slow")).unwrap();
    let report = lab.coordinator.wait_for(spec.run, RunPhase::Aborted, 20);
    assert_eq!(report.state.reason.as_deref(), Some("enough"));
    assert_eq!(bytes_of(lab.root.path()), before);
}
