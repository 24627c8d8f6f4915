//! Runs with known figures, recorded in a coordinator's store without a device. It makes no lab: a test brings the store.

use rusqlite::{Connection, params};
use serde_json::{Value, json};

/// The latency of a run without any disturbance, in nanoseconds.
pub const LATENCY: f64 = 1_000_000.0;
/// The noise of runs in a fixed order: differences of up to 0.6 %.
pub const NOISE: [f64; 7] = [0.0, 0.003, -0.002, 0.001, -0.003, 0.002, -0.001];

/// Records runs in a store, all copies of one draft.
pub struct RunRecorder {
    /// The draft of every run.
    pub draft: Value,
    runs: u32,
}

impl RunRecorder {
    /// Copies the draft of a run in the store. Its copies count in comparisons: their engine executes the model.
    #[must_use]
    pub fn of(store: &Connection, run: &str) -> Self {
        let draft: String = store
            .query_row("SELECT draft FROM runs WHERE id = ?1", [run], |row| row.get(0))
            .unwrap();
        let mut draft: Value = serde_json::from_str(&draft).unwrap();
        draft["spec"]["engine"]["kind"] = json!("tract");
        draft["spec"]["scenario"] = json!("SingleStream");
        Self { draft, runs: 0 }
    }

    /// Records interleaved pairs of batch 1 and batch 2, which is slower by `effect`.
    pub fn add_pairs(&mut self, store: &Connection, pairs: usize, effect: f64) {
        for number in 0..pairs {
            let noise = |place: usize| NOISE[(2 * number + place) % NOISE.len()];
            self.add(store, 1, LATENCY * (1.0 + noise(0)));
            self.add(store, 2, LATENCY * (1.0 + effect + noise(1)));
        }
    }

    /// Records a run with an engine setting and this latency in nanoseconds. Returns its id.
    pub fn add(&mut self, store: &Connection, batch: u64, latency: f64) -> String {
        self.add_changed(store, latency, |draft, _| {
            draft["spec"]["engine"]["settings"] = json!({ "batch_size": batch });
        })
    }

    /// Records a run after `change` changed its draft and its outcome. Returns its id.
    pub fn add_changed(
        &mut self,
        store: &Connection,
        latency: f64,
        change: impl FnOnce(&mut Value, &mut Value),
    ) -> String {
        self.runs += 1;
        let id = format!("01a1fd91-2a94-7230-9870-4637{:08}", self.runs);
        let started = format!("2026-11-22T{:02}:{:02}:00Z", self.runs / 60, self.runs % 60);
        let mut draft = self.draft.clone();
        draft["spec"]["run"] = json!(id);
        draft["spec"]["created"] = json!(started);
        let judged =
            json!({ "name": "Early stopping 90.0th percentile estimate", "value": latency, "unit": "ns" });
        let mut outcome = json!({
            "valid": true, "reasons": [], "metric": null, "figure": judged, "accuracy": null, "samples": 10, "bytes": 10,
            "complete": true, "signed": true, "not_a_measurement": [], "forgettable": true, "rates": {},
            "timing": { "started": started, "synchronised": true, "duration_ns": 600_000_000_000_u64 },
        });
        change(&mut draft, &mut outcome);
        let spec = &draft["spec"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        store
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
            .unwrap();
        id
    }
}
