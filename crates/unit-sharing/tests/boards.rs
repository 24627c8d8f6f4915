//! The policies on the board models of `configs/simulated-boards`, in virtual time: repeatable from seeds, without a clock.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test says what it expects"
)]

use std::{env, fs, path::Path};

use proptest::prelude::*;
use regatta_unit_sharing::{
    board_model::{BoardModel, UnitModel},
    measured_board::MeasuredUnit,
    policy::{FinishTogether, FirstFree, Policy as _},
    policy_comparison, query_split,
    service_times::ServiceTimes,
    unit_profiler::{SimulatedProfiler, UnitProfiler, doublings, profile_units},
    virtual_time,
};

fn boards() -> Vec<BoardModel> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/simulated-boards");
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let read =
        |path: &std::path::PathBuf| BoardModel::parse(&fs::read_to_string(path).unwrap()).expect("a board");
    files.iter().map(read).collect()
}

/// The number of tables: 200, or `REGATTA_TABLES`, for instance on an emulated machine.
fn tables() -> usize {
    let tables = env::var("REGATTA_TABLES");
    tables.map_or(200, |tables| tables.parse().expect("REGATTA_TABLES is a number"))
}

/// Uses the first group of tables of the bench: the board models, each off by up to 30 %. Offline has one query per table
/// (the bench has five), and MultiStream a tenth of the tables. There is no tolerance: a thousandth slower is slower.
#[test]
fn with_wrong_tables_the_policy_is_not_slower_than_first_free() {
    let boards = boards();
    let tables = tables();
    let (mut offline, mut multi_stream) = (0, 0);
    for number in 0..tables {
        let board = boards[number % boards.len()].perturbed(0.3, number as u64);
        let comparison =
            policy_comparison::offline(&board, policy_comparison::OFFLINE_SAMPLES, number as u64, 1).unwrap();
        assert!(
            comparison.ours.of_bound <= 1.0 && comparison.lwis.of_bound <= 1.0,
            "{}: {comparison:?}",
            board.name
        );
        offline += usize::from(comparison.gain >= 1.0);
        if number < tables.div_ceil(10) {
            let comparison = policy_comparison::multi_stream(&board, number as u64).unwrap();
            multi_stream += usize::from(comparison.gain >= 1.0);
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

/// One of the two units is limited by its copies. No set of units gives the board's throughput, because that unit computes
/// in bursts and only slows the other one meanwhile.
#[test]
fn a_unit_that_waits_for_its_copies_is_within_the_bound() {
    let unit = |name: &str, seconds, copy, slows_others| UnitModel {
        name: name.to_owned(),
        times: ServiceTimes::new(vec![(1, seconds)]).unwrap(),
        batch: 1,
        copy,
        streams: 2,
        slows_others,
    };
    let board = BoardModel {
        name: String::new(),
        units: vec![unit("gpu", 0.1, 0.0, 0.0), unit("dla0", 0.1, 1.0, 4.0)],
        jitter: 0.0,
    };
    let comparison = policy_comparison::offline(&board, 2_000, 0, 1).unwrap();
    // The GPU's 10 per second are 2 while the DLA core computes, which it does for a tenth of the time.
    assert!(
        comparison.lwis.value > 10.1 && comparison.lwis.of_bound <= 1.0,
        "{comparison:?}"
    );
    assert!(comparison.ours.of_bound <= 1.0, "{comparison:?}");
}

#[test]
fn the_last_batch_is_not_left_to_the_slowest_unit() {
    let slow = |name: &str, seconds| UnitModel {
        name: name.to_owned(),
        times: ServiceTimes::new(vec![(8, seconds)]).unwrap(),
        batch: 8,
        copy: 0.0,
        streams: 1,
        slows_others: 0.0,
    };
    let board = BoardModel {
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
fn an_invalid_board_is_refused_with_the_reason() {
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
        let error = BoardModel::parse(text).unwrap_err();
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
fn the_profile_of_a_board_reproduces_it() {
    for board in boards() {
        let calm = BoardModel { jitter: 0.0, ..board };
        let mut profiler = SimulatedProfiler {
            board: &calm,
            most: calm.units.iter().map(|unit| unit.batch).collect(),
            batches: 40,
            seed: 0,
        };
        let Ok(profiles) = profile_units(&mut profiler, true);
        let measured = calm.units.iter().map(|unit| MeasuredUnit {
            name: unit.name.clone(),
            streams: unit.streams,
        });
        let found = profiles.board("a \"trace\"\n".to_owned(), measured.collect());
        assert_eq!(BoardModel::parse(&found.to_string()).unwrap(), found);
        for (found, unit) in found.units.iter().zip(&calm.units) {
            assert_eq!(
                (&found.name, found.batch, found.streams),
                (&unit.name, unit.batch, unit.streams)
            );
            for size in found.times.sizes() {
                // With one stream, computing hides no copy.
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
        let seconds = |board: &BoardModel| {
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

/// A profiler that returns arbitrary measurements in turn.
struct Noise {
    seconds: Vec<f64>,
    units: usize,
    next: usize,
}

impl UnitProfiler for Noise {
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
    fn unit()(base in 1e-4..1e-1, per_sample in 1e-6..1e-2, batch in 1_usize..64, streams in 1_usize..4, copy in 0.0..1e-3, slows_others in 0.0..0.8) -> UnitModel {
        let points = [1, batch].into_iter().collect::<std::collections::BTreeSet<_>>();
        UnitModel {
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
        let board = BoardModel { name: String::new(), units, jitter };
        let comparison = policy_comparison::offline(&board, samples, seed, 1).unwrap();
        prop_assert!(comparison.ours.of_bound <= 1.0 + 1e-9, "{comparison:?}");
        prop_assert!(comparison.lwis.of_bound <= 1.0 + 1e-9, "{comparison:?}");
    }

    /// On a busy machine a measurement may have any value.
    #[test]
    fn a_measured_board_round_trips(
        seconds in prop::collection::vec(0.0..1e3_f64, 1..200), exponent in -12..1, units in 1_usize..6, pipelined: bool,
    ) {
        let scale = 10_f64.powi(exponent);
        let mut noise = Noise { seconds: seconds.iter().map(|s| s * scale).collect(), units, next: 0 };
        let Ok(profiles) = profile_units(&mut noise, pipelined);
        let measured = (0..units).map(|unit| MeasuredUnit { name: format!("unit{unit}"), streams: 1 });
        let board = profiles.board(String::new(), measured.collect());
        prop_assert!(board.units.iter().all(|unit| unit.slows_others >= 0.0), "{board}");
        prop_assert_eq!(&BoardModel::parse(&board.to_string()).unwrap(), &board);
    }

    #[test]
    fn a_split_has_all_samples_and_each_portion_is_done_in_time(units in prop::collection::vec(unit(), 1..4), samples in 1_usize..200) {
        let times: Vec<_> = units.iter().map(|unit| unit.times.clone()).collect();
        let all = (vec![true; units.len()], vec![1.0; units.len()]);
        let split = query_split::best_split(&times, &[all], samples);
        prop_assert_eq!(split.portions.iter().sum::<usize>(), samples);
        for (portion, times) in split.portions.iter().zip(&times) {
            prop_assert!(*portion <= times.capacity(times.max_batch(), split.seconds));
        }
    }
}
