//! Tests of SUTs that do not answer, answer wrongly, fail or panic.

use std::{fs, path::Path, sync::Mutex, thread, time::Duration};

use regatta_loadgen::{
    outcome::Outcome,
    sut::{Completer, Query, QuerySample, ResponseId, SutError, SystemUnderTest},
};
use regatta_types::{Mode, Scenario};

use crate::{Sut, answer, answer_all, expect_fault, request, samples};

/// Long enough for a thread to be woken, short enough to wait for.
const STALL: Duration = Duration::from_millis(80);

fn expect_sut_fault<F>(fault: &str, hostile: F)
where
    F: Fn(&[QuerySample], &Completer) -> Result<(), SutError> + Sync,
{
    expect_fault(fault, &Sut(hostile), &samples(), STALL);
}

#[test]
fn sut_that_never_answers_is_abandoned() {
    expect_sut_fault("stalled", |_, _| Ok(()));
}

#[test]
fn sut_that_skips_samples_is_abandoned() {
    expect_sut_fault("stalled", |samples, completer| {
        let answered: Vec<_> = samples
            .iter()
            .copied()
            .filter(|sample| sample.index >= 20)
            .collect();
        answer_all(&answered, completer)
    });
}

#[test]
fn sut_that_answers_twice_is_reported() {
    expect_sut_fault("twice", |samples, completer| {
        answer_all(samples, completer)?;
        answer_all(samples, completer)
    });
}

#[test]
fn responses_to_unknown_samples_are_reported() {
    for unknown in [0, 1 << 40, u64::MAX, u64::MAX >> 1, 1 << 63 | 1] {
        expect_sut_fault("never issued", |samples, completer| {
            answer(ResponseId(unknown), completer);
            answer_all(samples, completer)
        });
    }
}

#[test]
fn sut_that_fails_is_reported_with_its_cause() {
    expect_sut_fault("issue_query failed: the device is gone", |_, _| {
        Err("the device is gone".into())
    });
}

#[test]
fn sut_that_panics_is_reported_with_its_message() {
    expect_sut_fault("issue_query panicked: out of cheese", |_, _| {
        panic!("out of cheese")
    });
}

#[test]
fn sut_that_fails_later_is_reported() {
    expect_sut_fault("the SUT gave up: engine lost", |_, completer| {
        completer.fail("engine lost".into());
        Ok(())
    });
}

/// The thread's panic is the SUT's own problem; LoadGen notices the missing responses.
#[test]
fn sut_whose_thread_dies_is_abandoned() {
    expect_sut_fault("stalled", |_, completer| {
        let completer = completer.clone();
        let died = thread::spawn(move || {
            let _held = completer;
            panic!("out of memory")
        });
        assert!(died.join().is_err());
        Ok(())
    });
}

/// A SUT that answers at once, with the test's behaviour when LoadGen flushes.
struct AtFlush(fn() -> Result<(), SutError>);

impl SystemUnderTest for AtFlush {
    fn name(&self) -> &str {
        "hostile"
    }

    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        query.iter().for_each(|sample| answer(sample.id, completer));
        Ok(())
    }

    fn flush_queries(&self) -> Result<(), SutError> {
        self.0()
    }
}

#[test]
fn sut_that_fails_or_panics_in_flush_is_reported() {
    let long = Duration::from_secs(120);
    let fails = AtFlush(|| Err("the queue is gone".into()));
    expect_fault(
        "flush_queries failed: the queue is gone",
        &fails,
        &samples(),
        long,
    );
    let panics = AtFlush(|| panic!("no queue"));
    expect_fault("flush_queries panicked: no queue", &panics, &samples(), long);
}

/// A completer that is kept beyond the run affects neither that run's logs nor the next run.
#[test]
fn answers_after_the_end_are_dropped() {
    let kept: Mutex<Vec<(ResponseId, Completer)>> = Mutex::default();
    let run = |dir: &Path, scenario| -> Outcome {
        let sut = Sut(|samples: &[QuerySample], completer: &Completer| {
            kept.lock().unwrap().push((samples[0].id, completer.clone()));
            answer_all(samples, completer)
        });
        crate::run(&sut, &samples(), &request(scenario, Mode::AccuracyOnly, dir)).unwrap()
    };
    for scenario in Scenario::ALL {
        let dir = tempfile::tempdir().unwrap();
        run(dir.path(), scenario);
        let before = fs::read(dir.path().join("mlperf_log_accuracy.json")).unwrap();
        for (id, completer) in kept.lock().unwrap().drain(..) {
            answer(id, &completer);
            completer.fail("too late".into());
        }
        assert_eq!(run(dir.path(), scenario).faults, Vec::<String>::new());
        assert_eq!(
            fs::read(dir.path().join("mlperf_log_accuracy.json")).unwrap(),
            before
        );
    }
}
