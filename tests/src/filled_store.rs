//! A lab whose store a test fills: runs with known figures, campaigns and power sessions, without waiting for a device. It starts nothing.

use std::{fs, path::PathBuf, time::Duration};

use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::{Lab, eventually};

/// The latency of a run without any disturbance, in nanoseconds.
pub const LATENCY: f64 = 1_000_000.0;
/// The noise of runs in a fixed order: differences of up to 0.6 %.
const NOISE: [f64; 7] = [0.0, 0.003, -0.002, 0.001, -0.003, 0.002, -0.001];

/// A store that a test fills while the coordinator serves it.
pub struct FilledStore {
    /// The store.
    pub store: Connection,
    workspace: PathBuf,
    /// The draft of a run, which all others copy.
    draft: Value,
    runs: u32,
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
        let store = Connection::open(lab.workspace().join("regatta.db")).expect("the store");
        store.busy_timeout(Duration::from_secs(20)).expect("a time limit");
        let draft: String = store
            .query_row("SELECT draft FROM runs WHERE id = ?1", [&run], |row| row.get(0))
            .expect("the draft");
        store
            .execute("DELETE FROM runs", [])
            .expect("the store is writable");
        let mut draft: Value = serde_json::from_str(&draft).expect("JSON");
        draft["spec"]["engine"]["kind"] = json!("tract");
        Self {
            store,
            workspace: lab.workspace(),
            draft,
            runs: 0,
        }
    }

    /// The id of the lab's device.
    ///
    /// # Panics
    /// Panics when the draft has none.
    #[must_use]
    pub fn device(&self) -> String {
        self.draft["spec"]["device"]
            .as_str()
            .expect("a device")
            .to_owned()
    }

    /// Adds interleaved pairs of batch 1 and batch 2, which is slower by `effect`.
    pub fn add_pairs(&mut self, pairs: usize, effect: f64) {
        for number in 0..pairs {
            let noise = |place: usize| NOISE[(2 * number + place) % NOISE.len()];
            self.add("1", LATENCY * (1.0 + noise(0)));
            self.add("2", LATENCY * (1.0 + effect + noise(1)));
        }
    }

    /// Adds a run with an engine setting, which ends with a latency of SingleStream.
    pub fn add(&mut self, batch: &str, latency: f64) -> String {
        self.add_changed(latency, |draft, _| {
            draft["spec"]["engine"]["settings"] = json!({ "batch": batch });
        })
    }

    /// Adds a run after `change` changed its draft and its outcome.
    ///
    /// # Panics
    /// Panics when the store refuses it.
    pub fn add_changed(&mut self, latency: f64, change: impl FnOnce(&mut Value, &mut Value)) -> String {
        self.runs += 1;
        let id = format!("01a1fd91-2a94-7230-9870-4637{:08}", self.runs);
        let started = format!("2026-11-22T{:02}:{:02}:00Z", self.runs / 60, self.runs % 60);
        let mut draft = self.draft.clone();
        draft["spec"]["run"] = json!(id);
        draft["spec"]["created"] = json!(started);
        let judged =
            json!({ "name": "Early stopping 90.0th percentile estimate", "value": latency, "unit": "ns" });
        let mut outcome = json!({
            "valid": true, "reasons": [], "metric": null, "judged": judged, "accuracy": null, "samples": 10, "bytes": 10,
            "complete": true, "signed": true, "not_a_measurement": [], "forgettable": true, "rates": {},
            "timing": { "started": started, "synchronised": true, "duration_ns": 600_000_000_000_u64 },
        });
        change(&mut draft, &mut outcome);
        let spec = &draft["spec"];
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        self.store
            .execute(
                "INSERT INTO runs (id, device, benchmark, scenario, mode, engine, created, draft, spec_sha256, known, phase, revision,
                     recorded, outcome) VALUES (?1, ?2, ?3, ?4, ?5, 'tract', ?6, ?7, '00', 1, 'done', 1, ?6, ?8)",
                params![
                    id,
                    text(&spec["device"]),
                    text(&spec["benchmark"]["name"]),
                    text(&spec["scenario"]),
                    text(&spec["mode"]),
                    started,
                    draft.to_string(),
                    outcome.to_string()
                ],
            )
            .expect("the store takes the run");
        id
    }

    /// Adds a power session with samples of both runs and this `session.json`. Every text about it is `text`.
    ///
    /// # Panics
    /// Panics when the store or the disk refuses it.
    pub fn add_power_session(&self, id: &str, text: &str, record: &Value) {
        self.store
            .execute(
                "INSERT INTO power_sessions (id, meter, device, benchmark, scenario, begun, ended, verdict, reason, simulated, obstacles)
                 VALUES (?1, ?2, ?3, ?2, ?2, '2026-11-22T10:00:00Z', '2026-11-22T10:20:00Z', 'rehearsal', ?2, 1, ?4)",
                params![id, text, self.device(), json!([text]).to_string()],
            )
            .expect("the store takes the session");
        let directory = self.workspace.join("power").join(id);
        for (part, minute, watts) in [("ranging", 1, 21.0), ("run_1", 5, 20.0)] {
            let below = directory.join("session").join(part);
            fs::create_dir_all(&below).expect("a directory");
            let line = |second: u32| {
                let watts = watts + f64::from(second % 3);
                format!(
                    "Time,11-22-2026 10:{:02}:{:02}.000,Watts,{watts},Volts,230\n",
                    minute + second / 60,
                    second % 60
                )
            };
            let samples: String = (0..180).map(line).collect();
            fs::write(below.join("spl.txt"), samples).expect("the samples");
            let stamp = |key: &str, minute: u32| {
                let value = format!("11-22-2026 10:{minute:02}:20.000");
                let record = json!({
                    "key": key, "value": value, "time_ms": 1.0, "namespace": "mlperf::logging", "event_type": "POINT_IN_TIME",
                    "metadata": { "is_error": false, "is_warning": false, "file": "loadgen.cc", "line_no": 1, "pid": 1, "tid": 1 },
                });
                format!(":::MLLOG {record}\n")
            };
            let log = stamp("power_begin", minute) + &stamp("power_end", minute + 2);
            fs::write(below.join("mlperf_log_detail.txt"), log).expect("the log");
        }
        fs::write(directory.join("session.json"), record.to_string()).expect("the record");
    }
}
