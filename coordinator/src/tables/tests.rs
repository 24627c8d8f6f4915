//! Tests of the tables as users see them.

use regatta_types::documents::Judgement;
use std::collections::BTreeMap;

use jiff::Timestamp;
use regatta_catalogue::catalogue::Catalogue;
use regatta_types::{
    Mode, Scenario,
    documents::{
        AccuracyResult, Delivery, DeviceFacts, EngineKind, EngineSpec, LoadgenChoice, RunLength, RunPhase,
        RunState, RunTask,
    },
    engine_settings::EngineSettings,
};

use super::{
    Comparison, devices, quickstart,
    runs::{a_line_each, two_lines_each},
};
use regatta_lab_runs::ResolvedRequest;
use regatta_lab_store::{
    DeviceRow, HealthRow, RunOutcome, RunRow, examples::example_row, workspace::Workspace,
};
use regatta_lab_views::wording::{run_text, why_not};
use regatta_types::documents::{Metric, RunTiming};

fn row(number: u8, scenario: Scenario, mode: Mode, phase: RunPhase, outcome: Option<RunOutcome>) -> RunRow {
    let catalogue = Catalogue::read(None).unwrap();
    let request = ResolvedRequest {
        device: "0".repeat(32).parse().unwrap(),
        benchmark: catalogue.benchmark("digits").unwrap(),
        round: catalogue.round(None).unwrap(),
        scenario,
        mode,
        engine: EngineSpec {
            kind: EngineKind::Tract,
            settings: EngineSettings::default(),
        },
        loadgen: LoadgenChoice::Native,
        length: RunLength::TestRun,
        delivery: Delivery::After,
        system: None,
        conf: BTreeMap::new(),
        state: None,
        gate: None,
        task: RunTask::Measurement,
    };
    let reason = (phase == RunPhase::Failed).then(|| "the run process was killed by signal 9".to_owned());
    RunRow {
        id: format!("01a1fd91-2a94-7230-9870-4637090000{number:02}")
            .parse()
            .unwrap(),
        device_name: Some("boat-1".to_owned()),
        state: RunState {
            phase,
            reason,
            revision: 1,
        },
        started: (phase != RunPhase::Failed).then(|| "2026-11-22T07:03:18Z".to_owned()),
        recorded: outcome.as_ref().map(|_| String::new()),
        outcome,
        ..example_row(request.draft().unwrap())
    }
}

fn now() -> Timestamp {
    "2026-11-22T09:00:00Z".parse().unwrap()
}

fn some_runs() -> Vec<RunRow> {
    let metric = |name: &str, value, unit: &str| {
        Some(Metric {
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
        })
    };
    let complete = || RunOutcome {
        complete: true,
        signed: Some(true),
        bytes: 76_800,
        ..RunOutcome::default()
    };
    let accuracy = RunOutcome {
        judgement: Judgement {
            samples: Some(597),
            ..Judgement::default()
        },
        accuracy: Some(AccuracyResult {
            metric: "top1".to_owned(),
            value: 98.994_974,
            correct: Some(591),
            total: 597,
            missing: 0,
            duplicates: 0,
            target: Some(97.02),
            side: regatta_types::benchmark::BoundSide::AtLeast,
            classes: Vec::new(),
            further: Vec::new(),
        }),
        ..complete()
    };
    let valid = RunOutcome {
        judgement: Judgement {
            valid: Some(true),
            metric: metric("90.0th percentile latency", 125_123.0, "ns"),
            figure: metric("Early stopping 90.0th percentile estimate", 131_007.0, "ns"),
            timing: Some(RunTiming {
                started: "2026-11-21T23:59:58.5Z".to_owned(),
                synchronised: Some(true),
                duration_ns: Some(60_004_000_000),
            }),
            samples: Some(16_386),
            ..Judgement::default()
        },
        ..complete()
    };
    let invalid = RunOutcome {
        judgement: Judgement {
            valid: Some(false),
            reasons: vec!["Reduce target QPS to improve latency.".to_owned()],
            metric: metric("Completed samples per second", 856.23, "samples/s"),
            figure: metric("Completed samples per second", 856.23, "samples/s"),
            ..Judgement::default()
        },
        ..complete()
    };
    vec![
        row(
            1,
            Scenario::Offline,
            Mode::AccuracyOnly,
            RunPhase::Done,
            Some(accuracy),
        ),
        row(
            2,
            Scenario::SingleStream,
            Mode::PerformanceOnly,
            RunPhase::Done,
            Some(valid),
        ),
        row(
            3,
            Scenario::Server,
            Mode::PerformanceOnly,
            RunPhase::Done,
            Some(invalid),
        ),
        row(
            4,
            Scenario::Offline,
            Mode::PerformanceOnly,
            RunPhase::Failed,
            Some(RunOutcome::default()),
        ),
        // Done on the device, but not recorded yet.
        row(
            5,
            Scenario::MultiStream,
            Mode::PerformanceOnly,
            RunPhase::Done,
            None,
        ),
    ]
}

