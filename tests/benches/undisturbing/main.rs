//! Measures how the agent's daemon affects a measurement: SingleStream over a modelled accelerator of 0.6 ms, in four conditions.
//!
//! `cargo bench -p regatta-tests --bench undisturbing`. Each alternation runs all four, beginning with another one each time.
//! **off** and **off again** are `regatta-agent exec` alone. **heartbeat** is the daemon with default delivery. In **live** it
//! sends logs while LoadGen runs; the bench writes them into the run's `run.log`. The two series without a daemon show the noise.
//! `REGATTA_BENCH_ROUNDS` (20) and `REGATTA_BENCH_MS` (3000) set how often and how long.
//!
//! Exact counts come from the runs' own evidence, and from `strace` where it is installed.

mod conditions;
mod counts;

use std::{env, error::Error, path::Path};

use conditions::{Bench, CONDITIONS, Measured};
use regatta_tests::{
    build_release_binaries,
    statistics::{interval_of_ratio, median, ratio},
};

type AnyError = Box<dyn Error>;

fn main() -> Result<(), AnyError> {
    // `cargo bench` says so; test runners that look into every target do not.
    if !env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let number = |name: &str, default: usize| {
        let setting = env::var(name).ok().and_then(|value| value.parse().ok());
        setting.unwrap_or(default)
    };
    let (rounds, millis) = (
        number("REGATTA_BENCH_ROUNDS", 20),
        number("REGATTA_BENCH_MS", 3000),
    );
    build_release_binaries();
    let mut bench = Bench::set_up(millis)?;
    let mut series: [Vec<Measured>; 4] = Default::default();
    for round in 0..rounds {
        for turn in 0..CONDITIONS.len() {
            let place = (round + turn) % CONDITIONS.len();
            series[place].push(bench.measure(CONDITIONS[place])?);
        }
    }
    println!(
        "{rounds} alternations of {millis} ms; medians, 95 % bootstrap intervals of the ratio of medians\n"
    );
    print_latencies(&series);
    print_counts(&series);
    counts::print_system_calls(&bench, Path::new("/usr/bin/strace"))
}

fn print_latencies(series: &[Vec<Measured>; 4]) {
    println!(
        "| latency | off (ns) | off again / off | heartbeat / off | within the spread of A A | live / off |"
    );
    println!("|---|---|---|---|---|---|");
    for (percentile, figure) in [("p50", 0), ("p90", 1), ("p99", 2)] {
        let values = |condition: usize| -> Vec<f64> {
            series[condition]
                .iter()
                .map(|run| run.latency_ns[figure])
                .collect()
        };
        let (off, again, heartbeat, live) = (values(0), values(1), values(2), values(3));
        let (low, high) = interval_of_ratio(&again, &off);
        let of_heartbeat = median(&heartbeat) / median(&off);
        let within = if (low..=high).contains(&of_heartbeat) {
            "yes"
        } else {
            "no"
        };
        println!(
            "| {percentile} | {:.0} | {} | {} | {within} | {} |",
            median(&off),
            ratio(&again, &off),
            ratio(&heartbeat, &off),
            ratio(&live, &off)
        );
    }
}

fn print_counts(series: &[Vec<Measured>; 4]) {
    println!("\n| in the window, per second; the largest of all runs | off | heartbeat | live |");
    println!("|---|---|---|---|");
    let row = |name: &str, figure: fn(&Measured) -> Option<f64>| {
        let largest = |condition: usize| {
            let figures: Vec<f64> = series[condition].iter().filter_map(figure).collect();
            let largest = figures.iter().copied().fold(f64::NAN, f64::max);
            if figures.is_empty() {
                "-".to_owned()
            } else {
                format!("{largest:.1}")
            }
        };
        println!("| {name} | {} | {} | {} |", largest(0), largest(2), largest(3));
    };
    row("bytes that the daemon sent", |run| run.per_second("bytes_sent"));
    row("the daemon's processor time (ms)", |run| {
        Some(run.per_second("daemon_cpu_ns")? / 1e6)
    });
    row(
        "the daemon's wake-ups, on other processors than the timing one",
        |run| run.per_second("daemon_wakeups"),
    );
    println!("\n| in the window, the largest of all runs | off | heartbeat | live |");
    println!("|---|---|---|---|");
    row(
        "wake-ups of the daemon on the timing processor",
        Measured::daemon_on_timing_cpu,
    );
    row("migrations of the issuing thread", |run| {
        run.cost("timing_migrations")
    });
    row("times that another thread took its processor", |run| {
        run.cost("timing_preemptions")
    });
    row(
        "sleeps of the issuing thread beyond one a query",
        Measured::extra_sleeps,
    );
}
