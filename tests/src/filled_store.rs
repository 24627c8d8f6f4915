//! A lab whose store a test fills: runs with known figures, campaigns and power sessions, without waiting for a device. It starts nothing.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use regatta_test_support::recorded_runs::RunRecorder;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::{Lab, eventually};

/// A store that a test fills while the coordinator serves it.
pub struct FilledStore {
    pub store: Connection,
    workspace: PathBuf,
    recorder: RunRecorder,
}

impl FilledStore {
    /// Prepares the store of a lab that serves and has its device, which is not used any more.
    ///
    /// # Panics
    /// Panics when no run can be requested.
    #[must_use]
    pub fn new(lab: &mut Lab) -> Self {
        lab.start_coordinator();
        lab.start_device();
        lab.wait_for_device();
        lab.device = None;
        let idle = || lab.json(&["device", "list"])["devices"][0]["online"] == false;
        eventually("the device to be offline", 60, idle);
        let words = [
            "run",
            "--benchmark",
            "digits",
            "--scenario",
            "SingleStream",
            "--engine",
            "sim",
            "--no-wait",
        ];
        let requested = lab.json(&words);
        let run = requested["runs"][0]["run"].as_str().expect("a run").to_owned();
        let filled = Self::of(lab, &run);
        filled
            .store
            .execute("DELETE FROM runs", [])
            .expect("the store is writable");
        filled
    }

    /// Opens the store of a lab that has a run of SingleStream, which all others copy.
    ///
    /// # Panics
    /// Panics when the store does not have the run.
    #[must_use]
    pub fn of(lab: &Lab, run: &str) -> Self {
        let store = Connection::open(lab.workspace().join("regatta.db")).expect("the store");
        store.busy_timeout(Duration::from_secs(20)).expect("a time limit");
        let mut recorder = RunRecorder::of(&store, run);
        // Staging reads the documents of the newest round's runs, and these have none.
        recorder.draft["spec"]["round"] = json!("v5.0");
        Self {
            store,
            workspace: lab.workspace(),
            recorder,
        }
    }

    /// Uses another device for the runs that follow, by its name.
    ///
    /// # Panics
    /// Panics when the store does not have the device.
    pub fn use_device(&mut self, name: &str) {
        let id: String = self
            .store
            .query_row("SELECT id FROM devices WHERE name = ?1", [name], |row| row.get(0))
            .expect("the device");
        self.recorder.draft["spec"]["device"] = json!(id);
    }

    /// Returns the id of the lab's device.
    ///
    /// # Panics
    /// Panics when the draft has none.
    #[must_use]
    pub fn device(&self) -> String {
        self.recorder.draft["spec"]["device"]
            .as_str()
            .expect("a device")
            .to_owned()
    }

    /// Adds interleaved pairs of batch 1 and batch 2, which is slower by `effect`.
    pub fn add_pairs(&mut self, pairs: usize, effect: f64) {
        self.recorder.add_pairs(&self.store, pairs, effect);
    }

    /// Adds a run with an engine setting, which ends with a latency of SingleStream.
    pub fn add(&mut self, batch: u64, latency: f64) -> String {
        self.recorder.add(&self.store, batch, latency)
    }

    /// Adds a run after `change` changed its draft and its outcome.
    ///
    /// # Panics
    /// Panics when the store refuses it.
    pub fn add_changed(&mut self, latency: f64, change: impl FnOnce(&mut Value, &mut Value)) -> String {
        self.recorder.add_changed(&self.store, latency, change)
    }

    /// Adds a session of three minutes with samples, LoadGen's window and the server's checkpoints of both runs, and this `session.json`.
    ///
    /// # Panics
    /// Panics when the store or the disk refuses it.
    pub fn add_power_session(&self, id: &str, texts: &PowerSessionTexts<'_>, record: &Value) {
        self.store
            .execute(
                "INSERT INTO power_sessions (id, meter, device, benchmark, scenario, begun, ended, verdict, reason, simulated, obstacles)
                 VALUES (?1, ?2, ?3, ?4, ?5, '2026-11-22T10:00:00Z', '2026-11-22T10:20:00Z', 'rehearsal', ?6, 1, ?7)",
                params![
                    id,
                    texts.meter,
                    self.device(),
                    texts.benchmark,
                    texts.scenario,
                    texts.reason,
                    json!([texts.obstacle]).to_string()
                ],
            )
            .expect("the store takes the session");
        let directory = self.workspace.join("power").join(id);
        let mut phases = json!({});
        for (phase, part, minute) in [("ranging", "ranging", 1), ("testing", "run_1", 5)] {
            write_power_run(&directory.join("session").join(part), minute);
            let at = |second: u32| json!([SESSIONS_HOUR + f64::from(60 * minute + second), 0.0]);
            phases[phase] = json!([at(0), at(10), at(150), at(175)]);
        }
        let server = directory.join("session/power");
        fs::create_dir_all(&server).expect("a directory");
        fs::write(
            server.join("server.json"),
            json!({ "phases": phases }).to_string(),
        )
        .expect("the description");
        fs::write(directory.join("session.json"), record.to_string()).expect("the record");
    }
}

