//! Checks for a machine with an NVIDIA GPU, which `tests/gpu/build.sh` packs into one archive: the layer over CUDA's driver, then TensorRT, latency
//! and overhead. Each check runs in a separate process, so that a crash or hang of the driver only fails one check.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool")]

mod check;
mod claims;
mod driver;
mod engine;
mod fakes;
mod outcome;
mod probe;
mod report;
mod runner;
mod subprocess;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use self::{
    check::CHECKS,
    fakes::Fakes,
    outcome::{Kit, Outcome},
    report::Report,
};

/// Check CUDA's driver and TensorRT on this machine
///
/// Exit codes: 0 all checks pass, 1 not all, 2 wrong use, 3 the machine cannot run them.
#[derive(Parser)]
#[command(name = "gpu-kit", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the checks, print a table and write a report
    Run(Run),
    /// List the checks
    List,
    /// Read the driver's facts in this process; `run` starts it
    #[command(hide = true)]
    Probe {
        #[arg(long)]
        outcome: PathBuf,
    },
    /// Run one check in this process; `run` starts it
    #[command(hide = true)]
    Check {
        key: String,
        #[arg(long)]
        kit: PathBuf,
        #[arg(long)]
        outcome: PathBuf,
    },
}

#[derive(clap::Args)]
struct Run {
    /// Directory of TensorRT's libraries; without it only the driver is checked
    #[arg(long, value_name = "DIR")]
    tensorrt: Option<PathBuf>,
    /// Directory for the report
    #[arg(long, value_name = "DIR", default_value = "gpu-kit-report")]
    out: PathBuf,
    /// Check the kit itself over fakes of the driver and of TensorRT; proves nothing
    #[arg(long)]
    fakes: bool,
    /// The published ResNet50 in ONNX, instead of a network of its shape with random weights
    #[arg(long, value_name = "FILE")]
    resnet50: Option<PathBuf>,
    /// A library with TensorRT plug-ins to load
    #[arg(long, value_name = "FILE")]
    plugins: Option<PathBuf>,
    /// Run only checks whose key contains this text; repeatable
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(options) => run(&options),
        Command::List => {
            for check in CHECKS {
                println!("{:<24} {}", check.key, check.title);
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Probe { outcome } => probe::write(&outcome).map(|()| ExitCode::SUCCESS),
        Command::Check { key, kit, outcome } => run_one(&key, &kit, &outcome).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| {
        eprintln!("gpu-kit: {error:#}");
        ExitCode::from(3)
    })
}

fn usage(message: &str) -> ExitCode {
    eprintln!("gpu-kit: {message}");
    ExitCode::from(2)
}

/// Runs the selected checks and writes the report.
fn run(options: &Run) -> anyhow::Result<ExitCode> {
    if options.fakes && options.tensorrt.is_some() {
        return Ok(usage("--fakes brings its own TensorRT: leave out --tensorrt"));
    }
    let named = [&options.tensorrt, &options.resnet50, &options.plugins];
    if let Some(missing) = named.into_iter().flatten().find(|path| !path.exists()) {
        return Ok(usage(&format!("{} does not exist", missing.display())));
    }
    let is_chosen =
        |key: &str| options.only.is_empty() || options.only.iter().any(|text| key.contains(text.as_str()));
    let chosen: Vec<_> = CHECKS.iter().filter(|check| is_chosen(check.key)).collect();
    if chosen.is_empty() {
        return Ok(usage(
            "no key of a check contains this text; `gpu-kit list` shows all checks",
        ));
    }
    let work = tempfile::tempdir().context("a temporary directory cannot be made")?;
    let fakes = options.fakes.then(|| Fakes::install(work.path())).transpose()?;
    let kit = kit(options, work.path(), fakes.as_ref())?;
    let driver = probe::probe(&kit.program, fakes.as_ref(), work.path())?;
    let mut report = Report::begin(&kit, driver);
    report.print_head();
    for check in chosen {
        let finished = runner::run(check, &kit, fakes.as_ref(), work.path())?;
        report.add(check, finished);
    }
    for path in report.write(&options.out)? {
        report.line(&format!("wrote {}", path.display()));
    }
    Ok(if report.all_passed() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Collects the parts of the archive and the user's files for the processes of the checks.
fn kit(options: &Run, work: &Path, fakes: Option<&Fakes>) -> anyhow::Result<Kit> {
    let absolute = |path: &Option<PathBuf>| path.as_ref().map(fs::canonicalize).transpose();
    let program = std::env::current_exe()?;
    let bin = program.parent().context("the program is in a directory")?;
    let root = bin.parent().unwrap_or(bin);
    let tensorrt = match fakes {
        Some(fakes) => Some(fakes.libraries()),
        None => absolute(&options.tensorrt)?,
    };
    let agent = bin.join("regatta-agent");
    anyhow::ensure!(
        tensorrt.is_none() || agent.exists(),
        "{} is missing: unpack the archive again",
        agent.display()
    );
    Ok(Kit {
        shims: fakes.map_or_else(|| root.join("shims"), Fakes::shims),
        speech: root.join("speech"),
        plugins: match fakes {
            Some(fakes) => Some(fakes.plugin()),
            None => absolute(&options.plugins)?,
        },
        resnet50: absolute(&options.resnet50)?,
        has_fakes: options.fakes,
        work: work.to_owned(),
        program,
        agent,
        tensorrt,
    })
}

/// Runs one check, and writes its outcome to a file, because a driver may print to standard output.
fn run_one(key: &str, kit: &Path, outcome: &Path) -> anyhow::Result<()> {
    let kit: Kit = serde_json::from_slice(&fs::read(kit)?)?;
    let check = CHECKS.iter().find(|check| check.key == key);
    let check = check.with_context(|| format!("there is no check {key}"))?;
    let result = (check.function)(&kit).unwrap_or_else(|error| Outcome::failed(format!("{error:#}")));
    fs::write(outcome, serde_json::to_vec(&result)?)?;
    Ok(())
}
