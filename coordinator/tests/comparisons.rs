//! Tests of `regatta compare` over a store with runs of known figures: selections, exclusions, verdicts, exit codes, files.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::fs;

use regatta_test_support::recorded_runs::{LATENCY, NOISE, RunRecorder};
use regatta_types::documents::{DeviceFacts, Document as _, Evidence, RunPhase, RunState};
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use support::coordinator::Coordinator;

/// A workspace with a store that the tests fill.
struct FilledStore {
    coordinator: Coordinator,
    store: Connection,
    recorder: RunRecorder,
}

impl FilledStore {
    fn new() -> Self {
        let coordinator = Coordinator::with_a_known_device();
        let run = coordinator.request_run("PerformanceOnly");
        let store = Connection::open(coordinator.path("regatta.db")).unwrap();
        let recorder = RunRecorder::of(&store, &run);
        store.execute("DELETE FROM runs", []).unwrap();
        store.execute("UPDATE devices SET name = 'orin-1'", []).unwrap();
        Self {
            coordinator,
            store,
            recorder,
        }
    }

    /// Adds a run with an engine setting, which ends with a latency of SingleStream.
    fn add(&mut self, batch: u64, latency: f64) -> String {
        self.recorder.add(&self.store, batch, latency)
    }

    /// Adds interleaved pairs of batch 1 and batch 2, which is slower by `effect`.
    fn add_pairs(&mut self, pairs: usize, effect: f64) {
        self.recorder.add_pairs(&self.store, pairs, effect);
    }

    /// Adds a run after `change` changed its draft and its outcome.
    fn add_changed(&mut self, latency: f64, change: impl FnOnce(&mut Value, &mut Value)) -> String {
        self.recorder.add_changed(&self.store, latency, change)
    }

    /// Writes the evidence of a run by a version of the agent.
    fn write_evidence(&self, run: &str, agent: &str) {
        let facts = DeviceFacts {
            kernel: "5.15.148-tegra".to_owned(),
            ..DeviceFacts::default()
        };
        let evidence = Evidence {
            schema: Evidence::SCHEMA,
            run: run.parse().unwrap(),
            device: self.recorder.draft["spec"]["device"]
                .as_str()
                .unwrap()
                .parse()
                .unwrap(),
            spec_sha256: "00".to_owned(),
            agent: format!("regatta-agent {agent}"),
            outcome: RunState {
                phase: RunPhase::Draining,
                reason: None,
                revision: 1,
            },
            not_a_measurement: Vec::new(),
            attempts: Vec::new(),
            before: facts.clone(),
            after: facts,
            state: None,
            files: Vec::new(),
        };
        let files = self.coordinator.path(&format!("runs/{run}/files"));
        fs::create_dir_all(&files).unwrap();
        fs::write(
            files.join("evidence.json"),
            serde_json::to_vec(&evidence).unwrap(),
        )
        .unwrap();
    }

    /// Runs `compare` and returns exit code, output and errors.
    fn compare(&self, args: &[&str]) -> (i32, String, String) {
        let output = self.coordinator.output(&[&["compare"], args].concat());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (
            output.status.code().unwrap(),
            text(&output.stdout),
            text(&output.stderr),
        )
    }

    fn report(&self, args: &[&str]) -> Value {
        let (_, printed, errors) = self.compare(&[args, &["--format", "json"]].concat());
        assert!(!printed.is_empty(), "{errors}");
        serde_json::from_str(&printed).unwrap()
    }
}