/// Returns the complete record of a rehearsal with other values of some fields.
///
/// # Panics
/// Panics when `fields` is not an object.
#[must_use]
pub fn session_record(fields: &Value) -> Value {
    let mut record = json!({
        "schema": 1, "session": "", "meter": meter_of_session("/dev/usbtmc0"), "device": "ab".repeat(16), "machine": "me@boat",
        "benchmark": "digits", "scenario": "SingleStream", "round": "v6.1", "state": null, "simulated": true, "informative": false,
        "obstacles": [], "steps": [], "observations": [], "runs": {}, "repeated": [], "directory": "power", "unfetched": null,
        "fetched": null, "sha256": {}, "verdict": "rehearsal", "official_checks": [], "official_summary": "", "findings": [],
        "energy": { "watts": 21.0, "seconds": 120.0, "joules": 2520.0 }, "failure": null, "seconds_beside_window": null, "rails": null,
    });
    for (key, value) in fields.as_object().expect("an object") {
        record[key] = value.clone();
    }
    record
}

/// Returns a meter in the record of a session, with a text in its settings.
#[must_use]
pub fn meter_of_session(device_port: &str) -> Value {
    json!({ "name": "wt310", "settings": {
        "ptd": "/opt/ptd", "python": "python3", "device_type": 49, "interface": "", "device_port": device_port, "channel": [],
        "gpib_board": null, "port": 4950, "ptd_port": 8888, "ntp": "ntp",
    } })
}

/// The hour of the sessions, 2026-11-22 10:00 UTC, in seconds since 1970.
const SESSIONS_HOUR: f64 = 1_795_341_600.0;

/// The texts about a power session.
pub struct PowerSessionTexts<'a> {
    /// The meter's name.
    pub meter: &'a str,
    pub benchmark: &'a str,
    pub scenario: &'a str,
    /// The reason why it has no result.
    pub reason: Option<&'a str>,
    /// The reason why it cannot be submitted.
    pub obstacle: &'a str,
}

impl PowerSessionTexts<'static> {
    /// Returns the texts of a rehearsal.
    #[must_use]
    pub const fn rehearsal() -> Self {
        Self {
            meter: "wt310",
            benchmark: "digits",
            scenario: "SingleStream",
            reason: None,
            obstacle: "short: each run took 2 min",
        }
    }
}

/// Writes the samples and the log of a run that begins in a minute of the hour and draws about 21 W for two minutes.
fn write_power_run(directory: &Path, minute: u32) {
    fs::create_dir_all(directory).expect("a directory");
    let line = |second: u32| {
        let watts = match second {
            20..=140 => 20 + second % 3,
            _ => 9,
        };
        let (minute, second) = (minute + second / 60, second % 60);
        format!("Time,11-22-2026 10:{minute:02}:{second:02}.000,Watts,{watts},Volts,230\n")
    };
    let samples: String = (0..180).map(line).collect();
    fs::write(directory.join("spl.txt"), samples).expect("the samples");
    let stamp = |key: &str, minute: u32| {
        let value = format!("11-22-2026 10:{minute:02}:20.000");
        let record = json!({
            "key": key, "value": value, "time_ms": 1.0, "namespace": "mlperf::logging", "event_type": "POINT_IN_TIME",
            "metadata": { "is_error": false, "is_warning": false, "file": "loadgen.cc", "line_no": 1, "pid": 1, "tid": 1 },
        });
        format!(":::MLLOG {record}\n")
    };
    let log = stamp("power_begin", minute) + &stamp("power_end", minute + 2);
    fs::write(directory.join("mlperf_log_detail.txt"), log).expect("the log");
}
