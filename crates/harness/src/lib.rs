//! The harness between LoadGen and an engine: the QSL that loads samples into memory, and the SUT that turns queries
//! into batches.
//!
//! The harness decides how a scenario is served: batch sizes, streams and threads. LoadGen's rules and the engines are
//! elsewhere.

mod arena;
mod array_set;
mod direct;
mod fault;
mod issue_log;
mod lane;
mod library;
mod map_file;
#[cfg(test)]
mod measuring_path;
mod npy;
mod plan;
mod queue;
mod queued;
mod sequences;
mod settings;
mod tensorrt_request;
#[cfg(test)]
mod tests;
mod unit_log;
mod units;
mod volumes;
mod warm_up;
mod waveforms;

use std::{io, path::Path, sync::Arc, time::Duration};

pub use fault::HarnessError;
pub use issue_log::IssueLog;
pub use library::LibraryError;
pub use plan::{ServedSamples, ServingError, ServingPlan};
use regatta_conf::TestSettings;
use regatta_config::engine_settings::Dispatch;
use regatta_engines::{Description, EngineError, LoadRequest, SequenceBuckets, tensorrt::EngineRequest};
use regatta_loadgen::sut::{QuerySampleLibrary, SystemUnderTest};
use regatta_schedule::{board_model::BoardModel, policy::Policy};
use regatta_types::{
    Scenario,
    benchmark::Benchmark,
    documents::{EngineKind, end_reason},
    response_units::ResponseUnits,
};
pub use settings::HarnessSettings;
pub use tensorrt_request::{ENGINES, calibration_path, engine_cache, plugin_libraries};

use self::{
    direct::DirectSut,
    fault::FirstFault,
    lane::Lane,
    library::{Library, image_sizes},
    queue::SampleQueue,
    queued::QueuedSut,
    unit_log::UnitLog,
};

/// Tests count allocations.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: regatta_test_support::counting_allocator::CountingAllocator =
    regatta_test_support::counting_allocator::CountingAllocator;