#[test]
fn a_slower_variant_is_worse_and_fails_the_command() {
    let mut filled = FilledStore::new();
    filled.add_pairs(9, 0.03);
    let (code, printed, errors) = filled.compare(&["set:batch_size=1", "set:batch_size=2"]);
    assert_eq!((code, errors.as_str()), (1, ""), "{printed}");
    let lines: Vec<Vec<&str>> = printed
        .lines()
        .map(|line| line.split("   ").map(str::trim).collect())
        .collect();
    let expected = [
        "device",
        "benchmark",
        "median A → B",
        "better",
        "B / A",
        "95 % interval",
        "pairs",
        "floor",
        "verdict on B",
    ];
    let is_full = |cell: &&str| !cell.is_empty();
    let cells = |line: usize| lines[line].iter().copied().filter(is_full).collect::<Vec<_>>();
    assert_eq!(cells(0), expected, "{printed}");
    let expected = [
        "orin-1",
        "digits SingleStream",
        "1.000 ms → 1.031 ms",
        "smaller",
        "1.033",
        "1.026 to 1.033",
        "9",
        "1.0 %",
        "worse by 3.3 %",
    ];
    assert_eq!(cells(2), expected, "{printed}");
    assert!(
        printed.ends_with("\nA: set:batch_size=1, 9 runs\nB: set:batch_size=2, 9 runs\ndiffers: setting batch_size: A 1, B 2\n"),
        "{printed}"
    );
    // With the sides exchanged it is better.
    let (code, printed, _) = filled.compare(&["set:batch_size=2", "set:batch_size=1"]);
    assert_eq!(code, 0);
    assert!(printed.contains("better by"), "{printed}");
    let report = filled.report(&["set:batch_size=1", "set:batch_size=2"]);
    let row = &report["rows"][0];
    assert_eq!(row["compared_runs"].as_array().unwrap().len(), 9);
    assert_eq!(
        (&row["floor_measured"], &row["floor_pairs"]),
        (&json!(true), &json!(8))
    );
    assert_eq!(row["better"], "smaller");
    let (_, csv, _) = filled.compare(&["set:batch_size=1", "set:batch_size=2", "--format", "csv"]);
    assert!(
        csv.lines()
            .nth(1)
            .unwrap()
            .starts_with("orin-1,digits,SingleStream,PerformanceOnly,as found,full,"),
        "{csv}"
    );
}

#[test]
fn equal_sides_are_the_same_and_few_pairs_are_undecided() {
    let mut filled = FilledStore::new();
    let first = filled.add(1, LATENCY);
    let second = filled.add(2, LATENCY * 1.5);
    let (code, printed, _) = filled.compare(&[&first, &second]);
    assert_eq!(code, 0);
    assert!(
        printed.contains("undecided: one run each is not a comparison"),
        "{printed}"
    );
    filled.store.execute("DELETE FROM runs", []).unwrap();
    filled.add_pairs(3, 0.0);
    let sides = ["set:batch_size=1", "set:batch_size=2"];
    assert!(
        filled
            .compare(&sides)
            .1
            .contains("undecided: at least 6 pairs needed")
    );
    filled.add_pairs(9, 0.0);
    assert_eq!(filled.report(&sides)["rows"][0]["verdict"], "same");
    filled.add_pairs(9, 0.03);
    let report = filled.report(&sides);
    assert_eq!(report["rows"][0]["verdict"], "undecided");
    assert!(report["rows"][0]["more_pairs"].as_u64().unwrap() > 0, "{report}");
}

/// Runs of other settings may be noisier than the compared ones by far.
#[test]
fn noisy_runs_of_other_settings_hide_no_difference() {
    let mut filled = FilledStore::new();
    for number in 0..36 {
        let noise = [0.0, 0.09, -0.04, 0.08, 0.11, 0.0, -0.02, 0.07][number % 8];
        filled.add(9, LATENCY / 10.0 * (1.0 + noise));
    }
    filled.add_pairs(8, 0.05);
    let report = filled.report(&["set:batch_size=1", "set:batch_size=2"]);
    let row = &report["rows"][0];
    assert_eq!(row["verdict"], "worse", "{row}");
    assert_eq!(
        (&row["floor_origin"], &row["floor_pairs"]),
        (&json!("no_drift"), &json!(8)),
        "{row}"
    );
}

