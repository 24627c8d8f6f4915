//! Tests of FindPeakPerformance with a SUT of known speed. `equality/peak.rs` compares the peak with the official one.

use std::{
    fs,
    sync::{Mutex, mpsc},
    thread,
    time::Duration,
};

use regatta_loadgen::{
    request::ConfText,
    sut::{Completer, QuerySample, ResponseId},
};
use regatta_types::{Mode, Scenario};

use crate::{Sut, answer, request, run, samples};

/// The search ends. On a machine that is too busy even for the lowest rate, it says so.
#[test]
fn the_search_for_the_peak_of_a_slow_sut_ends() {
    let (sender, receiver) = mpsc::channel::<(ResponseId, Completer)>();
    let (outcome, detail) = thread::scope(|scope| {
        scope.spawn(move || {
            while let Ok((id, completer)) = receiver.recv() {
                thread::sleep(Duration::from_millis(2));
                answer(id, &completer);
            }
        });
        let sender = Mutex::new(Some(sender));
        let dir = tempfile::tempdir().unwrap();
        let mut request = request(Scenario::Server, Mode::FindPeakPerformance, dir.path());
        let conf = "*.Server.target_qps = 100\n*.Server.target_latency = 400\n*.*.min_duration = 300\n\
                    *.*.min_query_count = 30";
        request.user_conf = Some(ConfText::new("user.conf", conf));
        request.overrides.find_peak_decimals = Some(-2);
        let sut = Sut(|samples: &[QuerySample], completer: &Completer| {
            for sample in samples {
                let sender = sender.lock().unwrap();
                sender.as_ref().unwrap().send((sample.id, completer.clone()))?;
            }
            Ok(())
        });
        let outcome = run(&sut, &samples(), &request);
        sender.lock().unwrap().take();
        let detail = fs::read_to_string(dir.path().join("mlperf_log_detail.txt")).unwrap();
        (outcome.unwrap(), detail)
    });
    assert_eq!(outcome.faults, Vec::<String>::new());
    let met = outcome.performance.unwrap().performance_constraints_met;
    let found = detail.contains("FindPeakPerformance: Found peak performance field: ");
    assert_eq!(met, Some(found), "{detail}");
    assert!(
        found || detail.contains("Initial lower bound does not satisfy"),
        "{detail}"
    );
}
