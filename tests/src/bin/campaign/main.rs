//! The fault campaign: real coordinators, agents and brokers in network namespaces, random faults from a seed, and a check of
//! every byte. It needs root and leaves nothing behind, however it ends.
//!
//! `cargo run -p regatta-tests --bin campaign -- --faults 60 --seed 1 --broker embedded`
//!
//! The campaign is split into labs, each with its own seed, namespaces, disks and brokers, several at a time. How faults
//! are made is described in `docs/testing.md`.

#![expect(
    clippy::print_stderr,
    reason = "a command line tool: progress goes to standard error"
)]

mod campaign;
mod checker;
#[cfg(test)]
mod checker_tests;
mod daemon;
mod disk;
mod inject;
mod keys;
mod lab;
mod mutation;
mod network;
mod plan;
mod proxy;
mod report;
mod verdict;
mod write_log;

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Instant,
};

use anyhow::{Context as _, bail};
use clap::{Parser, ValueEnum};
use regatta_tests::{Broker, fault_labs, rng, shell};

use crate::{
    lab::Programs,
    report::{LabReport, Totals, table},
    rng::Rng,
};

/// The required tools besides Regatta, each with its Debian package.
const NEEDED: [(&str, &str); 9] = [
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("nft", "nftables"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("mount", "mount"),
    ("timeout", "coreutils"),
    ("bindfs", "bindfs"),
    ("mosquitto", "mosquitto"),
];

/// Faults against real processes, and whether anything was lost.
#[derive(Debug, Clone, Parser)]
#[command(name = "campaign")]
struct Cli {
    /// Faults in all
    #[arg(long, default_value_t = 60)]
    faults: usize,
    /// The same seed plans the same faults; a new one by default
    #[arg(long)]
    seed: Option<u64>,
    /// The broker of the labs
    #[arg(long, value_enum, default_value_t = Brokers::Both)]
    broker: Brokers,
    /// Faults of one lab
    #[arg(long, default_value_t = 50)]
    faults_per_lab: usize,
    /// Labs at the same time
    #[arg(long, default_value_t = 2)]
    parallel: usize,
    /// Write the table of the results to this Markdown file
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// The directory for copies of a failed lab's logs and disks
    #[arg(long, value_name = "DIR", default_value = "target/campaign")]
    keep: PathBuf,
    /// Copy those of good labs, too
    #[arg(long)]
    keep_good: bool,
    /// The agent of another build
    #[arg(long, value_name = "PROGRAM")]
    agent: Option<PathBuf>,
    /// The coordinator of another build
    #[arg(long, value_name = "PROGRAM")]
    coordinator: Option<PathBuf>,
    /// Repeat the lab of this seed, which is in the lab's name
    #[arg(long, requires = "seed")]
    one_lab: bool,
    /// Run one lab; the campaign starts itself so, in separate namespaces
    #[arg(long, hide = true)]
    lab: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Brokers {
    Embedded,
    Mosquitto,
    /// In turn
    Both,
}

/// A lab to be run.
#[derive(Debug, Clone)]
struct Order {
    broker: Broker,
    seed: u64,
    faults: usize,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = if cli.lab {
        run_lab(&cli)
    } else {
        run_campaign(&cli)
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("campaign: {error:#}");
            ExitCode::from(3)
        }
    }
}

impl Cli {
    fn programs(&self) -> anyhow::Result<Programs> {
        let absolute = |path: &Option<PathBuf>, own: fn() -> PathBuf| {
            let path = path.clone().unwrap_or_else(own);
            std::path::absolute(&path).with_context(|| path.display().to_string())
        };
        Ok(Programs {
            agent: absolute(&self.agent, regatta_tests::agent)?,
            coordinator: absolute(&self.coordinator, regatta_tests::regatta)?,
        })
    }
}

fn run_lab(cli: &Cli) -> anyhow::Result<ExitCode> {
    let broker = match cli.broker {
        Brokers::Mosquitto => Broker::Mosquitto,
        Brokers::Embedded | Brokers::Both => Broker::Embedded,
    };
    campaign::run(
        broker,
        cli.programs()?,
        cli.seed.unwrap_or(0),
        cli.faults,
        &cli.keep,
        cli.keep_good,
    )?;
    Ok(ExitCode::SUCCESS)
}

fn run_campaign(cli: &Cli) -> anyhow::Result<ExitCode> {
    if let Err(missing) = fit() {
        if std::env::var_os("CI").is_some_and(|ci| ci == "true") {
            bail!("CI leaves nothing out: {missing:#}");
        }
        println!("left out: the fault campaign: {missing:#}");
        return Ok(ExitCode::SUCCESS);
    }
    let seed = cli.seed.unwrap_or_else(fault_labs::new_seed);
    let orders = orders(cli, seed);
    println!(
        "campaign: {} faults in {} labs, seed {seed}",
        cli.faults,
        orders.len()
    );
    let begin = Instant::now();
    let keep = std::path::absolute(&cli.keep)?.join(seed.to_string());
    let reports = run_labs(orders, cli, &keep)?;
    let (mut embedded, mut mosquitto, mut wrong) = (Totals::default(), Totals::default(), 0);
    for (order, report) in &reports {
        match order.broker {
            Broker::Embedded => embedded.add(&report.totals),
            Broker::Mosquitto => mosquitto.add(&report.totals),
        }
        wrong += report.wrong.len();
    }
    let text = format!(
        "{}: {} faults, seed {seed}, {} labs, {:.0} s\n\n{}",
        today()?,
        embedded.faults() + mosquitto.faults(),
        reports.len(),
        begin.elapsed().as_secs_f64(),
        table(&embedded, &mosquitto, wrong)
    );
    println!("\n{text}");
    if let Some(path) = &cli.table {
        write_table(path, &text)?;
    }
    if wrong == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    println!("logs and disks of the failed labs: {}", keep.display());
    Ok(ExitCode::FAILURE)
}

/// Checks that this machine can run a campaign.
fn fit() -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("it needs root, for namespaces and mounts");
    }
    for (tool, package) in NEEDED {
        shell::find(tool).with_context(|| format!("{tool} is not installed (Debian: {package})"))?;
    }
    shell::libfaketime().context("libfaketime is not installed (Debian: libfaketime)")?;
    Ok(())
}

