//! The fault campaign of power sessions: `regatta power run` with the official server and client, a simulated PTDaemon, a real agent and
//! sshds, one fault per session after a seed, and a check afterwards. It needs root and leaves nothing behind.
//!
//! `cargo run -p regatta-tests --bin power-campaign -- --faults 6 --seed 1`
//!
//! The official programs wait for 40 s in each session. In one lab of eight they do; in the others their Python sleeps for 2 s instead of 10.
//! Several labs run at the same time, each with its own namespaces. `docs/testing.md` describes the faults.

#![expect(
    clippy::print_stderr,
    reason = "a command line tool: progress goes to standard error"
)]

mod inject;
mod lab;
mod plan;
mod report;
mod session;
mod verdict;

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Instant,
};

use anyhow::{Context as _, bail};
use clap::Parser;
use regatta_tests::{fault_labs, power_dev, rng::Rng, shell};

use crate::{
    lab::{PowerLab, Settle},
    report::LabReport,
};

/// The tools besides Regatta, each with its Debian package.
const NEEDED: [(&str, &str); 7] = [
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("unshare", "util-linux"),
    ("mount", "mount"),
    ("sshd", "openssh-server"),
    ("ssh-keygen", "openssh-client"),
    ("strip", "binutils"),
];

/// One lab of so many has the official programs' own waits.
const OFFICIAL_WAITS_EVERY: usize = 8;

/// Faults in power sessions, and whether one that failed is taken for a good one.
#[derive(Debug, Clone, Parser)]
#[command(name = "power-campaign")]
struct Cli {
    /// Faults in all, one per session
    #[arg(long, default_value_t = 6)]
    faults: usize,
    /// The same seed plans the same faults; a new one by default
    #[arg(long)]
    seed: Option<u64>,
    /// Faults of one lab, one after the other
    #[arg(long, default_value_t = 8)]
    faults_per_lab: usize,
    /// Labs at the same time
    #[arg(long, default_value_t = 6)]
    parallel: usize,
    /// Make only the kinds of fault whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Write the table of the results to this Markdown file
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Where the sessions of a lab with violations are copied to
    #[arg(long, value_name = "DIR", default_value = "target/power-campaign")]
    keep: PathBuf,
    /// Run one lab of this number below a directory; the campaign starts itself so
    #[arg(long, hide = true, num_args = 2, value_names = ["DIR", "NUMBER"])]
    lab: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.lab.as_slice() {
        [root, number] => run_lab(&cli, root, number),
        _ => run_campaign(&cli),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("power-campaign: {error:#}");
            ExitCode::from(3)
        }
    }
}

fn run_campaign(cli: &Cli) -> anyhow::Result<ExitCode> {
    if let Err(missing) = fit() {
        if std::env::var_os("CI").is_some_and(|ci| ci == "true") {
            bail!("CI leaves nothing out: {missing:#}");
        }
        println!("left out: the fault campaign of power sessions: {missing:#}");
        return Ok(ExitCode::SUCCESS);
    }
    if power_dev().is_none() {
        return Ok(ExitCode::SUCCESS);
    }
    let seed = cli.seed.unwrap_or_else(fault_labs::new_seed);
    let root = tempfile::tempdir()?;
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755))?;
    shell::succeed(
        Command::new("strip")
            .arg("-o")
            .arg(root.path().join("regatta"))
            .arg(regatta_tests::regatta()),
    )?;
    let labs = cli.faults.div_ceil(cli.faults_per_lab.max(1));
    println!(
        "power-campaign: {} faults in {labs} labs, seed {seed}",
        cli.faults
    );
    let begun = Instant::now();
    let keep = std::path::absolute(&cli.keep)?.join(seed.to_string());
    let mut all = LabReport::default();
    let start = |number: &usize| start_lab(cli, seed, *number, root.path(), &keep);
    fault_labs::in_parallel((0..labs).collect(), cli.parallel, start, |number, report| {
        let report = report.unwrap_or_else(|error| LabReport {
            wrong: vec![format!("lab {number} could not go on: {error:#}")],
            ..LabReport::default()
        });
        eprintln!(
            "lab {number}: {} faults, {} wrong, {:.0} s so far",
            report.faults(),
            report.wrong.len(),
            begun.elapsed().as_secs_f64()
        );
        for what in &report.wrong {
            eprintln!("  WRONG: {what}");
        }
        all.add(&report);
        Ok(())
    })?;
    let text = format!(
        "{} faults, seed {seed}, {labs} labs, {:.0} s\n\n{}",
        all.faults(),
        begun.elapsed().as_secs_f64(),
        all.table()
    );
    println!("\n{text}");
    if let Some(path) = &cli.table {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    if all.wrong.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("sessions of the labs with violations: {}", keep.display());
    Ok(ExitCode::FAILURE)
}

