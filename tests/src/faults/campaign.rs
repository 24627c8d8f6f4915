//! The course of a fault campaign: it divides into labs, each lab works through its plan and is judged, and a table is printed. It needs root
//! and leaves nothing behind, however it ends, because every process and mount ends with the namespaces of its lab.

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context as _, bail};
use clap::Parser;

use super::{
    LabOrder, Options, Report, labs,
    options::{Sizes, orders},
};
use crate::shell;

/// The directory of all files of a lab, on a file system of its own. It is not below `/run`, where machines of a lab mount their own.
pub const LAB_ROOT: &str = "/mnt/lab";

/// A fault campaign, as its command line describes it.
pub trait FaultCampaign: Parser + Sync {
    /// What a lab does one after the other: injects some faults, or makes something under a fault.
    type Case;
    /// A lab of the campaign.
    type Lab: FaultLab<Case = Self::Case>;

    /// The name of the command.
    const NAME: &'static str;
    /// The required tools besides Regatta, each with its Debian package.
    const TOOLS: &'static [(&'static str, &'static str)];
    /// The columns of the table of faults.
    const COLUMNS: &'static [&'static str];
    /// The sizes that its options do not state.
    const SIZES: Sizes;

    /// Returns the common options.
    fn options(&self) -> &Options;

    /// Returns the variants that its labs have in turn. A variant may occur more than once.
    fn variants(&self) -> Vec<&'static str>;

    /// Returns the minimum number of labs.
    fn min_labs(&self) -> usize {
        1
    }

    /// Checks what this machine needs besides root and the tools.
    ///
    /// # Errors
    /// Returns an error if something is missing.
    fn check_machine(&self) -> anyhow::Result<()>;

    /// Plans the cases of a lab. Equal orders have equal plans.
    ///
    /// # Errors
    /// Returns an error when the command line allows no plan.
    fn plan(&self, order: &LabOrder) -> anyhow::Result<Vec<Self::Case>>;

    /// Sets up a lab below [`LAB_ROOT`].
    ///
    /// # Errors
    /// Returns an error when a part cannot be created.
    fn set_up(&self, order: &LabOrder, report: &mut Report) -> anyhow::Result<Self::Lab>;
}

/// A lab with real processes.
pub trait FaultLab {
    /// As in [`FaultCampaign::Case`].
    type Case;

    /// Runs a case, and reports its faults and violations. Returns cases that the lab must try after the others.
    ///
    /// # Errors
    /// Returns an error when the lab itself fails.
    fn run_case(&mut self, case: Self::Case, report: &mut Report) -> anyhow::Result<Vec<Self::Case>>;

    /// Checks what must be true after all cases.
    ///
    /// # Errors
    /// Returns an error when the lab itself fails.
    fn judge(&mut self, report: &mut Report) -> anyhow::Result<()>;

    /// Returns the files and directories that explain a violation.
    fn traces(&self) -> Vec<PathBuf>;
}

/// Runs the campaign of the command line, or one of its labs.
#[must_use]
pub fn run_campaign<C: FaultCampaign>() -> ExitCode {
    let campaign = C::parse();
    let outcome = match *campaign.options().in_namespaces {
        [seed, number] => run_lab(&campaign, seed, number),
        _ => run_labs(&campaign),
    };
    outcome.unwrap_or_else(|error| {
        tell(&format!("{}: {error:#}", C::NAME));
        ExitCode::from(3)
    })
}

#[expect(
    clippy::print_stderr,
    reason = "a command line tool: progress goes to standard error"
)]
fn tell(line: &str) {
    eprintln!("{line}");
}

