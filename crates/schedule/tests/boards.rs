//! The policies on the modelled boards of `configs/boards`, in virtual time: repeatable from seeds, no clock involved.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test says what it expects"
)]

use std::{env, fs, path::Path};

use proptest::prelude::*;
use regatta_schedule::{
    board::{Board, Unit},
    judge,
    learn::{Stand, VirtualStand, doublings, learn},
    policy::{FinishTogether, FirstFree, Policy as _},
    split,
    times::ServiceTimes,
    trace::Measured,
    virtual_time,
};

fn boards() -> Vec<Board> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/boards");
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let read = |path: &std::path::PathBuf| Board::parse(&fs::read_to_string(path).unwrap()).expect("a board");
    files.iter().map(read).collect()
}

/// Tables to judge by: 200, or `REGATTA_TABLES`, as for a machine under emulation.
fn tables() -> usize {
    let given = env::var("REGATTA_TABLES");
    given.map_or(200, |tables| tables.parse().expect("REGATTA_TABLES is a number"))
}

/// The modelled boards, each off by up to 30 %: the first group of tables of the bench, over one query each where that has
/// five, and MultiStream over a tenth of them. Without any tolerance: a thousandth less is worse.
#[test]
fn wrong_tables_do_not_make_the_policy_worse_than_whoever_is_free() {
    let boards = boards();
    let tables = tables();
    let (mut offline, mut multi_stream) = (0, 0);
    for number in 0..tables {
        let board = boards[number % boards.len()].perturbed(0.3, number as u64);
        let judged = judge::offline(&board, judge::OFFLINE_SAMPLES, number as u64, 1).unwrap();
        assert!(
            judged.ours.of_bound <= 1.0 && judged.lwis.of_bound <= 1.0,
            "{}: {judged:?}",
            board.name
        );
        offline += usize::from(judged.gain >= 1.0);
        if number < tables.div_ceil(10) {
            let judged = judge::multi_stream(&board, number as u64).unwrap();
            multi_stream += usize::from(judged.gain >= 1.0);
        }
    }
    assert!(
        offline >= tables - tables.div_ceil(20),
        "Offline: no worse on {offline} of {tables}"
    );
    assert!(
        multi_stream >= tables.div_ceil(10) - tables.div_ceil(200),
        "MultiStream: no worse on {multi_stream} of a tenth of {tables}"
    );
}

/// Two units of which one is limited by its copies: no set of units says what the board can do, for the slow copier computes
/// in bursts and slows the other only then.
#[test]
fn a_unit_that_waits_for_its_copies_is_within_the_bound() {
    let unit = |name: &str, seconds, copy, slows_others| Unit {
        name: name.to_owned(),
        times: ServiceTimes::new(vec![(1, seconds)]).unwrap(),
        batch: 1,
        copy,
        streams: 2,
        slows_others,
    };
    let board = Board {
        name: String::new(),
        units: vec![unit("gpu", 0.1, 0.0, 0.0), unit("dla0", 0.1, 1.0, 4.0)],
        jitter: 0.0,
    };
    let judged = judge::offline(&board, 2_000, 0, 1).unwrap();
    // The GPU's 10 per second are 2 while the DLA core computes, which it does for a tenth of the time.
    assert!(
        judged.lwis.value > 10.1 && judged.lwis.of_bound <= 1.0,
        "{judged:?}"
    );
    assert!(judged.ours.of_bound <= 1.0, "{judged:?}");
}

#[test]
fn the_last_batch_is_not_left_to_the_slowest_unit() {
    let slow = |name: &str, seconds| Unit {
        name: name.to_owned(),
        times: ServiceTimes::new(vec![(8, seconds)]).unwrap(),
        batch: 8,
        copy: 0.0,
        streams: 1,
        slows_others: 0.0,
    };
    let board = Board {
        name: String::new(),
        units: vec![slow("gpu", 0.01), slow("dla0", 1.0)],
        jitter: 0.0,
    };
    let tables = board.units.iter().map(|unit| (unit.times.clone(), 8)).collect();
    // 160 samples: the GPU needs 0.2 s for all of them, a DLA core a second for any.
    let ours = virtual_time::offline(&board, &mut FinishTogether::new(tables), 160, 0).unwrap();
    let free = virtual_time::offline(&board, &mut FirstFree::new(vec![8, 8]), 160, 0).unwrap();
    assert!((ours - 0.2).abs() < 1e-6, "{ours}");
    assert!((free - 1.0).abs() < 1e-6, "{free}");
}

#[test]
fn a_unit_that_turned_slow_gets_less_at_the_end() {
    let times = || ServiceTimes::new(vec![(1, 0.1), (4, 0.4)]).unwrap();
    let mut policy = FinishTogether::new(vec![(times(), 4), (times(), 4)]);
    let mut now = 0.0;
    for _ in 0..60 {
        assert_eq!(policy.take(0, now, 1_000_000), 4);
        // Takes three times as long as its table says.
        now += 1.2;
        policy.done(0, now);
    }
    let (slow, quick) = (policy.take(0, now, 8), policy.take(1, now, 8));
    assert!(slow < quick, "{slow} {quick}");
}

