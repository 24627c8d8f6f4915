//! Tests of a submission's progress.

use regatta_lab_store::examples::{example_draft, example_row};
use regatta_types::documents::{AuditOf, AuditResult, EngineKind, LoadgenChoice, RunPhase, StateSpec};

use super::*;

struct Lab {
    catalogue: Catalogue,
    runs: Vec<RunRow>,
    power: Option<PowerSetting>,
}

impl Lab {
    fn new() -> Self {
        Self {
            catalogue: Catalogue::read(None).unwrap(),
            runs: Vec::new(),
            power: None,
        }
    }

    /// Adds a run as the newest one: a good run that `change` modifies.
    fn add(&mut self, mode: Mode, change: impl FnOnce(&mut RunRow)) -> RunId {
        let device: DeviceId = "ab".repeat(16).parse().unwrap();
        let mut draft = example_draft(device);
        draft.spec.benchmark = self.catalogue.benchmark("resnet50").unwrap().clone();
        draft.spec.mode = mode;
        draft.spec.loadgen = LoadgenChoice::Official { revision: None };
        draft.spec.engine.kind = EngineKind::Tensorrt;
        let mut row = example_row(draft);
        row.device_name = Some("boat-1".to_owned());
        change(&mut row);
        let run = row.id;
        self.runs.insert(0, row);
        run
    }

    fn status(&self) -> SubmissionStatus {
        let request = StatusRequest {
            round: self.catalogue.round(None).unwrap(),
            category: SystemCategory::Edge,
            devices: &[],
            benchmarks: &[],
            power: self.power,
        };
        status_of(&request, &self.catalogue, &self.runs)
    }

    fn offline(&self) -> ResultStatus {
        let found = self.status().results.into_iter();
        let mut offline = found.filter(|result| result.scenario == Scenario::Offline);
        offline.next().unwrap()
    }
}

fn audit_of(run: RunId) -> impl Fn(&mut RunRow) {
    move |row| {
        let of = AuditOf {
            test: "TEST01".to_owned(),
            performance: run,
            accuracy: None,
        };
        row.draft.spec.audit = Some(of.clone());
        row.outcome.as_mut().unwrap().audit = Some(AuditResult {
            of,
            passed: true,
            speeds: Vec::new(),
            scores: None,
            mismatch: None,
            responses: None,
            accuracies: Vec::new(),
            observations: Vec::new(),
            fault: None,
        });
    }
}

fn states(result: &ResultStatus) -> (PartState, PartState, Vec<PartState>) {
    let audits = result.audits.values().map(|part| part.state);
    (result.accuracy.state, result.performance.state, audits.collect())
}

#[test]
fn every_required_scenario_of_a_measured_benchmark_is_listed() {
    let mut lab = Lab::new();
    lab.add(Mode::AccuracyOnly, |_| {});
    let status = lab.status();
    let scenarios: Vec<Scenario> = status.results.iter().map(|result| result.scenario).collect();
    assert_eq!(
        scenarios,
        [Scenario::SingleStream, Scenario::MultiStream, Scenario::Offline]
    );
    let offline = lab.offline();
    assert_eq!(offline.accuracy.state, PartState::Done);
    assert_eq!(offline.performance.state, PartState::Missing);
    assert_eq!(
        offline.next.as_deref(),
        Some("regatta run --device boat-1 --benchmark resnet50 --submission")
    );
    assert!(!status.is_complete());
}

#[test]
fn a_result_is_complete_with_its_audits() {
    let mut lab = Lab::new();
    lab.add(Mode::AccuracyOnly, |_| {});
    let performance = lab.add(Mode::PerformanceOnly, |_| {});
    let before = lab.offline();
    assert!(before.needs_only_audits());
    assert_eq!(
        before.next,
        Some(format!("regatta audit run --performance {performance}"))
    );
    let round = lab.catalogue.round(None).unwrap();
    let tests: Vec<String> = before.audits.keys().cloned().collect();
    assert_eq!(
        tests,
        round.audits_of(lab.catalogue.benchmark("resnet50").unwrap())
    );
    for test in tests {
        lab.add(Mode::PerformanceOnly, |row| {
            audit_of(performance)(row);
            let of = row.draft.spec.audit.as_mut().unwrap();
            of.test = test;
        });
    }
    let offline = lab.offline();
    assert!(offline.is_complete(), "{offline:?}");
    assert_eq!(offline.next, None);
}

