//! The interface of an engine to what serves it: the settings of a run become an engine, which says how it is served and loads a model.
//! [`super::registry`] lists the engines.

use std::path::Path;

use regatta_types::engine_settings::EngineSettings;
use regatta_types::{Scenario, benchmark::Model, documents::EngineKind, layout::Layout};

use super::{EngineBuilder, EngineError, LoadRequest, Loaded, network_loop::NetworkLoop};

/// The requirements of a run for an engine, before anything is loaded.
#[derive(Debug, Clone, Copy)]
pub struct EngineRequest<'a> {
    /// The engine settings of the run.
    pub settings: &'a EngineSettings,
    pub scenario: Scenario,
    /// The benchmark's model.
    pub model: &'a Model,
    /// The directory of models and data.
    pub scratch: Option<&'a Path>,
    /// Whether LoadGen expects the first token of each answer before the answer.
    pub sends_first_tokens: bool,
    /// The directory of the run's files, for the output of programs that an engine starts.
    pub files: &'a Path,
}

/// An engine with the settings of a run. Each engine's directory has one.
pub trait EngineBackend {
    /// Applies the settings of a run.
    ///
    /// # Errors
    /// [`EngineError::Settings`] when a value is not possible on this machine, or [`EngineError::Unavailable`] with what is missing.
    fn configure(request: &EngineRequest<'_>) -> Result<Self, EngineError>
    where
        Self: Sized;

    fn kind(&self) -> EngineKind;

    /// Returns how the engine is served.
    fn plan(&self) -> EnginePlan;

    /// Builds the engine that a failed load did not find, so that the next load finds it. Returns `false` when nothing was built: the failure had
    /// another reason, the settings forbid builds, or the engine was built before. Most engines need no build.
    ///
    /// # Errors
    /// [`EngineError::Build`].
    fn build_if_missing(
        &self,
        _failure: &EngineError,
        _builder: &mut EngineBuilder<'_>,
    ) -> Result<bool, EngineError> {
        Ok(false)
    }

    /// Loads a model of one network.
    ///
    /// # Errors
    /// [`EngineError`] when the model is missing, damaged, or does not match the samples.
    fn load(&self, request: &LoadRequest<'_>) -> Result<Loaded, EngineError>;

    /// Ends a run of the loaded engines, which have answered all queries. Returns what may have disturbed it. Only an engine that others could
    /// use at the same time has to say anything.
    ///
    /// # Errors
    /// [`EngineError`] when the engine was not the same from the run's start to its end.
    fn end_run(&self) -> Result<Vec<String>, EngineError> {
        Ok(Vec::new())
    }

    /// Returns the layout in which engines take windows of a volume.
    fn window_layout(&self) -> Layout {
        Layout::Linear
    }

    /// Loads a model whose networks are computed in a loop. Unless an engine keeps states on its device, they are in host memory.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    fn load_loop(
        &self,
        request: &LoadRequest<'_>,
        network_loop: &NetworkLoop<'_>,
    ) -> Result<Loaded, EngineError> {
        network_loop.load_in_host_memory(request, &|network| self.load(network))
    }
}

/// How an engine is served in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnginePlan {
    /// Streams that compute at the same time, at least 1.
    pub streams: usize,
    /// Units of the chip that share the samples, at least 1.
    pub units: usize,
    /// The largest batch that the user set, in samples.
    pub requested_batch: Option<usize>,
    /// The largest batch in Offline if the user set none. `None` leaves the choice to the harness.
    pub offline_batch: Option<usize>,
    /// The largest batch of windows, for a model that sees samples in sliding windows.
    pub window_batch: usize,
    /// Whether an answer takes less time than to hand a query to another thread.
    pub answers_at_once: bool,
}

impl EnginePlan {
    /// Returns the plan of an engine whose streams are threads on one unit, as the settings say.
    pub(crate) fn of_threads(request: &EngineRequest<'_>) -> Self {
        let settings = request.settings;
        Self {
            streams: match request.scenario {
                // One query of one sample at a time: a second stream would be idle.
                Scenario::SingleStream => 1,
                Scenario::MultiStream | Scenario::Server | Scenario::Offline => {
                    settings.inference_streams.unwrap_or(1)
                }
            },
            units: 1,
            requested_batch: settings.batch_size,
            offline_batch: None,
            window_batch: settings.window_batch.unwrap_or(1),
            answers_at_once: false,
        }
    }
}