#[test]
fn what_is_no_board_is_refused_with_the_reason() {
    let refused: Vec<String> = [
        "units = []",
        "units = [{ name = 'gpu', batch = 1, times = [] }]",
        "units = [{ name = 'gpu', batch = 1, times = [[2, 0.1], [1, 0.2]] }]",
        "units = [{ name = 'gpu', batch = 1, times = [[1, -0.1]] }]",
        "units = [{ name = 'gpu', batch = 0, times = [[1, 0.1]] }]",
        "units = [{ name = 'gpu', batch = 1, times = [[1, 0.1]], copy = nan }]",
        "units = [{ name = 'gpu', batch = 1, times = [[1, 0.1]], slows_others = -0.1 }]",
        "jitter = 2.0\nunits = [{ name = 'gpu', batch = 1, times = [[1, 0.1]] }]",
    ]
    .iter()
    .map(|text| {
        let error = Board::parse(text).unwrap_err();
        std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
    })
    .collect();
    for (text, expected) in refused.iter().zip([
        "at least one unit",
        "at least one batch size",
        "must ascend",
        "positive number of seconds",
        "a batch and a stream",
        "copy of the unit `gpu` is NaN, but must be a number from 0",
        "slows_others of the unit `gpu` is -0.1, but must be a number from 0",
        "from 0 to 1",
    ]) {
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_board_that_was_measured_is_the_board() {
    for board in boards() {
        let calm = Board { jitter: 0.0, ..board };
        let mut stand = VirtualStand {
            board: &calm,
            most: calm.units.iter().map(|unit| unit.batch).collect(),
            batches: 40,
            seed: 0,
        };
        let Ok(learnt) = learn(&mut stand, true);
        let measured = calm.units.iter().map(|unit| Measured {
            name: unit.name.clone(),
            streams: unit.streams,
        });
        let found = learnt.board("a \"trace\"\n".to_owned(), measured.collect());
        assert_eq!(Board::parse(&found.to_string()).unwrap(), found);
        for (found, unit) in found.units.iter().zip(&calm.units) {
            assert_eq!(
                (&found.name, found.batch, found.streams),
                (&unit.name, unit.batch, unit.streams)
            );
            for size in found.times.sizes() {
                // One stream hides no copy.
                let copy = if unit.streams == 1 {
                    unit.copy * size as f64
                } else {
                    0.0
                };
                let (measured, true_one) = (found.times.seconds(size), unit.times.seconds(size) + copy);
                assert!(
                    (measured - true_one).abs() < 1e-9,
                    "{}: {measured} {true_one}",
                    calm.name
                );
            }
            assert!(
                (found.slows_others - unit.slows_others).abs() < 0.01,
                "{found:?} {unit:?}"
            );
        }
        let seconds = |board: &Board| {
            let batches = board.units.iter().map(|unit| unit.batch).collect();
            virtual_time::offline(board, &mut FirstFree::new(batches), 24_576, 0).unwrap()
        };
        assert!(
            (seconds(&found) / seconds(&calm) - 1.0).abs() < 0.01,
            "{}",
            calm.name
        );
    }
}

/// A stand whose measurements come out at anything, by turns.
struct Noise {
    seconds: Vec<f64>,
    units: usize,
    next: usize,
}

impl Stand for Noise {
    type Error = std::convert::Infallible;

    fn units(&self) -> usize {
        self.units
    }

    fn sizes(&self, unit: usize) -> Vec<usize> {
        doublings(1 + unit * 3)
    }

    fn measure(&mut self, sizes: &[usize], _: bool) -> Result<Vec<f64>, Self::Error> {
        let next = |_: &usize| {
            self.next += 1;
            self.seconds[self.next % self.seconds.len()]
        };
        Ok(sizes.iter().map(next).collect())
    }
}

prop_compose! {
    fn unit()(base in 1e-4..1e-1, per_sample in 1e-6..1e-2, batch in 1_usize..64, streams in 1_usize..4, copy in 0.0..1e-3, slows_others in 0.0..0.8) -> Unit {
        let points = [1, batch].into_iter().collect::<std::collections::BTreeSet<_>>();
        Unit {
            name: "unit".to_owned(),
            times: ServiceTimes::new(points.into_iter().map(|size| (size, base + per_sample * size as f64)).collect()).unwrap(),
            batch, streams, copy, slows_others,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_sample_is_computed_on_any_board_and_never_faster_than_the_bound(
        units in prop::collection::vec(unit(), 1..4), samples in 1_usize..3_000, jitter in 0.0..0.3, seed: u64,
    ) {
        let board = Board { name: String::new(), units, jitter };
        let judged = judge::offline(&board, samples, seed, 1).unwrap();
        prop_assert!(judged.ours.of_bound <= 1.0 + 1e-9, "{judged:?}");
        prop_assert!(judged.lwis.of_bound <= 1.0 + 1e-9, "{judged:?}");
    }

    /// On a busy machine any measurement may come out at anything.
    #[test]
    fn what_was_measured_reads_as_it_was_written(
        seconds in prop::collection::vec(0.0..1e3_f64, 1..200), exponent in -12..1, units in 1_usize..6, pipelined: bool,
    ) {
        let scale = 10_f64.powi(exponent);
        let mut noise = Noise { seconds: seconds.iter().map(|s| s * scale).collect(), units, next: 0 };
        let Ok(learnt) = learn(&mut noise, pipelined);
        let measured = (0..units).map(|unit| Measured { name: format!("unit{unit}"), streams: 1 });
        let board = learnt.board(String::new(), measured.collect());
        prop_assert!(board.units.iter().all(|unit| unit.slows_others >= 0.0), "{board}");
        prop_assert_eq!(&Board::parse(&board.to_string()).unwrap(), &board);
    }

    #[test]
    fn a_cut_holds_all_samples_and_each_portion_is_done_in_time(units in prop::collection::vec(unit(), 1..4), samples in 1_usize..200) {
        let times: Vec<_> = units.iter().map(|unit| unit.times.clone()).collect();
        let all = (vec![true; units.len()], vec![1.0; units.len()]);
        let cut = split::best(&times, &[all], samples);
        prop_assert_eq!(cut.portions.iter().sum::<usize>(), samples);
        for (portion, times) in cut.portions.iter().zip(&times) {
            prop_assert!(*portion <= times.capacity(times.max_batch(), cut.seconds));
        }
    }
}