fn run_labs<C: FaultCampaign>(campaign: &C) -> anyhow::Result<ExitCode> {
    if let Err(missing) = check_machine(campaign) {
        if std::env::var_os("CI").is_some_and(|ci| ci == "true") {
            bail!("CI must not skip it: {missing:#}");
        }
        println!("skipped: {}: {missing:#}", C::NAME);
        return Ok(ExitCode::SUCCESS);
    }
    let options = campaign.options();
    let seed = options.seed.unwrap_or_else(labs::new_seed);
    let sizes = options.sizes(C::SIZES);
    let mut variants = campaign.variants();
    let mut chosen = orders(sizes, &variants, campaign.min_labs(), seed);
    variants.dedup();
    chosen.retain(|order| options.only_lab.is_none_or(|only| only == order.number));
    let faults: usize = chosen.iter().map(|order| order.faults).sum();
    let labs = chosen.len();
    println!("{}: {faults} faults in {labs} labs, seed {seed}", C::NAME);
    let begun = Instant::now();
    let mut all = Report::default();
    // A lab has the campaign's own arguments, so that it makes the same orders.
    let start = |order: &LabOrder| {
        let lab = [
            "--in-namespaces".to_owned(),
            seed.to_string(),
            order.number.to_string(),
        ];
        labs::start_alone::<Report>(std::env::args_os().skip(1).chain(lab.map(Into::into)))
    };
    labs::in_parallel(chosen, sizes.parallel, start, |order, report| {
        let name = order.name();
        let mut report = report.unwrap_or_else(|error| Report::of_failed_lab(&error));
        let (injected, wrong) = (report.injected(), report.wrong.len());
        let seconds = begun.elapsed().as_secs_f64();
        tell(&format!(
            "lab {name}: {injected} faults, {wrong} violations, {seconds:.0} s so far"
        ));
        for violation in &mut report.wrong {
            *violation = format!("lab {name}: {violation}");
            tell(&format!("  WRONG: {violation}"));
        }
        all.merge(report);
        Ok(())
    })?;
    let text = format!(
        "{} faults, seed {seed}, {labs} labs, {:.0} s\n\n{}",
        all.injected(),
        begun.elapsed().as_secs_f64(),
        all.tables(C::COLUMNS, &variants)
    );
    println!("\n{text}");
    if let Some(path) = &options.table {
        write_table(path, &text)?;
    }
    if all.wrong.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "logs and disks of the labs with violations: {}",
        keep::<C>(options, seed)?.display()
    );
    Ok(ExitCode::FAILURE)
}

fn check_machine<C: FaultCampaign>(campaign: &C) -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("it needs root, for namespaces and mounts");
    }
    for (tool, package) in C::TOOLS {
        shell::find(tool).with_context(|| format!("{tool} is not installed (Debian: {package})"))?;
    }
    campaign.check_machine()
}

/// Runs one lab and prints its report as JSON. It is the first process of its namespaces, so every process ends with it.
fn run_lab<C: FaultCampaign>(campaign: &C, seed: u64, number: u64) -> anyhow::Result<ExitCode> {
    labs::end_with_the_parent();
    mount_own_file_systems()?;
    let (begun, options) = (Instant::now(), campaign.options());
    let sizes = options.sizes(C::SIZES);
    let orders = orders(sizes, &campaign.variants(), campaign.min_labs(), seed);
    let order = usize::try_from(number).ok().and_then(|number| orders.get(number));
    let order = order.context("the campaign has no lab of this number")?;
    let plan = campaign.plan(order)?;
    let mut report = Report::of_lab(order.variant);
    let mut lab = campaign.set_up(order, &mut report)?;
    if let Err(error) = work_through(&mut lab, plan.into(), &mut report) {
        report.wrong.push(format!("the lab failed: {error:#}"));
    }
    if options.keep_good || !report.wrong.is_empty() {
        keep_traces(&lab, &report, &keep::<C>(options, seed)?.join(order.name()))?;
    }
    report.max("longest lab, s", begun.elapsed().as_secs_f64());
    println!("{}", serde_json::to_string(&report)?);
    Ok(ExitCode::SUCCESS)
}

fn work_through<L: FaultLab>(
    lab: &mut L,
    mut cases: VecDeque<L::Case>,
    report: &mut Report,
) -> anyhow::Result<()> {
    while let Some(case) = cases.pop_front() {
        cases.extend(lab.run_case(case, report)?);
    }
    lab.judge(report)
}

/// Mounts file systems that only this process and its children see.
fn mount_own_file_systems() -> anyhow::Result<()> {
    shell::run("ip link set lo up")?;
    for directory in ["/run", "/mnt"] {
        shell::run(&format!("mount -t tmpfs -o mode=755 none {directory}"))?;
    }
    shell::run("mount -t tmpfs -o mode=1777 none /dev/shm")?;
    for directory in ["/run/netns", LAB_ROOT] {
        fs::create_dir_all(directory).context(directory)?;
    }
    Ok(())
}

/// Returns the directory for copies of the campaign's labs.
fn keep<C: FaultCampaign>(options: &Options, seed: u64) -> anyhow::Result<PathBuf> {
    let directory = options.keep.clone();
    let directory = directory.unwrap_or_else(|| Path::new("target").join(C::NAME));
    Ok(std::path::absolute(directory)?.join(seed.to_string()))
}

fn keep_traces<L: FaultLab>(lab: &L, report: &Report, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    fs::write(to.join("wrong.txt"), report.wrong.join("\n") + "\n")?;
    for trace in lab.traces().iter().filter(|trace| trace.exists()) {
        shell::succeed(shell::command("cp")?.arg("-a").arg(trace).arg(to))?;
    }
    Ok(())
}

fn write_table(path: &Path, table: &str) -> anyhow::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    fs::write(path, table).with_context(|| path.display().to_string())
}