#[test]
fn a_drifting_device_has_a_floor_that_says_where_it_comes_from() {
    let mut filled = FilledStore::new();
    for number in 0..32 {
        let batch = if number % 2 == 0 { 1 } else { 2 };
        filled.add(batch, LATENCY * 1.02_f64.powi(number));
    }
    let sides = ["set:batch_size=1", "set:batch_size=2"];
    let (_, printed, _) = filled.compare(&sides);
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        printed.contains("the floor of orin-1 digits SingleStream is the drift from run to run in 16 pairs")
            && printed.contains("of the compared runs"),
        "{printed}"
    );
    let row = &filled.report(&sides)["rows"][0];
    assert_eq!(row["floor_origin"], "drift_of_compared_runs", "{row}");
    assert_eq!(row["verdict"], "same", "{row}");
}

#[test]
fn runs_that_do_not_count_are_counted_with_their_reason() {
    let mut filled = FilledStore::new();
    filled.add_pairs(6, 0.0);
    let both = |draft: &mut Value| draft["spec"]["engine"]["settings"] = json!({ "batch_size": 2 });
    filled.add_changed(LATENCY, |draft, outcome| {
        both(draft);
        outcome["valid"] = json!(false);
    });
    filled.add_changed(LATENCY, |draft, _| {
        both(draft);
        draft["spec"]["engine"]["kind"] = json!("sim");
    });
    filled.add_changed(LATENCY, |draft, _| {
        both(draft);
        draft["spec"]["length"] = json!("test-run");
    });
    filled.add_changed(LATENCY, |draft, outcome| {
        both(draft);
        outcome["not_a_measurement"] = json!(["the state was not reached"]);
    });
    filled.add_changed(LATENCY, |draft, outcome| {
        both(draft);
        outcome["figure"] = Value::Null;
    });
    filled.add_changed(LATENCY, |draft, outcome| {
        both(draft);
        *outcome = Value::Null;
    });
    filled
        .store
        .execute(
            "UPDATE runs SET outcome = NULL, recorded = NULL WHERE outcome = 'null'",
            [],
        )
        .unwrap();
    // Another power mode is another combination.
    filled.add_changed(LATENCY, |draft, _| {
        both(draft);
        draft["spec"]["state"] = json!({ "name": "MaxQ", "source": "", "controls": { "power-mode": "15W" } });
    });
    let (code, printed, _) = filled.compare(&["set:batch_size=1", "set:batch_size=2"]);
    assert_eq!(code, 0, "{printed}");
    assert!(
        printed.contains(
            "B: set:batch_size=2, 7 runs (left out: 1 INVALID, 1 disturbed, as their devices report, 1 short, 1 simulated, 1 unfinished, \
             1 without a figure that counts in a submission)"
        ),
        "{printed}"
    );
    assert!(
        printed.contains(
            "not compared: digits SingleStream PerformanceOnly, MaxQ 15W, full: 1 run of B, none of A"
        ),
        "{printed}"
    );
    let included = filled.report(&["set:batch_size=1", "set:batch_size=2", "--include", "simulated"]);
    assert_eq!(included["rows"][0]["runs_b"], 7);
}

