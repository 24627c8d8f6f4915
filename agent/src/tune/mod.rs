//! `tune`: searches, within a time limit, for the settings that run a benchmark best on this board, and writes a
//! systems file.
//!
//! This module turns flags into searches and their file. [`space`] defines what is searched, [`search`] how, and
//! [`trial`] one measurement.

mod builder;
mod compare;
mod engines;
mod file;
mod process;
mod search;
mod space;
mod trial;
mod trial_failure;

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow};
use regatta_board::FactsReader;
use regatta_catalogue::system::SystemRequest;
use regatta_engines::{sim::SimModel, tensorrt::engine_cache};
use regatta_fsutil::{own_program::own_program, regular_file};
use regatta_tensorrt::InstalledTensorRt;
use regatta_text::{EscapedText, significant};
use regatta_types::{
    ExitCode, Scenario,
    benchmark::Benchmark,
    documents::{DeviceFacts, EngineKind},
    engine_settings::EngineSettings,
};

use self::{
    builder::Builder,
    compare::Goal,
    engines::EngineLimits,
    file::{Head, Section},
    search::Search,
    space::{Machine, Space},
    trial::Trials,
};
use crate::{bench, cli::TuneArgs, exit::Failure, gpus};

/// Samples of a MultiStream query, in every round since v2.0.
const MULTI_STREAM_SAMPLES: usize = 8;

