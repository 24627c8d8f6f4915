//! Checks of the promises by simulation: A/A experiments, planned effects, the coverage of both intervals, and what more pairs decide.
//! Every experiment is seeded, so that its figures are the same each time.

use regatta_random::SplitMix64;

use crate::{
    AaFloor, Direction, MIN_PAIRS, MorePairs, Verdict, bootstrap_interval,
    comparison::judge,
    median_interval,
    pairing::{Side, pair},
    plan::pairs_for_effect,
};

const EXPERIMENTS: usize = 200;

/// Standard normal values by Box and Muller.
struct Normal(SplitMix64);

impl Normal {
    fn uniform(&mut self) -> f64 {
        ((self.0.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn next(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// A modelled device: what disturbs its figures.
#[derive(Clone, Copy)]
struct Disturbance {
    name: &'static str,
    /// The standard deviation of a run.
    noise: f64,
    /// The change from each run to the next.
    drift: f64,
    /// The standard deviation of a random walk from each run to the next.
    walk: f64,
    /// The share of runs that are slower by 30 %.
    outliers: f64,
}

const QUIET: Disturbance = Disturbance {
    name: "quiet",
    noise: 0.01,
    drift: 0.0,
    walk: 0.0,
    outliers: 0.0,
};
const DISTURBANCES: [Disturbance; 6] = [
    QUIET,
    Disturbance {
        name: "noisy",
        noise: 0.04,
        ..QUIET
    },
    Disturbance {
        name: "drifting",
        drift: 0.003,
        ..QUIET
    },
    Disturbance {
        name: "wandering",
        walk: 0.01,
        ..QUIET
    },
    Disturbance {
        name: "with outliers",
        outliers: 0.1,
        ..QUIET
    },
    Disturbance {
        name: "all of it",
        noise: 0.02,
        drift: 0.003,
        walk: 0.005,
        outliers: 0.1,
    },
];

/// The log-ratios of interleaved pairs, when B is slower by `effect`.
fn experiment(pairs: usize, effect: f64, of: Disturbance, normal: &mut Normal) -> Vec<f64> {
    let sequence: Vec<Side> = (0..pairs).flat_map(|_| [Side::A, Side::B]).collect();
    let mut level = 0.0;
    let figures: Vec<f64> = sequence
        .iter()
        .map(|side| {
            level += of.drift + of.walk * normal.next();
            let outlier = if normal.uniform() < of.outliers { 0.3 } else { 0.0 };
            let effect = if *side == Side::B { effect } else { 0.0 };
            level + effect + outlier + of.noise * normal.next()
        })
        .collect();
    pair(&sequence)
        .pairs
        .iter()
        .map(|&(a, b)| figures[b] - figures[a])
        .collect()
}

fn verdict(log_ratios: &[f64]) -> Verdict {
    judge(log_ratios, Direction::Smaller, AaFloor::measured(&[]).log())
}

/// The share of experiments for which `is` holds.
fn share(count: usize, mut is: impl FnMut() -> bool) -> f64 {
    (0..count).filter(|_| is()).count() as f64 / count as f64
}

#[test]
fn at_most_5_percent_of_200_experiments_without_a_difference_are_called_different() {
    for of in DISTURBANCES {
        for pairs in [6, 20, 50] {
            let mut normal = Normal(SplitMix64::new(pairs as u64));
            let different = share(EXPERIMENTS, || {
                let found = verdict(&experiment(pairs, 0.0, of, &mut normal));
                matches!(found, Verdict::Better | Verdict::Worse)
            });
            println!(
                "{:14} {pairs:3} pairs: {:.1} % different",
                of.name,
                different * 100.0
            );
            assert!(different <= 0.05, "{}, {pairs} pairs: {different}", of.name);
        }
    }
}

#[test]
fn at_least_95_percent_of_effects_of_3_percent_are_found_with_the_planned_pairs() {
    let effect = 0.03_f64.ln_1p();
    for of in [
        QUIET,
        Disturbance {
            noise: 0.005,
            ..QUIET
        },
        Disturbance { noise: 0.02, ..QUIET },
        Disturbance { noise: 0.03, ..QUIET },
    ] {
        // A pair has the noise of two runs.
        let deviation = of.noise * 2.0_f64.sqrt();
        let pairs = pairs_for_effect(effect, deviation, AaFloor::measured(&[]).log(), 0).unwrap();
        let mut normal = Normal(SplitMix64::new(7));
        let found = share(EXPERIMENTS, || {
            verdict(&experiment(pairs, effect, of, &mut normal)) == Verdict::Worse
        });
        println!(
            "noise {:.1} %: {pairs} pairs, {:.1} % found",
            of.noise * 100.0,
            found * 100.0
        );
        assert!(found >= 0.95, "noise {}, {pairs} pairs: {found}", of.noise);
    }
}

type Draw = fn(&mut Normal) -> f64;

/// The exact interval keeps 95 % with every number of pairs and every shape. The bootstrap's does not, least of all with three pairs, for
/// which there is no exact one: the reason why it decides nothing.
#[test]
fn the_exact_interval_covers_the_median_and_the_bootstrap_too_rarely() {
    let shapes: [(&str, Draw); 3] = [
        ("normal", |normal| normal.next()),
        ("heavy tails", |normal| normal.next() / normal.next()),
        // The median of an exponential distribution is ln 2.
        ("skewed", |normal| -normal.uniform().ln() - std::f64::consts::LN_2),
    ];
    let mut least_bootstrap: f64 = 1.0;
    for (name, draw) in shapes {
        for n in [3, 6, 9, 20] {
            let mut normal = Normal(SplitMix64::new(11));
            let (mut exact, mut bootstrap) = (0, 0);
            const COUNT: usize = 300;
            for _ in 0..COUNT {
                let values: Vec<f64> = (0..n).map(|_| draw(&mut normal)).collect();
                let covers = |[low, high]: [f64; 2]| usize::from(low <= 0.0 && 0.0 <= high);
                exact += median_interval(&values).map_or(0, covers);
                bootstrap += bootstrap_interval(&[&values]).map_or(0, covers);
            }
            let [exact, bootstrap] = [exact, bootstrap].map(|count| count as f64 / COUNT as f64);
            println!(
                "{name:12} {n:3} values: exact {:.1} %, bootstrap {:.1} %",
                exact * 100.0,
                bootstrap * 100.0
            );
            // Three standard errors of 300 experiments below 95 %.
            assert!(n < MIN_PAIRS || exact >= 0.912, "{name}, {n} values: {exact}");
            least_bootstrap = least_bootstrap.min(bootstrap);
        }
    }
    assert!(
        least_bootstrap < 0.85,
        "{least_bootstrap}: the bootstrap may decide"
    );
}

#[test]
fn the_pairs_that_a_verdict_requests_mostly_decide() {
    let mut normal = Normal(SplitMix64::new(3));
    let (mut requested, mut decided) = (0, 0);
    for effect in [0.0, 0.02, 0.03, 0.05] {
        for _ in 0..EXPERIMENTS {
            let mut log_ratios = experiment(8, effect, QUIET, &mut normal);
            if let Verdict::Undecided(MorePairs::Enough(more)) = verdict(&log_ratios) {
                requested += 1;
                log_ratios.extend(experiment(more, effect, QUIET, &mut normal));
                decided += usize::from(!matches!(verdict(&log_ratios), Verdict::Undecided(_)));
            }
        }
    }
    println!("{decided} of {requested} were decided");
    assert!(
        requested > 100 && decided * 10 >= requested * 7,
        "{decided} of {requested}"
    );
}
