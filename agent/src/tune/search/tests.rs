//! Tests of the search on modelled boards in virtual time. They compare its choice with the best of the full grid.

use regatta_engines::sim::SimModel;
use regatta_types::{
    EngineKind, Scenario,
    engine_settings::{BoardName, EngineSettings},
};
use regatta_unit_sharing::{
    board_model::BoardModel,
    throughput_bound,
    unit_profiler::{SimulatedProfiler, profile_units},
    virtual_time,
};

use super::*;
use crate::tune::space::Machine;

/// A board whose trials take virtual time and give noisy figures.
struct Virtual {
    board: &'static str,
    seed: u64,
    spent: Duration,
    /// Choices that crash.
    crashes: fn(&EngineSettings) -> bool,
}

fn virtual_board(name: &'static str) -> Virtual {
    Virtual {
        board: name,
        seed: 0,
        spent: Duration::ZERO,
        crashes: |_| false,
    }
}

/// Returns the board with these settings, through the same code as `bench`.
fn configured(name: &str, settings: &EngineSettings) -> BoardModel {
    let settings = EngineSettings {
        sim_board: Some(BoardName(name.to_owned())),
        ..settings.clone()
    };
    SimModel::of(&settings).unwrap().board
}

fn rate(board: &BoardModel, samples: usize, seed: u64) -> f64 {
    let most = board.units.iter().map(|unit| unit.batch).collect();
    let mut bench = SimulatedProfiler {
        board,
        most,
        batches: 8,
        seed: seed ^ 0x5eed,
    };
    let Ok(profiles) = profile_units(&mut bench, true);
    samples as f64 / virtual_time::offline(board, &mut profiles.offline(), samples, seed).unwrap()
}

impl TestBench for Virtual {
    fn measure(
        &mut self,
        settings: &EngineSettings,
        length: Duration,
        best: Option<f64>,
    ) -> Result<f64, TrialFailure> {
        if (self.crashes)(settings) {
            self.spent += Duration::from_millis(500);
            return Err("killed by signal 9".into());
        }
        self.seed += 1;
        let samples = (best.unwrap_or(2000.0) * length.as_secs_f64()).max(100.0) as usize;
        let rate = rate(&configured(self.board, settings), samples, self.seed);
        // Starting a process and the warm-up take time too.
        self.spent += Duration::from_secs_f64(samples as f64 / rate + 0.5);
        Ok(rate)
    }

    fn spent(&self) -> Duration {
        self.spent
    }
}

fn orin_space() -> Space {
    let machine = Machine {
        cpus: 12,
        dlas: 2,
        samples_per_query: 8,
        engines: None,
    };
    // The model does not know whether a thread spins.
    let fixed = EngineSettings {
        use_spin_wait: Some(false),
        ..EngineSettings::default()
    };
    Space::new(EngineKind::Sim, Scenario::Offline, &machine, &fixed, &[])
}

fn searched(bench: Virtual, limit: u64) -> (Option<Found>, Vec<Trial>) {
    let space = orin_space();
    let mut calls = 0;
    let mut observe = |trials: &[Trial], _: Option<&Found>| {
        calls += 1;
        assert_eq!(trials.len(), calls, "reported every trial");
    };
    let mut search = Search {
        space: &space,
        goal: Goal::Maximize,
        bench,
        limit: Duration::from_secs(limit),
        seeds: Vec::new(),
        trials: Vec::new(),
        observe: &mut observe,
    };
    let found = search.run();
    (found, search.trials)
}

/// Returns every choice, found by steps to all neighbours.
fn all(space: &Space) -> Vec<Candidate> {
    let mut known = space.coarse();
    let mut next = 0;
    while next < known.len() {
        for neighbour in space.neighbours(&known[next]) {
            if !known.contains(&neighbour) {
                known.push(neighbour);
            }
        }
        next += 1;
    }
    known
}

