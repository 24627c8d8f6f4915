//! Measures the cost of LoadGen itself: ours beside the official one, in turns on the same machine, with SUTs that do nothing.
//!
//! `REGATTA_ORACLES=DIR cargo bench -p regatta-loadgen --bench side_by_side`. Each round runs ours, theirs and ours again: the
//! two series of ours show the noise. `REGATTA_BENCH_ROUNDS` (10) and `REGATTA_BENCH_MS` (1000) set how often and for how long;
//! `-- Server` picks the workloads with that word. Needs the official LoadGen built by `tests/oracles/loadgen/build.sh`.

mod null_sut;
mod statistics;
mod wake_up;
mod workload;

use std::{collections::BTreeMap, env, error::Error, path::PathBuf, process::Command};

use regatta_mllog::latency_keys::LISTED_PERCENTILES;
use statistics::{interval_of_ratio, median};
use workload::{WORKLOADS, Workload};

type Figures = BTreeMap<String, f64>;
type AnyError = Box<dyn Error>;

fn main() -> Result<(), AnyError> {
    let arguments: Vec<String> = env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--ours") {
        return null_sut::measure(&arguments[at + 1..]);
    }
    // `cargo bench` says so; test runners that look into every target do not.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    // As in other benches, an argument selects the workloads whose names contain it.
    let words: Vec<_> = arguments[1..]
        .iter()
        .filter(|word| !word.starts_with("--"))
        .collect();
    let is_picked = |workload: &&Workload| words.iter().all(|word| workload.name.contains(*word));
    let number = |name: &str, default: usize| {
        env::var(name)
            .ok()
            .and_then(|value| value.parse().ok())
            .unwrap_or(default)
    };
    let rounds = number("REGATTA_BENCH_ROUNDS", 10);
    let duration_ms = number("REGATTA_BENCH_MS", 1000);
    let oracles =
        env::var_os("REGATTA_ORACLES").ok_or("set REGATTA_ORACLES; see tests/oracles/loadgen/build.sh")?;
    let theirs = PathBuf::from(oracles).join("loadgen-6.0.17/bench");
    println!(
        "{rounds} rounds of {duration_ms} ms; medians, 95 % bootstrap intervals of the ratio of medians\n"
    );
    println!("| workload | figure | ours | official | ours / official | ours / ours again |");
    println!("|---|---|---|---|---|---|");
    for workload in WORKLOADS.iter().filter(is_picked) {
        let mut series: [Vec<Figures>; 3] = Default::default();
        for _ in 0..rounds {
            series[0].push(run_ours(workload, duration_ms)?);
            series[1].push(run(
                Command::new(&theirs),
                workload,
                duration_ms,
                workload.official_target,
            )?);
            series[2].push(run_ours(workload, duration_ms)?);
        }
        for figure in workload.figures {
            print_row(workload.name, figure, &series);
        }
    }
    println!(
        "\na sleep of 50 us and its wake-up, nothing else: {} ns of processor time",
        wake_up::cpu_ns()
    );
    Ok(())
}

fn print_row(workload: &str, figure: &str, series: &[Vec<Figures>; 3]) {
    let values = |index: usize| -> Vec<f64> {
        series[index]
            .iter()
            .map(|run| run.get(figure).copied().unwrap_or(f64::NAN))
            .collect()
    };
    let (ours, official, again) = (values(0), values(1), values(2));
    let ratio = |a: &[f64], b: &[f64]| {
        let (low, high) = interval_of_ratio(a, b);
        format!("{:.3} ({low:.3} to {high:.3})", median(a) / median(b))
    };
    println!(
        "| {workload} | {figure} | {:.1} | {:.1} | {} | {} |",
        median(&ours),
        median(&official),
        ratio(&ours, &official),
        ratio(&ours, &again)
    );
}

fn run_ours(workload: &Workload, duration_ms: usize) -> Result<Figures, AnyError> {
    let mut command = Command::new(env::current_exe()?);
    command.arg("--ours");
    run(command, workload, duration_ms, workload.our_target)
}

/// Runs one side in a process of its own and reads its figures.
fn run(
    mut command: Command,
    workload: &Workload,
    duration_ms: usize,
    target: &str,
) -> Result<Figures, AnyError> {
    let logs = tempfile::tempdir()?;
    let output = command
        .args([
            workload.scenario,
            workload.answers,
            &duration_ms.to_string(),
            target,
            "8",
        ])
        .arg(logs.path())
        .output()?;
    if !output.status.success() {
        return Err(format!("{}: {}", workload.name, String::from_utf8_lossy(&output.stderr)).into());
    }
    let output = String::from_utf8(output.stdout)?;
    let mut figures = Figures::new();
    for word in output.split_ascii_whitespace() {
        if let Some((name, value)) = word.split_once('=') {
            figures.insert(name.to_owned(), value.parse()?);
        }
    }
    let summary = std::fs::read_to_string(logs.path().join("mlperf_log_summary.txt"))?;
    for percentile in LISTED_PERCENTILES {
        let label = format!("{} percentile latency (ns)", percentile.name);
        let line = summary
            .lines()
            .find(|line| line.starts_with(&label))
            .ok_or("a summary without percentiles")?;
        let value = line.rsplit(':').next().unwrap_or_default().trim();
        figures.insert(
            format!("latency_p{}_ns", percentile.fraction * 100.0),
            value.parse()?,
        );
    }
    Ok(figures)
}
