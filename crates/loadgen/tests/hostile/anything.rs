//! Tests of any mixture of faults of a SUT.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use proptest::prelude::*;
use regatta_loadgen::{
    NativeLoadGen,
    load_gen::{LoadGen, Phase, RunObserver},
    sut::{Completer, QuerySample, ResponseId, SutError},
};
use regatta_types::{Mode, Scenario};

use crate::{Sut, answer, request, samples};

/// The behaviour of a SUT with a sample.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Answer,
    AnswerTwice,
    AnswerUnknown,
    Keep,
    AnswerKept,
    Fail,
    Panic,
}

/// An observer that checks that every opened window is closed.
#[derive(Default)]
struct Windows(AtomicU64, AtomicU64);

impl RunObserver for Windows {
    fn on_window_begin(&self, _: Phase) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn on_window_end(&self, _: Phase) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Whatever a SUT does, the run ends, and it has faults exactly if the SUT had.
    #[test]
    fn run_ends_whatever_the_sut_does(
        deeds in proptest::collection::vec(
            prop_oneof![
                40 => Just(Deed::Answer), 1 => Just(Deed::AnswerTwice), 1 => Just(Deed::AnswerUnknown),
                1 => Just(Deed::Keep), 2 => Just(Deed::AnswerKept), 1 => Just(Deed::Fail), 1 => Just(Deed::Panic),
            ],
            1..60,
        ),
        scenario in 0..4_usize,
        mode in 0..3_usize,
    ) {
        let next = AtomicU64::new(0);
        let kept: Mutex<Vec<ResponseId>> = Mutex::default();
        let misdeeds = AtomicU64::new(0);
        let sut = Sut(|samples: &[QuerySample], completer: &Completer| -> Result<(), SutError> {
            for sample in samples {
                let turn = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap();
                let deed = deeds[turn % deeds.len()];
                if !matches!(deed, Deed::Answer | Deed::Keep | Deed::AnswerKept) {
                    misdeeds.fetch_add(1, Ordering::Relaxed);
                }
                match deed {
                    Deed::Answer => answer(sample.id, completer),
                    Deed::AnswerTwice => {
                        answer(sample.id, completer);
                        answer(sample.id, completer);
                    }
                    Deed::AnswerUnknown => answer(ResponseId(u64::MAX - 3), completer),
                    Deed::Keep => kept.lock().unwrap().push(sample.id),
                    Deed::AnswerKept => {
                        answer(sample.id, completer);
                        let kept: Vec<_> = kept.lock().unwrap().drain(..).collect();
                        kept.into_iter().for_each(|id| answer(id, completer));
                    }
                    Deed::Fail => return Err("failed".into()),
                    Deed::Panic => panic!("panicked"),
                }
            }
            Ok(())
        });
        let dir = tempfile::tempdir().unwrap();
        let mode = [Mode::AccuracyOnly, Mode::PerformanceOnly, Mode::SubmissionRun][mode];
        let mut request = request(Scenario::ALL[scenario], mode, dir.path());
        request.issue.stall_timeout = Some(Duration::from_millis(80));
        let windows = Windows::default();
        let outcome = NativeLoadGen.run(&sut, &samples(), &request, &windows).unwrap();
        prop_assert_eq!(windows.0.into_inner(), windows.1.into_inner());
        let stalled = outcome.faults.iter().any(|fault| fault.contains("stalled"));
        prop_assert_eq!(outcome.faults.is_empty(), misdeeds.into_inner() == 0 && !stalled, "{:?}", outcome.faults);
        prop_assert!(outcome.faults.is_empty() || outcome.valid == Some(false));
    }
}
