//! Tests of answers from many threads, and of several issuing threads.

use std::{
    sync::{Mutex, mpsc},
    thread,
};

use regatta_loadgen::{
    request::Wait,
    sut::{Completer, QuerySample, ResponseId},
};
use regatta_types::{Mode, Scenario};

use crate::{Sut, answer, answer_all, request, run, samples};

/// Answers from threads, in any order, while the issuing thread blocks or spins.
#[test]
fn answers_from_many_threads_are_taken() {
    for (scenario, wait) in Scenario::ALL
        .into_iter()
        .flat_map(|s| [(s, Wait::Block), (s, Wait::Spin)])
    {
        let (sender, receiver) = mpsc::channel::<(ResponseId, Completer)>();
        let (sender, receiver) = (Mutex::new(sender), Mutex::new(receiver));
        let outcome = thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let Ok((id, completer)) = receiver.lock().unwrap().recv() else {
                            return;
                        };
                        answer(id, &completer);
                    }
                });
            }
            let dir = tempfile::tempdir().unwrap();
            let mut request = request(scenario, Mode::SubmissionRun, dir.path());
            request.issue.wait = wait;
            let sut = Sut(|samples: &[QuerySample], completer: &Completer| {
                for sample in samples.iter().rev() {
                    sender.lock().unwrap().send((sample.id, completer.clone()))?;
                }
                Ok(())
            });
            let outcome = run(&sut, &samples(), &request);
            // The threads end when there is no sender any more.
            *sender.lock().unwrap() = mpsc::channel().0;
            outcome.unwrap()
        });
        assert_eq!(outcome.faults, Vec::<String>::new(), "{scenario} {wait:?}");
        assert_eq!(outcome.accuracy.unwrap().samples, 64);
        assert!(
            outcome.performance.unwrap().issued.samples >= 70,
            "{scenario} {wait:?}"
        );
    }
}

/// Several issuing threads share the schedule: each query is issued once, with its own sample.
#[test]
fn issuing_threads_share_the_schedule() {
    let issued_by = |threads| {
        let issued: Mutex<Vec<(ResponseId, usize)>> = Mutex::default();
        let sut = Sut(|samples: &[QuerySample], completer: &Completer| {
            issued
                .lock()
                .unwrap()
                .extend(samples.iter().map(|sample| (sample.id, sample.index)));
            answer_all(samples, completer)
        });
        let dir = tempfile::tempdir().unwrap();
        let mut request = request(Scenario::Server, Mode::PerformanceOnly, dir.path());
        request.overrides.server_issue_threads = threads;
        let outcome = run(&sut, &samples(), &request).unwrap();
        assert_eq!(outcome.faults, Vec::<String>::new());
        let mut issued = issued.into_inner().unwrap();
        issued.sort_unstable();
        issued
    };
    let alone = issued_by(None);
    assert_eq!(issued_by(Some(3)), alone);
    assert_eq!(issued_by(Some(1)), alone);
    assert!(alone.len() >= 70);
}