#[test]
fn a_baseline_fails_another_workspace_that_is_slower() {
    let mut filled = FilledStore::new();
    filled.add_pairs(8, 0.05);
    let path = |name: &str| filled.coordinator.path(name).to_str().unwrap().to_owned();
    let [baseline, junit, markdown] = ["base.json", "junit.xml", "table.md"].map(path);
    assert_eq!(
        filled
            .compare(&["set:batch_size=1", "--write-baseline", &baseline])
            .0,
        0
    );
    let (code, printed, _) = filled.compare(&[
        "set:batch_size=2",
        "--baseline",
        &baseline,
        "--junit",
        &junit,
        "--markdown",
        &markdown,
    ]);
    assert_eq!(code, 1, "{printed}");
    // A run of the baseline is not compared with itself.
    let (code, _, errors) = filled.compare(&["set:batch_size=1", "--baseline", &baseline]);
    assert!(code == 2 && errors.contains("8 in both selections"), "{errors}");
    let junit = fs::read_to_string(junit).unwrap();
    assert!(
        junit.contains("tests=\"1\" failures=\"1\" skipped=\"0\"")
            && junit.contains("<failure message=\"worse by"),
        "{junit}"
    );
    let markdown = fs::read_to_string(markdown).unwrap();
    assert!(
        markdown.contains("| orin-1 | digits SingleStream PerformanceOnly, as found, full | 8 |"),
        "{markdown}"
    );
    fs::write(&baseline, "{}").unwrap();
    let (code, _, errors) = filled.compare(&["set:batch_size=2", "--baseline", &baseline]);
    assert_eq!(code, 2);
    assert!(
        errors.contains("is not a baseline") && errors.contains("--write-baseline"),
        "{errors}"
    );
}