/// Chips with different best choices.
const BOARDS: [&str; 4] = [
    "agx-orin.resnet50",
    "xavier-nx.resnet50",
    "agx-orin.retinanet",
    "xavier-nx.ssd-mobilenet",
];

#[test]
fn the_choice_is_near_the_best_of_the_full_grid_with_few_of_its_trials() {
    let space = orin_space();
    let grid = all(&space);
    for name in BOARDS {
        let most = |candidate: &Candidate| {
            throughput_bound::max_throughput(&configured(name, &space.settings(candidate)))
        };
        let best = grid.iter().map(most).fold(0.0, f64::max);
        let (found, trials) = searched(virtual_board(name), 600);
        let found = found.unwrap();
        let ours = most(&found.candidate);
        assert!(
            ours >= 0.97 * best,
            "{name}: {ours} of {best}, {:?}",
            space.settings(&found.candidate)
        );
        assert_eq!(found.partial, None, "{name}");
        let mut tried: Vec<&Candidate> = trials.iter().map(|trial| &trial.candidate).collect();
        tried.sort();
        tried.dedup();
        assert!(
            tried.len() * 4 < grid.len(),
            "{name}: {} of {}",
            tried.len(),
            grid.len()
        );
    }
}

#[test]
fn a_choice_that_crashes_is_a_row_and_not_the_end() {
    let crashes = |settings: &EngineSettings| settings.gpu_batch_size.unwrap() > 64;
    let bench = Virtual {
        crashes,
        ..virtual_board("agx-orin.resnet50")
    };
    let (found, trials) = searched(bench, 600);
    let space = orin_space();
    assert_eq!(space.settings(&found.unwrap().candidate).gpu_batch_size, Some(64));
    let failed: Vec<_> = trials
        .iter()
        .filter_map(|trial| trial.outcome.as_ref().err())
        .collect();
    assert!(!failed.is_empty() && failed.iter().all(|failure| failure.0 == "killed by signal 9"));

    let (found, trials) = searched(
        Virtual {
            crashes: |_| true,
            ..virtual_board("agx-orin.resnet50")
        },
        600,
    );
    assert_eq!(found, None);
    assert_eq!(trials.len(), space.coarse().len(), "each once");
}

#[test]
fn a_limit_that_is_too_short_gives_the_best_so_far_and_says_so() {
    let (found, trials) = searched(virtual_board("agx-orin.resnet50"), 4);
    let found = found.unwrap();
    assert!(found.partial.unwrap().contains("limit"));
    assert!(trials.len() < orin_space().coarse().len() + 5, "{}", trials.len());
    assert!(found.figure > 0.0);
}

#[test]
fn equal_candidates_are_reported_as_equal_and_the_cheaper_is_kept() {
    /// Every choice gives the same figure.
    struct Same(u32);
    impl TestBench for Same {
        fn measure(
            &mut self,
            _: &EngineSettings,
            length: Duration,
            _: Option<f64>,
        ) -> Result<f64, TrialFailure> {
            self.0 += u32::try_from(length.as_millis()).unwrap();
            // Noise of one percent without a trend.
            Ok(100.0 + f64::from(self.0 % 101 * 7919 % 101) / 100.0)
        }
        fn spent(&self) -> Duration {
            Duration::from_millis(self.0.into())
        }
    }
    let space = orin_space();
    let mut search = Search {
        space: &space,
        goal: Goal::Minimize,
        bench: Same(0),
        limit: Duration::from_secs(3000),
        seeds: Vec::new(),
        trials: Vec::new(),
        observe: &mut |_, _| {},
    };
    let found = search.run().unwrap();
    assert!(
        found.reason.contains("not distinguishable from"),
        "{}",
        found.reason
    );
    let last: Vec<&Candidate> = search
        .trials
        .iter()
        .filter(|trial| trial.part == Part::Final)
        .map(|trial| &trial.candidate)
        .collect();
    assert_eq!(last.len(), 2 * TURNS);
    assert!(
        last.iter()
            .all(|other| Space::cost(&found.candidate) <= Space::cost(other))
    );
}