#[test]
fn the_quickstarts_table() {
    let rows = some_runs();
    let compared: Vec<_> = rows
        .into_iter()
        .map(|row| {
            (
                row.clone(),
                Comparison {
                    equal: row.outcome.is_some(),
                },
            )
        })
        .collect();
    insta::assert_snapshot!(quickstart(&compared));
}

#[test]
fn run_list_shows_why_runs_are_not_usable() {
    let rows = some_runs();
    let reasons: Vec<_> = rows[2..4].iter().map(why_not).collect();
    insta::assert_snapshot!(format!(
        "{}\n\n{}",
        a_line_each(&rows, now(), run_text::notes_or_reason),
        reasons.join("\n")
    ));
}

#[test]
fn a_run_of_little_accuracy_or_of_none_is_usable_and_not_good() {
    let good = some_runs().remove(0);
    assert!(good.is_good());
    let changed = |change: fn(&mut RunOutcome)| {
        let mut run = good.clone();
        change(run.outcome.as_mut().unwrap());
        assert!(run.is_usable() && !run.is_good());
        why_not(&run)
    };
    let low = changed(|outcome| outcome.accuracy.as_mut().unwrap().value = 90.5);
    assert_eq!(
        low,
        "boat-1 Offline AccuracyOnly: top1 is 90.50 %, 97.02 % are needed"
    );
    let just = changed(|outcome| outcome.accuracy.as_mut().unwrap().value = 97.019_6);
    assert_eq!(
        just,
        "boat-1 Offline AccuracyOnly: top1 is 97.0196 %, 97.0200 % are needed"
    );
    let partial = changed(|outcome| {
        let accuracy = outcome.accuracy.as_mut().unwrap();
        (accuracy.value, accuracy.correct, accuracy.total, accuracy.missing) = (100.0, Some(1), 1, 596);
    });
    assert_eq!(
        partial,
        "boat-1 Offline AccuracyOnly: 596 samples have no response in the accuracy log"
    );
    let mut run = good.clone();
    run.outcome.as_mut().unwrap().accuracy.as_mut().unwrap().missing = 1;
    assert_eq!(run_text::accuracy(&run).unwrap(), "98.99 % (incomplete)");
    let unjudged = changed(|outcome| outcome.not_judged = vec!["no accuracy: no labels".to_owned()]);
    assert_eq!(unjudged, "boat-1 Offline AccuracyOnly: no accuracy: no labels");
}

#[test]
fn a_narrow_terminal_gets_two_lines_for_a_run() {
    let table = two_lines_each(&some_runs(), now(), run_text::notes_or_reason);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    insta::assert_snapshot!(table);
}