#[test]
fn a_failed_audit_and_an_open_run_are_not_done() {
    let mut lab = Lab::new();
    lab.add(Mode::AccuracyOnly, |_| {});
    let performance = lab.add(Mode::PerformanceOnly, |_| {});
    lab.add(Mode::PerformanceOnly, |row| {
        audit_of(performance)(row);
        let audit = row.outcome.as_mut().unwrap().audit.as_mut().unwrap();
        audit.passed = false;
        audit.fault = Some("the speeds differ".to_owned());
    });
    let offline = lab.offline();
    assert_eq!(offline.audits["TEST01"].state, PartState::Failed);
    assert!(
        offline.audits["TEST01"]
            .detail
            .as_ref()
            .unwrap()
            .contains("the speeds differ")
    );
    lab.add(Mode::PerformanceOnly, |row| {
        audit_of(performance)(row);
        row.recorded = None;
        row.state.phase = RunPhase::Running;
        row.outcome = None;
    });
    let offline = lab.offline();
    assert_eq!(offline.audits["TEST01"].state, PartState::Open);
    assert_eq!(offline.next, None, "it is still running");
}

#[test]
fn a_run_with_the_own_loadgen_is_a_rehearsal() {
    let mut lab = Lab::new();
    for mode in [Mode::AccuracyOnly, Mode::PerformanceOnly] {
        lab.add(mode, |row| row.draft.spec.loadgen = LoadgenChoice::Native);
    }
    let (accuracy, performance, _) = states(&lab.offline());
    assert_eq!(
        (accuracy, performance),
        (PartState::Rehearsal, PartState::Rehearsal)
    );
}

#[test]
fn a_run_with_a_loadgen_that_the_round_does_not_accept_is_a_rehearsal() {
    for (revision, expected) in [
        ("b66003e10e", PartState::Done),
        ("9142ef0e74", PartState::Rehearsal),
    ] {
        let mut lab = Lab::new();
        for mode in [Mode::AccuracyOnly, Mode::PerformanceOnly] {
            lab.add(mode, |row| {
                row.draft.spec.loadgen = LoadgenChoice::Official {
                    revision: Some(revision.to_owned()),
                };
                row.draft.spec.round = "v6.1".to_owned();
            });
        }
        let (accuracy, performance, _) = states(&lab.offline());
        assert_eq!((accuracy, performance), (expected, expected), "{revision}");
        let reasons = lab.status().reasons();
        let expected_reasons = match expected {
            PartState::Done => Vec::new(),
            _ => vec!["rehearsal, cannot be submitted: round v6.1 does not accept LoadGen 9142ef0e74"],
        };
        assert_eq!(reasons, expected_reasons);
    }
}

#[test]
fn a_run_of_both_modes_in_one_log_is_a_rehearsal() {
    let mut lab = Lab::new();
    lab.add(Mode::SubmissionRun, |_| {});
    let offline = lab.offline();
    for part in [&offline.accuracy, &offline.performance] {
        assert_eq!(part.state, PartState::Rehearsal);
        let reason = part.detail.as_ref().unwrap();
        assert!(reason.contains("a log of each mode"), "{reason}");
    }
}

#[test]
fn an_accuracy_run_with_other_settings_does_not_count() {
    let mut lab = Lab::new();
    lab.add(Mode::AccuracyOnly, |row| {
        row.draft.spec.engine.settings.gpu_batch_size = Some(4);
    });
    assert_eq!(lab.offline().accuracy.state, PartState::Done);
    lab.add(Mode::PerformanceOnly, |_| {});
    assert_eq!(lab.offline().accuracy.state, PartState::Missing);
}

#[test]
fn results_of_another_power_setting_do_not_count() {
    let mut lab = Lab::new();
    lab.add(Mode::PerformanceOnly, |_| {});
    lab.add(Mode::AccuracyOnly, |row| {
        row.draft.spec.state = Some(StateSpec {
            name: PowerSetting::MaxQ.as_str().to_owned(),
            source: String::new(),
            controls: BTreeMap::new(),
        });
    });
    let counts = |lab: &Lab| {
        let results = lab.status().results;
        let of_max_q = results.iter().filter(|result| result.power.is_some()).count();
        (results.len() - of_max_q, of_max_q)
    };
    assert_eq!(counts(&lab), (3, 3), "three scenarios of each");
    lab.power = Some(PowerSetting::MaxQ);
    assert_eq!(counts(&lab), (0, 3));
    assert_eq!(lab.offline().performance.state, PartState::Missing);
    lab.power = Some(PowerSetting::MaxP);
    assert_eq!(counts(&lab), (3, 0));
}