fn orders(cli: &Cli, seed: u64) -> Vec<Order> {
    let brokers: &[Broker] = match cli.broker {
        Brokers::Embedded => &[Broker::Embedded],
        Brokers::Mosquitto => &[Broker::Mosquitto],
        Brokers::Both => &[Broker::Embedded, Broker::Mosquitto],
    };
    if cli.one_lab {
        return vec![Order {
            broker: brokers[0],
            seed,
            faults: cli.faults,
        }];
    }
    let labs = cli.faults.div_ceil(cli.faults_per_lab.max(1)).max(brokers.len());
    let mut seeds = Rng::new(seed);
    (0..labs)
        .map(|number| Order {
            broker: brokers[number % brokers.len()],
            seed: seeds.bits() >> 32,
            // As evenly as possible, and no more faults than requested.
            faults: cli.faults * (number + 1) / labs - cli.faults * number / labs,
        })
        .collect()
}

impl Order {
    fn name(&self) -> String {
        format!("{}-{}", self.broker_word(), self.seed)
    }

    const fn broker_word(&self) -> &'static str {
        match self.broker {
            Broker::Embedded => "embedded",
            Broker::Mosquitto => "mosquitto",
        }
    }
}

/// Runs labs, several at a time, and prints the result of each.
fn run_labs(orders: Vec<Order>, cli: &Cli, keep: &Path) -> anyhow::Result<Vec<(Order, LabReport)>> {
    let total = orders.len();
    let mut reports = Vec::new();
    let programs = cli.programs()?;
    let start = |order: &Order| start_lab(order, &programs, &keep.join(order.name()), cli.keep_good);
    fault_labs::in_parallel(orders, cli.parallel, start, |order, report| {
        let report = report.with_context(|| order.name())?;
        let (totals, number) = (&report.totals, reports.len() + 1);
        eprintln!(
            "lab {number}/{total} {}: {} faults in {:.0} s, {} wrong",
            order.name(),
            totals.faults(),
            totals.seconds,
            report.wrong.len()
        );
        for what in &report.wrong {
            eprintln!("  WRONG: {what}");
        }
        reports.push((order, report));
        Ok(())
    })?;
    Ok(reports)
}

/// Starts this program again as one lab, alone in its namespaces.
fn start_lab(order: &Order, programs: &Programs, keep: &Path, keep_good: bool) -> anyhow::Result<LabReport> {
    let (seed, faults) = (order.seed.to_string(), order.faults.to_string());
    let mut arguments: Vec<&OsStr> = ["--lab", "--broker", order.broker_word()].map(OsStr::new).into();
    arguments.extend(["--seed", &seed, "--faults", &faults, "--keep"].map(OsStr::new));
    arguments.push(keep.as_os_str());
    arguments.extend([OsStr::new("--agent"), programs.agent.as_os_str()]);
    arguments.extend([OsStr::new("--coordinator"), programs.coordinator.as_os_str()]);
    arguments.extend(keep_good.then_some(OsStr::new("--keep-good")));
    fault_labs::start_alone(&arguments)
}

fn today() -> anyhow::Result<String> {
    let output = shell::succeed(Command::new("date").args(["--utc", "+%Y-%m-%d"]))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Writes the table to a file in a new directory.
fn write_table(path: &Path, table: &str) -> anyhow::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    fs::write(path, table).with_context(|| path.display().to_string())
}
