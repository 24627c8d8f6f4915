//! Tests of the health of devices and its log.

use super::*;
use crate::database::params;

fn failed(reason: &str) -> HealthChange<'_> {
    HealthChange::DeviceFailed {
        run: RunId::now(),
        reason,
        limit: 3,
    }
}

#[test]
fn every_change_leads_from_one_health_to_the_next() {
    use DeviceHealth::{Good, Maintenance, Quarantined, Suspect};
    let run = HealthChange::RunSucceeded(RunId::now());
    let steps: &[(&[HealthChange<'_>], DeviceHealth)] = &[
        (&[], Good),
        (&[run], Good),
        (&[failed("EIO")], Suspect),
        (&[failed("EIO"), run], Good),
        (&[failed("EIO"), failed("EIO")], Suspect),
        (&[failed("EIO"), run, failed("EIO"), failed("EIO")], Suspect),
        (&[failed("EIO"), failed("EIO"), failed("EIO")], Quarantined),
        (&[failed("EIO"), failed("EIO"), failed("EIO"), run], Quarantined),
        (
            &[failed("a"), failed("b"), failed("c"), HealthChange::Cleared(None)],
            Good,
        ),
        (
            &[failed("a"), failed("b"), failed("c"), HealthChange::CheckPassed],
            Good,
        ),
        (&[HealthChange::CheckFailed("slow")], Quarantined),
        (&[HealthChange::Duplicated], Quarantined),
        // A check runs on one of the two boards, and shows nothing about the other.
        (
            &[HealthChange::Duplicated, HealthChange::CheckPassed],
            Quarantined,
        ),
        (&[HealthChange::Duplicated, HealthChange::Cleared(None)], Good),
        (&[HealthChange::Drained(None)], Maintenance),
        (&[HealthChange::Drained(None), HealthChange::Resumed], Good),
        (
            &[HealthChange::CheckFailed("slow"), HealthChange::Drained(None)],
            Maintenance,
        ),
        (
            &[
                HealthChange::CheckFailed("slow"),
                HealthChange::Drained(None),
                HealthChange::Resumed,
            ],
            Quarantined,
        ),
    ];
    for (changes, expected) in steps {
        let mut row = HealthRow::default();
        for change in *changes {
            row = row.after(*change, "now", "coordinator").unwrap_or(row);
        }
        assert_eq!(row.health(), *expected, "{changes:?}");
        assert_eq!(
            row.can_take_runs(),
            matches!(expected, Good | Suspect),
            "{changes:?}"
        );
    }
}

#[test]
fn the_log_is_append_only_and_a_run_counts_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("db")).unwrap();
    let device: DeviceId = "ab".repeat(16).parse().unwrap();
    let once = failed("EIO");
    assert!(
        store
            .health()
            .change(&device, once, "coordinator")
            .unwrap()
            .is_some()
    );
    assert!(
        store
            .health()
            .change(&device, once, "coordinator")
            .unwrap()
            .is_none()
    );
    let drained = store
        .health()
        .change(&device, HealthChange::Drained(Some("new fan")), "ada")
        .unwrap();
    assert_eq!(
        drained.unwrap().shown(),
        store.health().get(&device).unwrap().shown()
    );
    assert!(!store.health().can_take_runs(&device).unwrap());
    let log = store.health().log(&device).unwrap();
    let words: Vec<_> = log
        .iter()
        .map(|entry| (entry.change.as_str(), entry.health.as_str()))
        .collect();
    assert_eq!(
        words,
        [
            ("run failed because of the device", "suspect"),
            ("drained", "maintenance")
        ]
    );
    for statement in ["DELETE FROM device_log", "UPDATE device_log SET reason = ''"] {
        assert!(store.execute(statement, params![]).is_err(), "{statement}");
    }
}
