//! `regatta benchmark prepare`: gets and makes all files that runs of benchmarks need. [`plan`](plan::plan) determines the missing steps from the
//! existing files, so a second call continues after an interruption, and does nothing when nothing is missing.

mod archive_check;
mod calibration;
mod execution;
mod exporter;
mod inventory;
mod needs;
mod offers;
mod plan;
mod report;
mod sample_files;
mod space;

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
};

use regatta_catalogue::catalogue::Catalogue;
use regatta_types::{ExitCode, benchmark::Benchmark};

use self::{
    execution::Execution,
    exporter::Exporter,
    inventory::Subject,
    offers::Offers,
    plan::{Facts, Plan, plan},
    report::{BenchmarkReport, Report, StepState},
};
use crate::{
    cli::Context,
    exit::{CommandResult, Failure},
};
use regatta_lab_store::{DeviceRow, Store, workspace::Workspace};
use regatta_lab_views::lookup;

/// The name of the lock in the scratch directory.
const LOCK: &str = ".prepare.lock";

/// Flags of `benchmark prepare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta benchmark prepare resnet50 --from ILSVRC2012_img_val.tar --for boat-1
      everything that the runs on boat-1 need: ImageNet, unpacked and preprocessed in the types of its system, and the network
  regatta benchmark prepare bert-99 rnnt --dry-run
      the missing steps, and the space that they need

The same command continues after an interruption. Files that need a registration are listed, and the exit code
is 1 while they are missing.")]
pub(in crate::cli) struct PrepareArgs {
    /// Benchmarks, or `all` for each that an engine can run
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// An archive, file or directory that cannot be fetched, for example ILSVRC2012_img_val.tar; repeatable
    #[arg(long, value_name = "ARCHIVE|DIR")]
    from: Vec<PathBuf>,
    /// Prepare the samples in the form that these devices need; comma-separated names, ids or labels
    /// [default: the samples of the benchmark's file]
    #[arg(long = "for", value_name = "DEVICE|LABEL", value_delimiter = ',')]
    devices: Vec<String>,
    /// The round whose scenarios are prepared [default: the newest]
    #[arg(long)]
    round: Option<String>,
    /// The Python that exports networks, with numpy and onnx [default: one that is installed into the workspace]
    #[arg(long, value_name = "FILE")]
    python: Option<PathBuf>,
    /// Show the steps and the space that they need, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &PrepareArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let configs = workspace.configs();
    let catalogue = Catalogue::read(Some(&configs)).map_err(Failure::usage)?;
    let chosen = chosen(&args.names, &catalogue)?;
    let devices = needs::devices(&args.devices, &store)?;
    let offers = Offers::open(&args.from, &catalogue.benchmarks())?;
    offers.expect_used(&chosen)?;
    let scratch = workspace.scratch();
    let _lock = match args.dry_run {
        true => None,
        false => Some(lock(&scratch)?),
    };
    let subjects = chosen.iter().map(|&benchmark| -> Result<Subject<'_>, Failure> {
        Ok(Subject {
            benchmark,
            needs: needs::needs(benchmark, args.round.as_deref(), &devices, &catalogue)?,
            offers: &offers,
            is_only: chosen.len() == 1,
            scratch: scratch.clone(),
        })
    });
    let preparation = Preparation {
        subjects: subjects.collect::<Result<_, _>>()?,
        devices,
        workspace: &workspace,
        store: &store,
    };
    let mut report = preparation.planned(args.dry_run)?;
    let ended = match args.dry_run {
        true => Ok(()),
        false => preparation.execute(&mut report, args, context),
    };
    context.print(&report.document(), || report.text())?;
    ended?;
    Ok(if report.is_complete() {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

/// Returns the benchmarks with these names, without duplicates.
fn chosen<'a>(names: &[String], catalogue: &'a Catalogue) -> Result<Vec<&'a Benchmark>, Failure> {
    let mut chosen: Vec<&Benchmark> = Vec::new();
    for name in names {
        // Every benchmark that an engine can run.
        let named = match name == lookup::ALL {
            true => computed(catalogue),
            false => vec![catalogue.benchmark(name).map_err(Failure::usage)?],
        };
        for benchmark in named {
            if chosen.iter().all(|known| known.name != benchmark.name) {
                chosen.push(benchmark);
            }
        }
    }
    Ok(chosen)
}