/// Checks that this machine can run a campaign.
fn fit() -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("it needs root, for namespaces, mounts and machines with users of their own");
    }
    for (tool, package) in NEEDED {
        shell::find(tool).with_context(|| format!("{tool} is not installed (Debian: {package})"))?;
    }
    Ok(())
}

fn start_lab(cli: &Cli, seed: u64, number: usize, root: &Path, keep: &Path) -> anyhow::Result<LabReport> {
    let text = [
        seed.to_string(),
        cli.faults.to_string(),
        cli.faults_per_lab.to_string(),
        number.to_string(),
    ];
    let mut arguments: Vec<&OsStr> = vec!["--lab".as_ref(), root.as_os_str(), text[3].as_ref()];
    arguments.extend([
        "--seed".as_ref(),
        text[0].as_ref(),
        "--faults".as_ref(),
        text[1].as_ref(),
    ] as [&OsStr; 4]);
    arguments.extend([
        "--faults-per-lab".as_ref(),
        text[2].as_ref(),
        "--keep".as_ref(),
        keep.as_os_str(),
    ] as [&OsStr; 4]);
    if let Some(words) = &cli.only {
        arguments.extend(["--only".as_ref(), words.as_ref()] as [&OsStr; 2]);
    }
    fault_labs::start_alone(&arguments)
}

/// Runs one lab and prints its report as JSON. It is the first process of its own namespaces, so every process ends with it.
fn run_lab(cli: &Cli, root: &Path, number: &Path) -> anyhow::Result<ExitCode> {
    fault_labs::end_with_the_parent();
    shell::run("mount -t tmpfs -o mode=1777 none /dev/shm")?;
    let number: usize = number.to_str().unwrap_or_default().parse()?;
    let all = plan::plan(
        cli.faults,
        cli.only.as_deref(),
        &mut Rng::new(cli.seed.unwrap_or(0)),
    )?;
    let mine = all
        .into_iter()
        .skip(number * cli.faults_per_lab)
        .take(cli.faults_per_lab);
    let place = root.join(format!("lab-{number}"));
    fs::create_dir_all(&place)?;
    let settle = match number % OFFICIAL_WAITS_EVERY {
        0 => Settle::Official,
        _ => Settle::Short,
    };
    let mut lab = PowerLab::set_up(&place, &root.join("regatta"), settle)?;
    let mut report = LabReport::default();
    let mut kept = verdict::Hashes::new();
    for (at, fault) in mine.enumerate() {
        let outcome = lab.make(fault, at)?;
        let mut wrong = lab.judge(&outcome)?;
        // Nothing of the sessions before may be lost or changed.
        report.files += kept.len() as u64;
        let hashes = lab.hashes()?;
        let changed = kept.iter().find(|(path, hash)| hashes.get(*path) != Some(*hash));
        wrong
            .extend(changed.map(|(path, _)| format!("{} of an earlier session has changed", path.display())));
        kept = hashes;
        report.count(&outcome);
        eprintln!(
            "lab {number}: {} in step {:?}: {} after {:.0} s ({:.0} s from the fault)",
            fault.kind,
            outcome.injected,
            outcome.word(),
            outcome.whole.as_secs_f64(),
            outcome.until_found.as_secs_f64()
        );
        let about = format!(
            "lab {number}, session {at}, {} in step {:?}",
            fault.kind, outcome.injected
        );
        report
            .wrong
            .extend(wrong.into_iter().map(|what| format!("{about}: {what}")));
    }
    if !report.wrong.is_empty() {
        lab.keep(&cli.keep.join(format!("lab-{number}")))?;
    }
    println!("{}", serde_json::to_string(&report)?);
    Ok(ExitCode::SUCCESS)
}