/// Runs all searches and prints the results. The exit code is 0 if every benchmark and scenario has a choice.
///
/// # Errors
/// [`Failure`] when the search cannot start or the file cannot be written.
pub(crate) fn tune(args: &TuneArgs) -> Result<ExitCode, Failure> {
    if args.output.exists() && !args.force {
        return Err(Failure::usage(anyhow!(
            "{} exists already; hint: name another file with --output, or replace it with --force",
            args.output.display()
        )));
    }
    let mut facts = FactsReader::of_this_machine().read();
    if args.engine == EngineKind::Tensorrt {
        facts.gpus = gpus::read_gpus();
    }
    let fixed = bench::choice::settings(args.engine, &args.settings)?;
    let machine = machine(args, &facts, &fixed)?;
    let directory = TrialDirectory::make()?;
    let mut tuning = Tuning {
        args,
        head: Head {
            name: args.name.clone().unwrap_or_else(|| name_of(&facts)),
            facts,
        },
        fixed,
        machine,
        directory: &directory.0,
        finished: String::new(),
        reasons: Vec::new(),
    };
    let begun = Instant::now();
    let limit = Duration::from_millis(args.limit.millis());
    let mut all_found = true;
    let searches: Vec<(&String, Scenario)> = args
        .benchmark
        .iter()
        .flat_map(|model| args.scenario.iter().map(move |&scenario| (model, scenario)))
        .collect();
    for (number, (model, scenario)) in searches.iter().enumerate() {
        // Unused time goes to the remaining searches.
        let left = limit.saturating_sub(begun.elapsed())
            / u32::try_from(searches.len() - number).unwrap_or(u32::MAX);
        all_found &= tuning.search(model, *scenario, left)?;
    }
    tuning.write()?;
    say(&format!("written: {}\n", args.output.display()));
    Ok(if all_found {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

/// All searches and their file.
struct Tuning<'a> {
    args: &'a TuneArgs,
    head: Head,
    fixed: EngineSettings,
    machine: Machine,
    directory: &'a Path,
    /// The text of the finished searches.
    finished: String,
    /// Why the file is partial.
    reasons: Vec<String>,
}

impl Tuning<'_> {
    /// Searches for one benchmark and scenario. Returns `false` if no choice runs.
    fn search(&mut self, model: &str, scenario: Scenario, limit: Duration) -> Result<bool, Failure> {
        let args = self.args;
        let benchmark = bench::choice::benchmark(&bench::choice::Named {
            sut: args.engine,
            model,
            file: args.data.benchmark_file.as_deref(),
            counts: args.data.total_samples.zip(args.data.performance_samples),
        })?;
        let seeds = self.seeds(&benchmark, scenario)?;
        let machine = self.machine_for(&benchmark)?;
        let space = Space::new(args.engine, scenario, &machine, &self.fixed, &seeds);
        if space.names().next().is_none() {
            return Err(Failure::usage(anyhow!(
                "the {} engine has nothing to tune in {scenario}",
                args.engine
            )));
        }
        let trials = self.trials(&benchmark, scenario, &space, limit)?;
        let measured = self.measured_by(&trials);
        let mut failure = None;
        let mut observe = |trials: &[search::Trial], found: Option<&search::Found>| {
            let part = self.part(&benchmark, scenario, &space, &measured, trials, found);
            report_progress(&part);
            let partial = "the search was not finished when this was written";
            let text = format!(
                "{}{}{}",
                self.head.text(Some(partial)),
                self.finished,
                part.text()
            );
            failure = failure.take().or(file::write(&args.output, &text).err());
        };
        let mut search = Search {
            space: &space,
            goal: match scenario {
                Scenario::SingleStream | Scenario::MultiStream => Goal::Minimize,
                Scenario::Server | Scenario::Offline => Goal::Maximize,
            },
            bench: trials,
            limit,
            seeds: seeds.iter().map(|seed| space.of_settings(seed)).collect(),
            trials: Vec::new(),
            observe: &mut observe,
        };
        let found = search.run();
        let (trials, engine) = (search.trials, search.bench.engine);
        let built = search
            .bench
            .builder
            .map_or_else(Vec::new, |builder| builder.built_engines());
        if let Some(error) = failure {
            return Err(self.cannot_write(error));
        }
        let measured = format!(
            "{measured}; {}",
            engine.as_deref().unwrap_or("the engine never ran")
        );
        let mut part = self.part(&benchmark, scenario, &space, &measured, &trials, found.as_ref());
        part.built = built;
        let (text, summary) = (part.text(), file::summary(&part));
        let reason = found
            .as_ref()
            .map_or(Some("nothing ran".to_owned()), |found| found.partial.clone());
        self.reasons
            .extend(reason.map(|why| format!("{model} {scenario}: {why}")));
        self.finished.push_str(&text);
        say(&summary);
        Ok(found.is_some())
    }

    fn part<'p>(
        &self,
        benchmark: &'p Benchmark,
        scenario: Scenario,
        space: &'p Space,
        measured: &'p str,
        trials: &'p [search::Trial],
        found: Option<&'p search::Found>,
    ) -> Section<'p> {
        Section {
            benchmark: &benchmark.name,
            scenario,
            power: self.args.power_setting,
            engine: self.args.engine,
            measured,
            space,
            trials,
            found,
            built: Vec::new(),
        }
    }

    /// Returns the machine. If no engine is to be built, it includes the limits of the existing engines.
    fn machine_for(&self, benchmark: &Benchmark) -> Result<Machine, Failure> {
        let args = self.args;
        let mut machine = self.machine.clone();
        if args.no_build && args.engine == EngineKind::Tensorrt {
            let scratch = args.data.scratch.as_deref();
            let below = scratch.unwrap_or(Path::new(""));
            let networks: Vec<PathBuf> = benchmark
                .model
                .networks()
                .iter()
                .map(|file| below.join(file))
                .collect();
            machine.engines = Some(EngineLimits::of(&engine_cache(scratch), &networks)?);
        }
        Ok(machine)
    }

    /// Returns the settings of `--system` for the run, which are tried unchanged.
    fn seeds(&self, benchmark: &Benchmark, scenario: Scenario) -> Result<Vec<EngineSettings>, Failure> {
        let Some(name) = &self.args.system else {
            return Ok(Vec::new());
        };
        let request = SystemRequest {
            benchmark,
            scenario,
            power: self.args.power_setting,
            engine: self.args.engine,
        };
        Ok(vec![bench::system::chosen(name, &request)?.settings])
    }

    fn trials(
        &self,
        benchmark: &Benchmark,
        scenario: Scenario,
        space: &Space,
        limit: Duration,
    ) -> Result<Trials, Failure> {
        let conf = self.directory.join("mlperf.conf");
        let text = match &self.args.mlperf_conf {
            Some(path) => regular_file::read_text(path)
                .with_context(|| format!("--mlperf-conf names {}, which cannot be read", path.display()))?,
            None => bench::newest_mlperf_conf(benchmark)?,
        };
        fs::write(&conf, text).with_context(|| format!("cannot write {}", conf.display()))?;
        let program = own_program().context("the path of this program is unknown")?;
        let builds = self.args.engine == EngineKind::Tensorrt && !self.args.no_build;
        let builder = builds.then(|| Builder {
            program: program.clone(),
            directory: self.directory.to_owned(),
            profiles: space.most_streams(&self.fixed),
            flags: self.args.build_flags.clone(),
            tried: Vec::new(),
        });
        Ok(Trials {
            program,
            words: self
                .args
                .bench_words(&benchmark.name, scenario, &conf, &self.directory.join("logs")),
            model: benchmark.loadgen_model.clone(),
            scenario,
            fixed: self.fixed.clone(),
            directory: self.directory.to_owned(),
            begun: Instant::now(),
            limit,
            engine: None,
            builder,
        })
    }

    /// Describes the program, the machine and the time of the measurement.
    fn measured_by(&self, trials: &Trials) -> String {
        let options = trials.fixed.assignments();
        let with = if options.is_empty() {
            String::new()
        } else {
            format!(" with {}", options.join(" "))
        };
        format!(
            "regatta-agent {} tune on {}, {:.0}{with}",
            env!("CARGO_PKG_VERSION"),
            self.head.facts.hostname,
            jiff::Timestamp::now()
        )
    }

    fn write(&self) -> Result<(), Failure> {
        let partial = (!self.reasons.is_empty()).then(|| self.reasons.join("; "));
        let text = format!("{}{}", self.head.text(partial.as_deref()), self.finished);
        file::write(&self.args.output, &text).map_err(|error| self.cannot_write(error))
    }

    fn cannot_write(&self, error: io::Error) -> Failure {
        Failure::could_not(
            anyhow::Error::new(error).context(format!("cannot write {}", self.args.output.display())),
        )
    }
}

