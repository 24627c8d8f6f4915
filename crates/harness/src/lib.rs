//! The harness between LoadGen and an engine: the QSL that loads samples into memory, and the SUT that turns queries
//! into batches.
//!
//! The harness decides how a scenario is served: batch sizes, streams and threads. LoadGen's rules and the engines are
//! elsewhere.

mod arena;
mod array_set;
mod dataset;
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
mod request;
mod sequences;
mod set_up_error;
#[cfg(test)]
mod tests;
mod unit_log;
mod units;
mod volumes;
mod warm_up;
mod waveforms;

use std::{sync::Arc, time::Duration};

pub use fault::HarnessError;
pub use issue_log::IssueLog;
pub use library::LibraryError;
pub use plan::{ServedSamples, ServingError, ServingPlan};
use regatta_engines::{
    Description, EngineBackend, EngineBuilder, EngineError, EngineRequest, LoadRequest, SequenceBuckets,
};
use regatta_loadgen::sut::{QuerySampleLibrary, SystemUnderTest};
use regatta_loadgen_conf::TestSettings;
use regatta_types::engine_settings::Dispatch;
use regatta_types::{Scenario, documents::EngineKind, response_units::ResponseUnits};
use regatta_unit_sharing::{board_model::BoardModel, policy::Policy};
pub use request::HarnessRequest;
pub use set_up_error::SetUpError;

use self::{
    dataset::Dataset, direct::DirectSut, fault::FirstFault, lane::Lane, library::Library, queue::SampleQueue,
    queued::QueuedSut, unit_log::UnitLog,
};

/// Tests count allocations.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: regatta_test_support::counting_allocator::CountingAllocator =
    regatta_test_support::counting_allocator::CountingAllocator;

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
    /// The engine with the settings of the run. `None` in tests of single parts.
    backend: Option<Box<dyn EngineBackend>>,
}

impl Harness {
    /// Opens the dataset, loads the engine and warms it up. With a `builder`, engines that are missing are built first.
    ///
    /// # Errors
    /// [`SetUpError`].
    pub fn set_up(
        request: &HarnessRequest<'_>,
        builder: Option<&mut EngineBuilder<'_>>,
    ) -> Result<Self, SetUpError> {
        let dataset = Dataset::open(request)?;
        let engine_request = EngineRequest {
            settings: request.settings,
            scenario: request.test.scenario,
            model: &request.benchmark.model,
            scratch: request.scratch,
            sends_first_tokens: sends_first_tokens(request.test),
            files: request.files,
        };
        let backend = regatta_engines::configure(request.engine, &engine_request)?;
        let harness = Self::with_engine(request, dataset, backend.as_ref(), builder)?;
        Ok(Self {
            backend: Some(backend),
            ..harness
        })
    }

    /// Loads a configured engine for an opened dataset, and warms it up.
    fn with_engine(
        request: &HarnessRequest<'_>,
        dataset: Dataset,
        backend: &dyn EngineBackend,
        builder: Option<&mut EngineBuilder<'_>>,
    ) -> Result<Self, SetUpError> {
        let &HarnessRequest {
            benchmark,
            engine: kind,
            settings,
            test,
            ..
        } = request;
        let Dataset {
            mut library,
            model_file,
            image_sizes,
            fault,
        } = dataset;
        let sequences = library.sequences();
        let samples = ServedSamples {
            bytes: library.sample_bytes(),
            has_windows: benchmark.model.windows.is_some() && kind.computes(),
            is_slow: benchmark.model.diffusion.is_some() && kind.computes(),
        };
        let plan = ServingPlan::new(settings, &backend.plan(), test, samples)?;
        let load_request = LoadRequest {
            benchmark,
            model_file,
            image_sizes,
            volumes: library.volumes(),
            sequences: Arc::clone(&sequences),
            batch_sizes: &plan.batch_sizes,
            takes_any_batch: test.scenario == Scenario::Offline,
            streams: plan.streams,
        };
        let loaded = regatta_engines::load(backend, &load_request, builder)?;
        if let Some(shared) = loaded.shared {
            library.share(shared);
        }
        let library = Arc::new(library);
        let mut lanes: Vec<Lane> = loaded
            .engines
            .into_iter()
            .map(|engine| Lane::new(engine, Arc::clone(&library)))
            .collect();
        lanes
            .iter_mut()
            .for_each(|lane| lane.send_first_tokens(sends_first_tokens(test)));
        library.lend_blank(lanes.iter().map(Lane::max_batch).fold(1, usize::max))?;
        let length = settings.warmup_duration.unwrap_or_else(|| default_warm_up(kind));
        warm_up::warm_up(&mut lanes, length).map_err(SetUpError::WarmUp)?;
        let has_lengths = sequences.are_several();
        let shared = units::share(&mut lanes, request, length, has_lengths).map_err(SetUpError::WarmUp)?;
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
            backend: None,
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

    /// Ends a run. Returns what may have disturbed it, as the engine sees it.
    ///
    /// # Errors
    /// [`EngineError`] when the engine was not the same from the run's start to its end.
    pub fn end_run(&self) -> Result<Vec<String>, EngineError> {
        self.backend
            .as_ref()
            .map_or_else(|| Ok(Vec::new()), |backend| backend.end_run())
    }

    /// Returns the first error of dataset or engine during the run, with its causes.
    pub fn fault(&self) -> Option<&str> {
        self.fault.get()
    }
}

/// Returns whether LoadGen expects the first token of each answer. In Offline it expects none.
fn sends_first_tokens(test: &TestSettings) -> bool {
    test.use_token_latencies && test.scenario != Scenario::Offline
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