/// Why a harness cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// The settings contradict each other.
    #[error(transparent)]
    Serving(#[from] ServingError),
    /// The engine needs files, but no scratch directory is set.
    #[error(
        "the {0} engine {missing}: a device of a lab gets them after `regatta asset add --benchmark` on the workstation; elsewhere name their directory with --scratch, MLPERF_SCRATCH_PATH or `scratch` in agent.toml",
        missing = end_reason::NO_BENCHMARK_FILES
    )]
    NoScratch(EngineKind),
    /// The dataset cannot be used.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The engine cannot be loaded.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The engine failed before LoadGen started.
    #[error("the warm-up failed")]
    WarmUp(#[source] HarnessError),
    /// The worker threads cannot be started.
    #[error("the worker threads cannot be started")]
    Threads(#[source] io::Error),
}

impl SetUpError {
    /// Returns whether the cause is a usage error rather than the machine.
    pub const fn is_wrong_use(&self) -> bool {
        matches!(self, Self::Serving(_) | Self::NoScratch(_))
    }
}

/// A SUT and its QSL, warmed up and ready for LoadGen.
pub struct Harness {
    description: Description,
    library: Arc<Library>,
    sut: Box<dyn SystemUnderTest>,
    /// Log of the unit that computed each response, if there are several units.
    units: Option<Arc<UnitLog>>,
    /// The units' service times, if they were requested.
    board: Option<BoardModel>,
    fault: FirstFault,
}

impl Harness {
    /// Opens the dataset, loads the engine and warms it up. `test` contains LoadGen's settings after all conf files.
    ///
    /// # Errors
    /// [`SetUpError`].
    pub fn set_up(
        benchmark: &Benchmark,
        kind: EngineKind,
        settings: &HarnessSettings,
        test: &TestSettings,
        scratch: Option<&Path>,
    ) -> Result<Self, SetUpError> {
        let engine_request =
            tensorrt_request::engine_request(&settings.engine, test.scenario, &benchmark.model, scratch);
        Self::with_request(benchmark, kind, settings, test, scratch, &engine_request)
    }

    /// Like [`set_up`](Self::set_up), with an explicit request to TensorRT.
    fn with_request(
        benchmark: &Benchmark,
        kind: EngineKind,
        settings: &HarnessSettings,
        test: &TestSettings,
        scratch: Option<&Path>,
        engine_request: &EngineRequest,
    ) -> Result<Self, SetUpError> {
        let fault = FirstFault::default();
        let (mut library, model_file, image_sizes) = match scratch {
            _ if !kind.computes() => (
                Library::counted(benchmark, fault.clone()),
                Default::default(),
                Arc::default(),
            ),
            None => return Err(SetUpError::NoScratch(kind)),
            Some(scratch) => (
                Library::open(benchmark, scratch, fault.clone())?,
                scratch.join(&benchmark.model.file),
                image_sizes(benchmark, scratch)?,
            ),
        };
        if kind.computes() {
            library.cut_sequences(benchmark, settings.engine.sequence_lengths.as_ref())?;
        }
        let sequences = library.sequences();
        let known;
        let engine_request = if kind == EngineKind::Tensorrt {
            known = engine_request.on_this_machine()?;
            &known
        } else {
            engine_request
        };
        let samples = ServedSamples {
            bytes: library.sample_bytes(),
            has_windows: benchmark.model.windows.is_some() && kind.computes(),
        };
        let plan = ServingPlan::new(kind, settings, engine_request, test, samples)?;
        let loaded = regatta_engines::load(&LoadRequest {
            kind,
            benchmark,
            model_file,
            image_sizes,
            volumes: library.volumes(),
            sequences: Arc::clone(&sequences),
            batch_sizes: &plan.batch_sizes,
            batch_size_is_request: plan.batch_size_is_request,
            takes_any_batch: test.scenario == Scenario::Offline,
            streams: plan.streams,
            sim: &settings.sim,
            tensorrt: engine_request,
        })?;
        if let Some(shared) = loaded.shared {
            library.share(shared);
        }
        let library = Arc::new(library);
        let mut lanes: Vec<Lane> = loaded
            .engines
            .into_iter()
            .map(|engine| Lane::new(engine, Arc::clone(&library)))
            .collect();
        library.lend_blank(lanes.iter().map(Lane::max_batch).fold(1, usize::max))?;
        let length = settings
            .engine
            .warmup_duration
            .unwrap_or_else(|| default_warm_up(kind));
        warm_up::warm_up(&mut lanes, length).map_err(SetUpError::WarmUp)?;
        let has_lengths = sequences.are_several();
        let shared =
            units::share(&mut lanes, settings, test, length, has_lengths).map_err(SetUpError::WarmUp)?;
        let units = units::log_units(&mut lanes, test, benchmark.dataset.total_samples);
        // Only an Offline query has all samples at once, so that its order can change.
        let sorted = if test.scenario == Scenario::Offline {
            sequences
        } else {
            Arc::default()
        };
        let sut = serve(
            &plan,
            format!("regatta-{kind}"),
            lanes,
            shared.policy,
            sorted,
            &fault,
        )?;
        Ok(Self {
            description: loaded.description,
            library,
            sut,
            units,
            board: shared.board,
            fault,
        })
    }

    /// Returns the board model that the warm-up measured, if it was requested.
    pub const fn board(&self) -> Option<&BoardModel> {
        self.board.as_ref()
    }

    /// Returns the description of the engine.
    pub const fn engine(&self) -> &Description {
        &self.description
    }

    /// Returns the SUT.
    pub fn sut(&self) -> &dyn SystemUnderTest {
        self.sut.as_ref()
    }

    /// Returns the QSL.
    pub fn library(&self) -> &dyn QuerySampleLibrary {
        self.library.as_ref()
    }

    /// Returns which unit computed each response so far. `None` if there is one unit.
    pub fn response_units(&self) -> Option<ResponseUnits> {
        self.units.as_deref().map(UnitLog::responses)
    }

    /// Returns the first error of dataset or engine during the run, with its causes.
    pub fn fault(&self) -> Option<&str> {
        self.fault.get()
    }
}

/// Returns the default warm-up time. Half a second settles a CPU's clocks and caches. Engines that do not compute need
/// none.
fn default_warm_up(kind: EngineKind) -> Duration {
    if kind.computes() {
        Duration::from_millis(500)
    } else {
        Duration::ZERO
    }
}

fn serve(
    plan: &ServingPlan,
    name: String,
    mut lanes: Vec<Lane>,
    sharing: Option<Box<dyn Policy + Send>>,
    sorted: Arc<SequenceBuckets>,
    fault: &FirstFault,
) -> Result<Box<dyn SystemUnderTest>, SetUpError> {
    match (plan.dispatch, lanes.pop()) {
        (Dispatch::Direct, Some(lane)) => Ok(Box::new(DirectSut::new(name, lane, sorted, fault.clone()))),
        (_, last) => {
            lanes.extend(last);
            // An engine may have a larger batch than planned. The queue must hold twice what all lanes take at once.
            let twice = 2 * lanes.iter().map(Lane::max_batch).sum::<usize>();
            let capacity = plan.queue_capacity.map(|planned| planned.max(twice));
            let at_once = lanes.iter().map(Lane::max_batch).fold(1, usize::max);
            let queue = SampleQueue::new(plan.gather, at_once, capacity, sharing).sorted_by(sorted);
            let sut = QueuedSut::start(name, lanes, queue, fault.clone()).map_err(SetUpError::Threads)?;
            Ok(Box::new(sut))
        }
    }
}
