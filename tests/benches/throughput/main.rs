//! Measures how fast a large log gets from a device to the coordinator's disk, beside `scp` and a bare mosquitto pipeline.
//!
//! `cargo bench -p regatta-tests --bench throughput`. Each round runs every candidate in turn on the same file and file system.
//! `REGATTA_BENCH_MIB` (1024), `REGATTA_BENCH_ROUNDS` (3) and `REGATTA_BENCH_DIR` (the system's temporary directory) set size,
//! number and place. It needs Debian's openssh-server and, as root, iproute2, and reports what it omits without them.

mod memory;
mod ours;
mod pipeline;
mod place;
mod scp;

use std::{env, error::Error, path::Path, time::Instant};

use ours::Delivery;
use pipeline::Pipeline;
use place::{LINE, Place};
use regatta_tests::{
    build_release_binaries,
    statistics::{median, ratio},
    write_accuracy_log,
};
use scp::Sshd;

type AnyError = Box<dyn Error>;

fn main() -> Result<(), AnyError> {
    let arguments: Vec<String> = env::args().collect();
    if let Some(played) = pipeline::play(&arguments) {
        return played;
    }
    // `cargo bench` says so; test runners that look into every target do not.
    if !env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let number = |name: &str, default: u64| {
        let setting = env::var(name).ok().and_then(|value| value.parse().ok());
        setting.unwrap_or(default)
    };
    let (mib, rounds) = (
        number("REGATTA_BENCH_MIB", 1024),
        number("REGATTA_BENCH_ROUNDS", 3),
    );
    let parent = env::var_os("REGATTA_BENCH_DIR").map_or_else(env::temp_dir, Into::into);
    build_release_binaries();
    let directory = tempfile::tempdir_in(&parent)?;
    let log = directory.path().join("the.log");
    write_accuracy_log(&log, mib << 20)?;
    // Every candidate reads it from memory.
    let hash_seconds = seconds(|| ours::sha256(&log).map(drop))?;
    println!("{mib} MiB, {rounds} rounds; medians, ratios with 95 % bootstrap intervals\n");
    on_loopback(&log, directory.path(), mib, rounds, hash_seconds)?;
    match Place::line()? {
        Some(line) => on_the_line(&log, directory.path(), mib, rounds, &line),
        None => {
            println!("\nleft out: the shaped line (network namespaces want root and iproute2)");
            Ok(())
        }
    }
}

