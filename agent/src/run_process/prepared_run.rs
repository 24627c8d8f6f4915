//! A run from its resolved parts to LoadGen's outcome, shared by `exec` and `bench`. This module does not read specs or
//! flags and does not print. Its callers write records.

use std::{
    fs::File,
    io::{self, BufWriter},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use regatta_engines::{EngineBuilder, EngineError};
use regatta_harness::{Harness, HarnessRequest, SetUpError};
use regatta_loadgen::{
    effective::LibraryCounts,
    load_gen::{LoadgenError, NoObserver},
    outcome::Outcome,
    request::{IssueSettings, RunRequest, Wait},
    sut::SystemUnderTest,
    timing::{Timing, TimingRequest},
};
use regatta_types::engine_settings::TimingWait;
use regatta_types::{
    benchmark::Benchmark,
    documents::{EngineSpec, LoadgenChoice, TimingThread},
    response_units::RESPONSE_UNITS,
};

use super::loadgens::{self, ChosenLoadgen};
use crate::{cli::BuildCommand, exit::Failure};

/// The inputs of a run.
#[derive(Debug, Clone)]
pub(crate) struct RunPlan {
    pub(crate) benchmark: Benchmark,
    /// The engine and its settings.
    pub(crate) engine: EngineSpec,
    /// The LoadGen to use.
    pub(crate) loadgen: LoadgenChoice,
    /// The request to LoadGen.
    pub(crate) request: RunRequest,
    /// The directory of models and data.
    pub(crate) scratch: Option<PathBuf>,
    /// Whether to measure and keep the units' service times.
    pub(crate) learn: bool,
}

/// Why a run cannot be prepared.
pub(crate) enum PrepareError {
    /// Its engine must be built first.
    NotBuilt {
        command: BuildCommand,
        /// The engine's error.
        error: Box<SetUpError>,
    },
    /// A setting is wrong (usage error), or a part is missing (failure).
    Other(Failure),
}

impl From<Failure> for PrepareError {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

impl From<PrepareError> for Failure {
    fn from(error: PrepareError) -> Self {
        match error {
            PrepareError::NotBuilt { command, error } => Self::could_not(anyhow!("{error}; hint: {command}")),
            PrepareError::Other(failure) => failure,
        }
    }
}

/// A run that is ready to start.
pub(crate) struct PreparedRun {
    request: RunRequest,
    chosen: ChosenLoadgen,
    harness: Harness,
}

impl RunPlan {
    /// Reads the configuration, opens the dataset, loads the engine and warms it up. With a `builder`, an engine that is missing is built
    /// first.
    ///
    /// # Errors
    /// [`PrepareError`].
    pub(crate) fn prepare(
        self,
        builder: Option<&mut EngineBuilder<'_>>,
    ) -> Result<PreparedRun, PrepareError> {
        let settings = self.engine.settings;
        let chosen = loadgens::find(&self.loadgen, &self.benchmark).map_err(Failure::could_not)?;
        let resolved = self.request.resolve();
        let resolved = resolved
            .context("the run's configuration cannot be used")
            .map_err(Failure::usage)?;
        let dataset = &self.benchmark.dataset;
        let counts = LibraryCounts {
            total: dataset.total_samples as u64,
            performance: dataset.performance_samples as u64,
        };
        chosen
            .loadgen
            .check(&self.request, counts)
            .map_err(loadgen_failure)?;
        let request = HarnessRequest {
            benchmark: &self.benchmark,
            engine: self.engine.kind,
            settings: &settings,
            test: &resolved.settings,
            scratch: self.scratch.as_deref(),
            files: &self.request.logs.dir,
            learn: self.learn,
        };
        let harness = Harness::set_up(&request, builder).map_err(set_up_failure)?;
        let issue = IssueSettings {
            wait: if settings.timing_wait == Some(TimingWait::Spin) {
                Wait::Spin
            } else {
                Wait::Block
            },
            timing: TimingRequest {
                cpu: settings.timing_cpu,
                realtime_priority: settings.timing_priority,
            },
            stall_timeout: settings.stall_timeout.or(self.request.issue.stall_timeout),
        };
        Ok(PreparedRun {
            request: RunRequest {
                issue,
                ..self.request
            },
            chosen,
            harness,
        })
    }
}

impl PreparedRun {
    pub(crate) const fn harness(&self) -> &Harness {
        &self.harness
    }

    /// Returns how the timing thread ran, for the records. The official LoadGen always sleeps while it waits.
    pub(crate) fn timing_thread(&self, timing: &Timing) -> TimingThread {
        let spins = self.request.issue.wait == Wait::Spin && self.chosen.is_native;
        TimingThread {
            wait: if spins { "spin" } else { "block" }.to_owned(),
            cpu: timing.cpu.and_then(|cpu| u32::try_from(cpu).ok()),
            realtime_priority: timing.realtime_priority,
            refused: timing.refused.clone(),
        }
    }

    /// Returns the `mlperf.conf` in effect: the LoadGen's own if it has one, otherwise the run's.
    pub(crate) fn mlperf_conf(&self) -> &str {
        let requested = self.request.mlperf_conf.as_ref().map(|conf| conf.text.as_str());
        self.chosen
            .own_mlperf_conf
            .as_deref()
            .or(requested)
            .unwrap_or_default()
    }

    /// Runs LoadGen on `sut`, which is the harness's SUT or a wrapper around it.
    ///
    /// # Errors
    /// [`Failure`] when LoadGen cannot start or cannot write its logs. Errors during the run are part of the outcome.
    pub(crate) fn run(&self, sut: &dyn SystemUnderTest) -> Result<Outcome, Failure> {
        let ran = self
            .chosen
            .loadgen
            .run(sut, self.harness.library(), &self.request, &NoObserver);
        ran.map_err(loadgen_failure)
    }

    /// If there are several units, writes which unit computed each response, beside LoadGen's logs.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn keep_response_units(&self, directory: &Path) -> anyhow::Result<()> {
        let Some(units) = self.harness.response_units() else {
            return Ok(());
        };
        let path = directory.join(RESPONSE_UNITS);
        let written = File::create(&path).and_then(|file| {
            let mut file = BufWriter::new(file);
            units.write(&mut file)?;
            file.into_inner()
                .map_err(io::IntoInnerError::into_error)?
                .sync_all()
        });
        written.with_context(|| format!("{} cannot be written", path.display()))
    }

    /// Ends a run without a fault. Returns what may have disturbed it.
    ///
    /// # Errors
    /// [`Failure`] when the engine was not the same from the run's start to its end. Such a run has no result.
    pub(crate) fn end(&self) -> Result<Vec<String>, Failure> {
        let warnings = self.harness.end_run();
        warnings.map_err(|error| Failure::could_not(anyhow::Error::from(error)))
    }

    /// Returns the failure of the dataset or engine, if the run ended with one. Such a run has no result.
    pub(crate) fn fault(&self) -> Option<Failure> {
        self.harness
            .fault()
            .map(|fault| Failure::could_not(anyhow!("{fault}")))
    }
}

fn set_up_failure(error: SetUpError) -> PrepareError {
    if let SetUpError::Engine(EngineError::NotBuilt { missing, .. }) = &error {
        return PrepareError::NotBuilt {
            command: BuildCommand::of(missing),
            error: Box::new(error),
        };
    }
    let failure = if error.is_wrong_use() {
        Failure::usage(error)
    } else {
        Failure::could_not(error)
    };
    failure.into()
}

fn loadgen_failure(error: LoadgenError) -> Failure {
    match error {
        LoadgenError::Conf(_) | LoadgenError::Settings { .. } => Failure::usage(error),
        LoadgenError::Log { .. } | LoadgenError::Prepare(_) | LoadgenError::Plugin(_) => {
            Failure::could_not(error)
        }
    }
}

/// Returns whether a run succeeded: it is valid, or it has no verdict (as in AccuracyOnly) and no faults.
pub(crate) fn ended_well(outcome: &Outcome) -> bool {
    outcome.valid.unwrap_or(outcome.faults.is_empty())
}