#[test]
fn a_line_says_what_a_run_is_and_what_its_figure_is_worth() {
    let rows = some_runs();
    let line = |row: &RunRow| {
        format!(
            "{}: {}",
            run_text::subject(row),
            run_text::result_and_time(row, now())
        )
    };
    let simulated = |engine| {
        let mut row = rows[1].clone();
        row.draft.spec.engine.kind = engine;
        row.draft.spec.loadgen = LoadgenChoice::Official { revision: None };
        row.draft.spec.benchmark.not_submittable = None;
        row.draft.spec.length = RunLength::Full;
        row.draft.spec.conf.user_conf = String::new();
        row
    };
    let mut unestimated = rows[1].clone();
    unestimated.outcome.as_mut().unwrap().judgement.figure = None;
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    lines.push(line(&simulated(EngineKind::Sim)));
    lines.push(line(&simulated(EngineKind::Tensorrt)));
    lines.push(line(&unestimated));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_headline_without_the_judged_figure_says_that_it_is_not_judged() {
    let figure = |index: usize| {
        let mut row = some_runs().remove(index);
        row.outcome.as_mut().unwrap().judgement.figure = None;
        run_text::figure(&row).unwrap()
    };
    assert_eq!(figure(1), "0.1251 ms (90.0th percentile)");
    assert_eq!(figure(2), "856.2 samples/s (not judged)");
}

#[test]
fn a_failed_run_says_why_once_and_first() {
    let failed = some_runs().remove(3);
    let why = "the run process was killed by signal 9";
    let result = run_text::result_and_time(&failed, now());
    assert_eq!(result, "failed", "while it is waited for");
    let report = why_not(&failed);
    assert!(
        report.contains("PerformanceOnly") && report.ends_with(&format!("failed: {why}")),
        "{report}"
    );
    let dir = tempfile::tempdir().unwrap();
    let workspace = Workspace::create(dir.path(), "schema = 1\n").unwrap();
    let shown = super::run(&failed, &[], &workspace.run(failed.id));
    assert!(
        shown.starts_with(&format!("state      failed: {why}\n")),
        "{shown}"
    );
    assert_eq!(shown.matches("failed").count(), 1, "{shown}");
}

#[test]
fn markers_follow_from_the_documents() {
    let official = || {
        let mut row = some_runs().remove(1);
        row.draft.spec.loadgen = LoadgenChoice::Official { revision: None };
        row.draft.spec.benchmark.not_submittable = None;
        row.draft.spec.length = RunLength::Full;
        row.draft.spec.conf.user_conf = String::new();
        row
    };
    let words = |change: fn(&mut RunRow)| {
        let mut row = official();
        change(&mut row);
        run_text::notes(&row)
    };
    assert_eq!(words(|_| {}), "");
    assert_eq!(
        words(|row| row.draft.spec.loadgen = LoadgenChoice::Native),
        "not a result"
    );
    assert_eq!(words(|row| row.draft.spec.length = RunLength::TestRun), "short");
    let few = |row: &mut RunRow| {
        row.draft.spec.scenario = Scenario::MultiStream;
        row.draft.spec.conf.user_conf = "*.MultiStream.min_query_count = 5\n".to_owned();
    };
    assert_eq!(words(few), "short");
    for (scenario, line, markers) in [
        (Scenario::SingleStream, "target_latency = 3", ""),
        (
            Scenario::SingleStream,
            "target_latency_percentile = 50",
            "not a result",
        ),
        (Scenario::SingleStream, "target_latency_percentile = 90", ""),
        (Scenario::MultiStream, "samples_per_query = 1", "not a result"),
        (Scenario::Server, "target_latency = 50", "not a result"),
        (Scenario::Server, "target_latency = 5", ""),
        (
            Scenario::Offline,
            "performance_sample_count_override = 255",
            "not a result",
        ),
        (Scenario::Offline, "performance_sample_count_override = 512", ""),
        // The library's own count is the round's.
        (Scenario::Offline, "performance_sample_count_override = 0", ""),
        (Scenario::Offline, "performance_issue_same = 1", "not a result"),
        (Scenario::Offline, "performance_issue_unique = 1", "not a result"),
        (
            Scenario::Offline,
            "accuracy_log_sampling_target = 4096",
            "not a result",
        ),
        (Scenario::Offline, "sample_concatenate_permutation = 1", ""),
        (Scenario::Offline, "max_duration = 900000", ""),
        (Scenario::Offline, "use_token_latencies = 1", "not a result"),
    ] {
        let mut row = official();
        row.draft.spec.scenario = scenario;
        row.draft.spec.conf.user_conf = format!("digits.{scenario}.{line}\n");
        assert_eq!(run_text::notes(&row), markers, "{scenario} {line}");
    }
    let equal_issue = |row: &mut RunRow| {
        let required = "*.*.sample_concatenate_permutation = 1\n";
        row.draft.spec.conf.mlperf_conf.push_str(required);
        row.draft.spec.conf.user_conf = required.replace('1', "0");
    };
    assert_eq!(words(equal_issue), "not a result");
    let peak = |row: &mut RunRow| row.draft.spec.mode = Mode::FindPeakPerformance;
    assert_eq!(words(peak), "not a result");
    let few_answers = |row: &mut RunRow| {
        row.draft.spec.mode = Mode::AccuracyOnly;
        row.draft.spec.conf.user_conf = "*.*.accuracy_sample_count_override = 100\n".to_owned();
    };
    assert_eq!(words(few_answers), "not a result");
    // The device's own reasons count too.
    let state = |row: &mut RunRow| {
        row.outcome.as_mut().unwrap().judgement.not_a_measurement =
            vec!["the state was not reached".to_owned()];
    };
    assert_eq!(words(state), "not a result");
    assert_eq!(
        words(|row| row.outcome.as_mut().unwrap().signed = None),
        "unsigned"
    );
    // An accuracy run is one pass over the data set.
    let accuracy = |row: &mut RunRow| {
        row.draft.spec.mode = Mode::AccuracyOnly;
        row.draft.spec.length = RunLength::TestRun;
    };
    assert_eq!(words(accuracy), "");
}

fn boat() -> DeviceRow {
    DeviceRow {
        id: "ff43306e6aa65ec6a97127b41beb2599".parse().unwrap(),
        name: "boat-1".to_owned(),
        public_key: [0; 32],
        agent: "regatta-agent 0.1.0".to_owned(),
        engines: vec![
            EngineKind::Null,
            EngineKind::Tract,
            EngineKind::Tensorrt,
            EngineKind::Sim,
        ],
        facts: serde_json::to_string(&DeviceFacts::default()).unwrap(),
        online: true,
        open_run: None,
        health: HealthRow::default(),
        labels: Vec::new(),
        duplicated: false,
        running: None,
        readings: Default::default(),
        hellos: 1,
        first_seen: "2026-11-22T07:02:42Z".to_owned(),
        last_seen: "2026-11-22T07:03:18Z".to_owned(),
    }
}

#[test]
fn facts_that_do_not_read_are_no_board_without_processors() {
    let newer = DeviceRow {
        facts: r#"{ "hostname": "boat-1", "cpus": "twelve" }"#.to_owned(),
        ..boat()
    };
    let shown = devices::device(&newer, [None, None]);
    assert!(
        shown.contains("cannot be parsed here: invalid type: string \"twelve\""),
        "{shown}"
    );
    assert!(!shown.contains("CPUs"), "{shown}");
    let listed = devices::a_line_each(&[boat(), newer], now());
    assert_eq!(listed.matches('?').count(), 1, "{listed}");
}

#[test]
fn devices_fit_into_120_columns_by_a_line_each_and_into_80_by_three() {
    let boats = [boat()];
    let (wide, narrow) = (
        devices::a_line_each(&boats, now()),
        devices::three_lines_each(&boats, now()),
    );
    for (table, columns) in [(&wide, 120), (&narrow, 80)] {
        assert!(
            table.lines().all(|line| line.chars().count() <= columns),
            "{table}"
        );
    }
    insta::assert_snapshot!(format!("{wide}\n\n{narrow}"));
}