#[test]
fn devices_are_compared_with_each_other_only_when_none_is_on_both_sides() {
    let mut filled = FilledStore::new();
    let other = "b".repeat(32);
    filled
        .store
        .execute_batch(&format!(
            "CREATE TEMP TABLE copy AS SELECT * FROM devices; UPDATE copy SET id = '{other}', name = 'orin-2';
             INSERT INTO devices SELECT * FROM copy;
             INSERT INTO presence (device, online, last_seen) SELECT id, 0, first_seen FROM copy;"
        ))
        .unwrap();
    for noise in NOISE {
        for (batch, effect) in [(1, 0.0), (2, 0.1)] {
            let latency = LATENCY * (1.0 + effect + noise);
            filled.add(batch, latency);
            filled.add_changed(latency * 1.2, |draft, _| {
                draft["spec"]["device"] = json!("b".repeat(32));
                draft["spec"]["engine"]["settings"] = json!({ "batch_size": batch });
            });
        }
    }
    let report = filled.report(&["set:batch_size=1", "set:batch_size=2"]);
    let devices: Vec<&str> = report["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["device"].as_str().unwrap())
        .collect();
    assert_eq!(devices, ["orin-1", "orin-2", "all 2 devices"]);
    assert_eq!(report["rows"][2]["pairs"], 14);
    let report = filled.report(&["device:orin-1+set:batch_size=1", "device:orin-2+set:batch_size=1"]);
    assert_eq!(report["rows"][0]["device"], "orin-1 → orin-2");
    assert_eq!(report["rows"][0]["verdict"], "worse");
}

#[test]
fn selections_that_cannot_be_are_refused_with_a_remedy() {
    let mut filled = FilledStore::new();
    filled.add_pairs(1, 0.0);
    for (args, words) in [
        (&["set:batch_size=1"][..], "compare needs at least two selections"),
        (
            &["set:batch_size=1", "set:batch_size=9"],
            "no run is selected by `set:batch_size=9`",
        ),
        (
            &["set:batch_size=1", "speed:9"],
            "`speed` is not a kind of selection",
        ),
        (
            &["set:batch_size", "set:batch_size=2"],
            "write `set:batch_size=VALUE`",
        ),
        (
            &["device:nano", "last"],
            "unknown device `nano`; known are orin-1",
        ),
        (&["campaign:night", "last"], "unknown campaign `night`"),
        (
            &["set:batch_size=1", "set:batch_size=1"],
            "there is nothing to compare",
        ),
        (
            &["set:batch_size=1", "set:batch_size=2", "--floor", "0.5"],
            "write a percentage from 1 to 99",
        ),
        (&["agent:9.9", "last"], "no run is selected by `agent:9.9`"),
    ] {
        let (code, _, errors) = filled.compare(args);
        assert_eq!(code, 2, "{args:?}: {errors}");
        assert!(errors.contains(words), "{args:?}: {errors}");
    }
}

#[test]
fn campaign_variants_and_agent_versions_are_selections() {
    let mut filled = FilledStore::new();
    let device = filled.recorder.draft["spec"]["device"]
        .as_str()
        .unwrap()
        .to_owned();
    let request = json!({
        "benchmark": "digits", "scenario": "SingleStream", "mode": "PerformanceOnly", "engine": { "kind": "tract" },
        "loadgen": "native", "length": "full", "delivery": "after",
    });
    filled
        .store
        .execute_batch(&format!(
            "INSERT INTO campaigns VALUES ('night', '', '', 1, 0, 0, 60, NULL, 'running', '2026-11-22T00:00:00Z', NULL, 0);
             INSERT INTO combinations (campaign, number, request, variant, placement, priority, devices)
             VALUES ('night', 0, '{request}', 'small', 'any', 0, '[]'), ('night', 1, '{request}', 'large', 'any', 0, '[]');"
        ))
        .unwrap();
    for number in 0..14 {
        let (combination, agent) = [(0, "0.1.0"), (1, "0.2.0")][number % 2];
        let effect = 0.9_f64.powi(combination);
        let run = filled.add(1, LATENCY * effect * (1.0 + NOISE[number / 2]));
        filled.write_evidence(&run, agent);
        let cell = number as i64 + 1;
        filled
            .store
            .execute(
                "INSERT INTO cells (campaign, number, combination, repetition, position, state)
                 VALUES ('night', ?1, ?2, 1, ?1, 'good')",
                params![cell, combination],
            )
            .unwrap();
        filled
            .store
            .execute(
                "INSERT INTO attempts VALUES ('night', ?1, 1, ?2, ?3, '', '', NULL, NULL, NULL)",
                params![cell, device, run],
            )
            .unwrap();
    }
    for sides in [
        ["campaign:night/small", "campaign:night/large"],
        ["agent:0.1.0", "campaign:night+agent:0.2.0"],
    ] {
        let row = &filled.report(&sides)["rows"][0];
        assert_eq!(
            (&row["verdict"], &row["pairs"]),
            (&json!("better"), &json!(7)),
            "{sides:?}"
        );
    }
    let (code, _, errors) = filled.compare(&["campaign:night/tiny", "last"]);
    assert!(
        code == 2 && errors.contains("has no variant `tiny`; it has large, small"),
        "{errors}"
    );
}

#[test]
fn a_history_shows_where_it_changed_and_what_changed_with_it() {
    let mut filled = FilledStore::new();
    let history = |filled: &FilledStore, flags: &[&str]| {
        let output = filled.coordinator.output(&[&["history"], flags].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for number in 0..24 {
        let is_new = number >= 14;
        let effect = if is_new { 1.05 } else { 1.0 };
        let run = filled.add(1, LATENCY * effect * (1.0 + NOISE[number % 7]));
        filled.write_evidence(&run, if is_new { "0.2.0" } else { "0.1.0" });
        if number == 18 {
            assert!(history(&filled, &[]).contains("from 20 runs on"));
        }
    }
    let printed = history(&filled, &["device:orin-1+set:batch_size=1"]);
    assert!(printed.contains("digits SingleStream"), "{printed}");
    let change = "orin-1 digits SingleStream, 2026-11-22 00:15:00 UTC: worse (+5.0 %: 1.000 ms to 1.050 ms), run 00000015
  agent: regatta-agent 0.1.0 → regatta-agent 0.2.0
";
    assert!(printed.contains(change), "{printed}");
    let document: Value = serde_json::from_str(&history(&filled, &["--format", "json"])).unwrap();
    let history = &document["histories"][0];
    assert_eq!(
        (
            &history["level_runs"],
            history["points"].as_array().unwrap().len()
        ),
        (&json!(10), 24)
    );
}
