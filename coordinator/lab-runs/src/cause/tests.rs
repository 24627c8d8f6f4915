//! Tests of the causes that runs end with.

use super::*;
use regatta_types::documents::Judgement;

fn failed(reason: &str) -> RunEnd<'_> {
    RunEnd {
        phase: RunPhase::Failed,
        reason: Some(reason),
        is_lost: false,
        abandoned: None,
        expects_verdict: true,
        outcome: None,
    }
}

#[test]
fn every_reason_of_a_failed_run_has_one_cause() {
    use EndCause::{Device, Infrastructure, Operator, Precondition, Workload};
    let io = |code: i32| {
        format!(
            "{}: {}",
            end_reason::NO_PROCESS,
            std::io::Error::from_raw_os_error(code)
        )
    };
    let cases = [
        (
            format!("{} while the run was running", end_reason::DEVICE_DOWN),
            Device,
        ),
        (end_reason::AGENT_STOPPED.to_owned(), Infrastructure),
        (
            format!("{} while the run was ready", end_reason::AGENT_DOWN),
            Infrastructure,
        ),
        (
            format!("{} while the run was ready", end_reason::WENT_DOWN),
            Infrastructure,
        ),
        (
            format!("{}: soc 61.5 \u{b0}C", end_reason::GATE_CLOSED),
            Precondition,
        ),
        (format!("{}: 12 MiB are free", end_reason::NO_SPACE), Precondition),
        (
            format!(
                "{}: {}",
                end_reason::NO_SPACE,
                std::io::Error::from_raw_os_error(5)
            ),
            Device,
        ),
        (
            format!("{} MaxP: no helper", end_reason::STATE_REFUSED),
            Precondition,
        ),
        (format!("{}: gpu_min changed", end_reason::STATE_LOST), Device),
        (io(5), Device),
        (io(30), Device),
        (io(28), Precondition),
        (format!("{}7 (SIGBUS)", end_reason::PROCESS_KILLED), Device),
        (format!("{}11 (SIGSEGV)", end_reason::PROCESS_KILLED), Workload),
        (format!("{}9 (SIGKILL)", end_reason::PROCESS_KILLED), Workload),
        (
            "the run process ended with exit code 3; run.log may contain the reason".to_owned(),
            Workload,
        ),
        (
            "the engine failed: CUDA_ERROR_ECC_UNCORRECTABLE".to_owned(),
            Device,
        ),
        ("the engine failed: out of tensors".to_owned(), Workload),
        (
            "the device no longer has this run: its state was lost".to_owned(),
            Device,
        ),
        ("the device was removed".to_owned(), Operator),
        (
            "no data of the assets has arrived from lab:8885 for 10 minutes".to_owned(),
            Infrastructure,
        ),
        (
            "`m.onnx` from the coordinator has another SHA-256".to_owned(),
            Infrastructure,
        ),
        (
            "90 MiB of assets are missing and 3 MiB are free for them".to_owned(),
            Precondition,
        ),
        (
            "this agent has no tensorrt engine; it has tract".to_owned(),
            Workload,
        ),
        (
            "its spec has 9 bytes, more than a message can carry".to_owned(),
            Workload,
        ),
    ];
    for (reason, cause) in &cases {
        assert_eq!(cause_of_end(&failed(reason)), Some(*cause), "{reason}");
    }
    let lost = RunEnd {
        reason: None,
        is_lost: true,
        ..failed("")
    };
    assert_eq!(cause_of_end(&lost), Some(Device));
    let abandoned = RunEnd {
        abandoned: Some("given up by the user"),
        ..lost
    };
    assert_eq!(cause_of_end(&abandoned), Some(Operator));
    let aborted = RunEnd {
        phase: RunPhase::Aborted,
        ..failed("(os error 5)")
    };
    assert_eq!(cause_of_end(&aborted), Some(Operator));
    for (reason, cause) in [
        (end_reason::LIMIT_REACHED, Workload),
        (end_reason::HOPELESS_ACCURACY, Workload),
        (end_reason::NOT_STARTED_IN_LIMIT, Infrastructure),
    ] {
        let ended = RunEnd {
            reason: Some(reason),
            ..aborted
        };
        assert_eq!(cause_of_end(&ended), Some(cause), "{reason}");
    }
    let ignored = RunEnd {
        abandoned: Some(end_reason::LIMIT_IGNORED),
        ..lost
    };
    assert_eq!(cause_of_end(&ignored), Some(Device));
}

#[test]
fn a_finished_run_is_judged_by_its_outcome() {
    let good = RunOutcome {
        judgement: Judgement {
            valid: Some(true),
            ..Judgement::default()
        },
        complete: true,
        signed: Some(true),
        ..RunOutcome::default()
    };
    let accuracy = AccuracyResult {
        metric: "top1".to_owned(),
        value: 90.0,
        correct: Some(9),
        total: 10,
        missing: 0,
        duplicates: 0,
        target: Some(95.0),
        side: regatta_types::benchmark::BoundSide::AtLeast,
        classes: Vec::new(),
        further: Vec::new(),
    };
    let outcomes = [
        (good.clone(), None),
        (
            RunOutcome {
                judgement: Judgement {
                    valid: Some(false),
                    ..Judgement::default()
                },
                ..good.clone()
            },
            Some(EndCause::Invalid),
        ),
        (
            RunOutcome {
                judgement: Judgement {
                    valid: None,
                    ..Judgement::default()
                },
                ..good.clone()
            },
            Some(EndCause::Workload),
        ),
        (
            RunOutcome {
                accuracy: Some(accuracy),
                ..good.clone()
            },
            Some(EndCause::Workload),
        ),
        (
            RunOutcome {
                complete: false,
                ..good.clone()
            },
            Some(EndCause::Infrastructure),
        ),
        (
            RunOutcome {
                signed: Some(false),
                ..good.clone()
            },
            Some(EndCause::Device),
        ),
        (
            RunOutcome {
                contradictions: vec!["another hash".to_owned()],
                ..good
            },
            Some(EndCause::Device),
        ),
    ];
    for (outcome, cause) in &outcomes {
        let end = RunEnd {
            phase: RunPhase::Done,
            reason: None,
            outcome: Some(outcome),
            ..failed("")
        };
        assert_eq!(cause_of_end(&end), *cause, "{outcome:?}");
    }
}

/// What an operator gives up after a fault of the device's disk still counts against the device.
#[test]
fn a_run_that_its_device_could_not_seal_is_the_devices_failure_whoever_gives_it_up() {
    let reason = "the run could not be sealed: mlperf_log_detail.txt cannot be flushed to disk: Input/output error (os error 5)";
    let end = RunEnd {
        phase: RunPhase::Failed,
        reason: Some(reason),
        is_lost: true,
        abandoned: Some("given up by the user: evidence.json of run 1"),
        expects_verdict: true,
        outcome: None,
    };
    assert_eq!(cause_of_end(&end), Some(EndCause::Device));
    let in_limit = RunEnd {
        abandoned: Some("the device could not seal the run within its limit of 60 s"),
        ..end
    };
    assert_eq!(cause_of_end(&in_limit), Some(EndCause::Device));
    let workload = RunEnd {
        reason: Some("the run could not be sealed: the engine refused the model"),
        ..end
    };
    assert_eq!(cause_of_end(&workload), Some(EndCause::Operator));
}