fn computed(catalogue: &Catalogue) -> Vec<&Benchmark> {
    let mut all = catalogue.benchmarks();
    all.retain(|benchmark| benchmark.model.has_engine() && benchmark.prep.is_some());
    all
}

/// Locks the scratch directory, because two preparations would write the same files.
fn lock(scratch: &Path) -> Result<File, Failure> {
    let path = scratch.join(LOCK);
    let unusable = |error| Failure::could_not(format!("cannot write {}: {error}", path.display()));
    fs::create_dir_all(scratch).map_err(unusable)?;
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Failure::could_not(format!(
            "another `regatta benchmark prepare` is running in {}",
            scratch.display()
        ))
        .hint("wait until it has ended")),
        Err(TryLockError::Error(error)) => Err(unusable(error)),
    }
}

struct Preparation<'a> {
    subjects: Vec<Subject<'a>>,
    devices: Vec<DeviceRow>,
    workspace: &'a Workspace,
    store: &'a Store,
}

impl Preparation<'_> {
    /// Plans every benchmark. Fails if the files would not fit.
    fn planned(&self, is_dry_run: bool) -> Result<Report, Failure> {
        let mut known = Vec::new();
        for subject in &self.subjects {
            known.push(subject.facts(self.workspace, self.store)?);
        }
        let mut met = BTreeSet::new();
        let benchmarks: Vec<BenchmarkReport> = self
            .subjects
            .iter()
            .zip(&known)
            .map(|(subject, facts)| benchmark_report(subject, facts, &mut met))
            .collect();
        let steps = benchmarks
            .iter()
            .flat_map(|benchmark| benchmark.steps.iter().map(|(step, _)| step));
        let scratch = self.workspace.scratch();
        let disks = space::needs(steps, &scratch, self.workspace)?;
        space::expect_fits_on(&self.devices, self.subjects.iter().zip(&known))?;
        if !is_dry_run {
            space::expect_fits(&disks)?;
        }
        Ok(Report {
            benchmarks,
            disks,
            is_dry_run,
            serves_assets: self.workspace.config().assets_for_devices().is_some(),
        })
    }

    /// Executes the steps in order, and stops at the first failure.
    fn execute(&self, report: &mut Report, args: &PrepareArgs, context: &Context) -> Result<(), Failure> {
        let execution = Execution {
            workspace: self.workspace,
            store: self.store,
            context,
            exporter: Exporter {
                directory: self.workspace.root().join("exporters"),
                python: args.python.as_deref(),
            },
        };
        for (subject, benchmark) in self.subjects.iter().zip(&mut report.benchmarks) {
            for (step, state) in &mut benchmark.steps {
                let executed = execution.execute(step, subject);
                *state = match executed {
                    Ok(()) => StepState::Done,
                    Err(_) => StepState::Failed,
                };
                executed.map_err(|failure| {
                    failure.context(format!("{}: {}", subject.benchmark.name, step.action.word()))
                })?;
            }
        }
        Ok(())
    }
}

/// Returns the planned steps of a benchmark, except those that an earlier benchmark also needs.
fn benchmark_report(
    subject: &Subject<'_>,
    facts: &Facts,
    met: &mut BTreeSet<(&'static str, String, String)>,
) -> BenchmarkReport {
    let Plan { steps, obstacles } = plan(facts);
    let steps = steps
        .into_iter()
        .filter(|step| met.insert((step.action.word(), step.target.clone(), step.subject.clone())))
        .map(|step| (step, StepState::Planned));
    BenchmarkReport {
        benchmark: subject.benchmark.name.clone(),
        steps: steps.collect(),
        obstacles,
    }
}