fn machine(args: &TuneArgs, facts: &DeviceFacts, fixed: &EngineSettings) -> Result<Machine, Failure> {
    let modelled = SimModel::of(fixed)
        .map_err(Failure::usage)?
        .board
        .units
        .iter()
        .filter(|unit| unit.name.starts_with("dla"))
        .count();
    // A limit on the number of cores implies that there are some.
    let cores = usize::try_from(facts.dla_cores).unwrap_or(0);
    let cores = cores.max(fixed.max_dlas.unwrap_or(0));
    let cores = if drives_dla() { cores } else { 0 };
    Ok(Machine {
        cpus: usize::try_from(facts.cpus).unwrap_or(1).max(1),
        dlas: if args.engine == EngineKind::Sim {
            modelled
        } else {
            cores
        },
        samples_per_query: MULTI_STREAM_SAMPLES,
        engines: None,
    })
}

/// Returns whether the installed TensorRT drives DLA cores. A trial reports that TensorRT is missing.
fn drives_dla() -> bool {
    InstalledTensorRt::find(None).is_ok_and(|installed| installed.version.drives_dla())
}

/// Returns a system name that is derived from the host name.
fn name_of(facts: &DeviceFacts) -> String {
    let lower = facts.hostname.to_ascii_lowercase();
    let name: String = lower
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    if name.is_empty() {
        "this-board".to_owned()
    } else {
        name
    }
}

fn report_progress(part: &Section<'_>) {
    let Some(last) = part.trials.last() else { return };
    let outcome = match &last.outcome {
        Ok(figure) => format!("{} {}", significant(*figure, 4), file::unit(part.scenario)),
        Err(failure) => format!("failed: {failure}"),
    };
    let best = part.found.map_or_else(String::new, |found| {
        format!(" (best {})", significant(found.figure, 4))
    });
    let (number, settings) = (part.trials.len(), part.settings(last));
    let line = format!(
        "{} {} trial {number}: {settings}: {outcome}{best}",
        part.benchmark, part.scenario
    );
    // Standard error may be closed.
    let _ = writeln!(EscapedText(io::stderr()), "{line}");
}

fn say(text: &str) {
    // A closed pipe loses this output, but not the file.
    let _ = EscapedText(io::stdout().lock()).write_all(text.as_bytes());
}

/// A temporary directory for the confs and logs of trials.
struct TrialDirectory(PathBuf);

impl TrialDirectory {
    fn make() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("regatta-tune-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for TrialDirectory {
    fn drop(&mut self) {
        // What cannot be removed stays in the temporary directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}