fn on_loopback(
    log: &Path,
    directory: &Path,
    mib: u64,
    rounds: u64,
    hash_seconds: f64,
) -> Result<(), AnyError> {
    let place = Place::Loopback;
    let sshd = Path::new("/usr/sbin/sshd")
        .exists()
        .then(|| Sshd::start(directory, &place));
    let sshd = sshd.transpose()?;
    let pipeline = Pipeline::start(directory)?;
    let (mut ours, mut plain, mut scp, mut parts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // Each round begins with another candidate, so that dirty pages and free memory of one affect all of them equally.
    for turn in (0..rounds).flat_map(|round| (0..4).map(move |turn| (round + turn) % 4)) {
        match (turn, &sshd, &pipeline) {
            (0, ..) => ours.push(ours::deliver(log, directory, &place)?),
            (1, ..) => plain.push(ours::deliver_plain(log, directory)?),
            (2, Some(sshd), _) => scp.push(sshd.copy(log)?),
            (3, _, Some(pipeline)) => parts.push(pipeline.deliver(log)?),
            _ => {}
        }
    }
    let our_rate = rates(mib, ours.iter().map(|delivery| delivery.seconds));
    println!("| on loopback | MB/s | ours / this |");
    println!("|---|---|---|");
    println!("| ours: TLS 1.3, embedded broker | {:.0} | |", median(&our_rate));
    let without_tls = plain.iter().map(|delivery| delivery.seconds).collect();
    for (name, package, seconds) in [
        ("ours in plain TCP, embedded broker", "nothing", without_tls),
        ("`scp`, then `sync` of the copy", "openssh-server", scp),
        (
            "mosquitto with TLS 1.3, subscriber writes, hashes and fsyncs",
            "mosquitto",
            parts,
        ),
    ] {
        let rate = rates(mib, seconds.into_iter());
        if rate.is_empty() {
            println!("| left out: {name} (Debian: {package}) | | |");
        } else {
            println!("| {name} | {:.0} | {} |", median(&rate), ratio(&our_rate, &rate));
        }
    }
    print_shares(&ours, &plain, hash_seconds);
    Ok(())
}

/// Prints the processor time of a delivery by its parts. The share of TLS is the difference to the same delivery over plain TCP.
fn print_shares(ours: &[Delivery], plain: &[Delivery], hash_seconds: f64) {
    let median_of = |deliveries: &[Delivery], figure: fn(&Delivery) -> f64| {
        median(&deliveries.iter().map(figure).collect::<Vec<_>>())
    };
    let of = |figure| median_of(ours, figure);
    let (agent, coordinator) = (of(|d| d.agent_cpu), of(|d| d.coordinator_cpu));
    let (seconds, cpu) = (of(|d| d.seconds), agent + coordinator);
    let (plain_agent, plain_coordinator) = (
        median_of(plain, |d| d.agent_cpu),
        median_of(plain, |d| d.coordinator_cpu),
    );
    let tls = cpu - plain_agent - plain_coordinator;
    println!("\n| of one delivery over TLS | value | share |");
    println!("|---|---|---|");
    println!("| wall time | {seconds:.2} s | |");
    println!(
        "| the coordinator's disk at work flushing | {:.2} s | {:.0} % of the time |",
        of(|d| d.flushing),
        100.0 * of(|d| d.flushing) / seconds
    );
    println!("| processor time, agent (in plain TCP) | {agent:.2} s ({plain_agent:.2} s) | |");
    println!(
        "| processor time, coordinator (in plain TCP) | {coordinator:.2} s ({plain_coordinator:.2} s) | |"
    );
    println!(
        "| of these, hashing on both sides (SHA-256 of the file, twice) | {:.2} s | {:.0} % of the processor time |",
        2.0 * hash_seconds,
        200.0 * hash_seconds / cpu
    );
    println!(
        "| of these, TLS on both sides (what plain TCP does without) | {tls:.2} s | {:.0} % of the processor time |",
        100.0 * tls / cpu
    );
    let peak = |figure: fn(&Delivery) -> f64| ours.iter().map(figure).fold(0.0, f64::max);
    println!("| agent's peak RSS | {:.1} MiB | |", peak(|d| d.agent_peak_mib));
    println!(
        "| coordinator's peak RSS | {:.1} MiB | |",
        peak(|d| d.coordinator_peak_mib)
    );
}

fn on_the_line(log: &Path, directory: &Path, mib: u64, rounds: u64, line: &Place) -> Result<(), AnyError> {
    let deliveries = (0..rounds).map(|_| ours::deliver(log, directory, line));
    let deliveries = deliveries.collect::<Result<Vec<_>, _>>()?;
    let seconds = median(&deliveries.iter().map(|d| d.seconds).collect::<Vec<_>>());
    let on_wire = median(&deliveries.iter().map(|d| d.line_bytes as f64).collect::<Vec<_>>());
    let peak = deliveries.iter().map(|d| d.agent_peak_mib).fold(0.0, f64::max);
    let share = |bytes: f64| 100.0 * bytes * 8.0 / seconds / LINE as f64;
    println!("\n| on a line of 1 Gbit/s (veth, tc tbf) | value |");
    println!("|---|---|");
    println!("| wall time | {seconds:.2} s |");
    println!(
        "| the line's use, by the shaper's counter | {:.1} % |",
        share(on_wire)
    );
    println!("| log bytes alone | {:.1} % |", share((mib << 20) as f64));
    println!("| agent's peak RSS | {peak:.1} MiB |");
    Ok(())
}

fn rates(mib: u64, seconds: impl Iterator<Item = f64>) -> Vec<f64> {
    seconds
        .map(|seconds| (mib << 20) as f64 / 1e6 / seconds)
        .collect()
}

fn seconds(work: impl FnOnce() -> Result<(), AnyError>) -> Result<f64, AnyError> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed().as_secs_f64())
}
