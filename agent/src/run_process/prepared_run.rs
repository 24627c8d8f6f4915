//! A run from its resolved parts to LoadGen's outcome: what `exec` and `bench` have in common. Reads no spec and no flags,
//! prints nothing, and leaves records to its callers.

use std::{
    fs::File,
    io::{self, BufWriter},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use regatta_loadgen::{
    effective::LibraryCounts,
    load_gen::{LoadgenError, NoObserver},
    outcome::Outcome,
    request::{IssueSettings, RunRequest, Wait},
    sut::SystemUnderTest,
    timing::{Timing, TimingRequest},
};
use regatta_types::{
    benchmark::Benchmark,
    documents::{EngineSpec, LoadgenChoice, TimingThread},
    response_units::RESPONSE_UNITS,
};

use super::loadgens::{self, ChosenLoadgen};
use crate::{
    exit::Failure,
    harness::{Harness, HarnessSettings, SetUpError},
};

/// Everything that a run needs.
#[derive(Debug)]
pub(crate) struct RunPlan {
    /// The benchmark.
    pub(crate) benchmark: Benchmark,
    /// What computes, and its settings.
    pub(crate) engine: EngineSpec,
    /// Which LoadGen.
    pub(crate) loadgen: LoadgenChoice,
    /// What is asked of it.
    pub(crate) request: RunRequest,
    /// Where models and data lie.
    pub(crate) scratch: Option<PathBuf>,
    /// Whether the units' times are to be learnt and kept.
    pub(crate) learn: bool,
}

/// A run that has everything in place and waits for the start.
pub(crate) struct PreparedRun {
    request: RunRequest,
    chosen: ChosenLoadgen,
    harness: Harness,
}

impl RunPlan {
    /// Reads the configuration, opens the dataset, loads the engine and warms it up.
    ///
    /// # Errors
    /// [`Failure`] with what does not fit (wrong use) or is missing (could not).
    pub(crate) fn prepare(self) -> Result<PreparedRun, Failure> {
        let mut settings = HarnessSettings::try_from(&self.engine).map_err(Failure::usage)?;
        settings.learn = self.learn;
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
        let scratch = self.scratch.as_deref();
        let harness = Harness::set_up(
            &self.benchmark,
            self.engine.kind,
            &settings,
            &resolved.settings,
            scratch,
        )
        .map_err(set_up_failure)?;
        let issue = IssueSettings {
            wait: if settings.timing_spins() {
                Wait::Spin
            } else {
                Wait::Block
            },
            timing: TimingRequest {
                cpu: settings.engine.timing_cpu,
                realtime_priority: settings.engine.timing_priority,
            },
            stall_timeout: settings.engine.stall_timeout.or(self.request.issue.stall_timeout),
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
    /// The harness.
    pub(crate) const fn harness(&self) -> &Harness {
        &self.harness
    }

    /// How the timing thread ran, as records state it. The official LoadGen always sleeps while it waits.
    pub(crate) fn timing_thread(&self, timing: &Timing) -> TimingThread {
        let spins = self.request.issue.wait == Wait::Spin && self.chosen.is_native;
        TimingThread {
            wait: if spins { "spin" } else { "block" }.to_owned(),
            cpu: timing.cpu.and_then(|cpu| u32::try_from(cpu).ok()),
            realtime_priority: timing.realtime_priority,
            refused: timing.refused.clone(),
        }
    }

    /// The `mlperf.conf` that counts: the LoadGen's own where it has one, the run's otherwise.
    pub(crate) fn mlperf_conf(&self) -> &str {
        let requested = self.request.mlperf_conf.as_ref().map(|conf| conf.text.as_str());
        self.chosen
            .own_mlperf_conf
            .as_deref()
            .or(requested)
            .unwrap_or_default()
    }

    /// Runs LoadGen over `sut`, which is the harness's own or one around it.
    ///
    /// # Errors
    /// [`Failure`] when LoadGen cannot begin or cannot write its logs. What goes wrong in between stands in the outcome.
    pub(crate) fn run(&self, sut: &dyn SystemUnderTest) -> Result<Outcome, Failure> {
        let ran = self
            .chosen
            .loadgen
            .run(sut, self.harness.library(), &self.request, &NoObserver);
        ran.map_err(loadgen_failure)
    }

    /// Writes which unit computed each response beside LoadGen's logs, where there are several units.
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

    /// The failure of dataset or engine that the run ended with, where it did: such a run has no result at all.
    pub(crate) fn fault(&self) -> Option<Failure> {
        self.harness
            .fault()
            .map(|fault| Failure::could_not(anyhow!("{fault}")))
    }
}

fn set_up_failure(error: SetUpError) -> Failure {
    if error.is_wrong_use() {
        Failure::usage(error)
    } else {
        Failure::could_not(error)
    }
}

fn loadgen_failure(error: LoadgenError) -> Failure {
    match error {
        LoadgenError::Conf(_) | LoadgenError::Settings { .. } => Failure::usage(error),
        LoadgenError::Log { .. } | LoadgenError::Prepare(_) | LoadgenError::Plugin(_) => {
            Failure::could_not(error)
        }
    }
}

/// Whether a run ended well: valid, or without a verdict and without a fault as AccuracyOnly does.
pub(crate) fn ended_well(outcome: &Outcome) -> bool {
    outcome.valid.unwrap_or(outcome.faults.is_empty())
}
