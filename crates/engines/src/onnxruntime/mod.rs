//! The `onnxruntime` engine: ONNX on the CPU or on NVIDIA's GPUs, by a library that the user has installed and that is opened at run time.
//!
//! All streams share one session, which keeps the weights once. By default a stream computes on its own calling thread only. The engine only
//! converts 32-bit integers to 64 bits; otherwise the model's input must have the samples' type.

mod element;
mod error;
mod inputs;
mod installed;
mod library;
mod session;
mod stream;
#[cfg(test)]
mod tests;

use std::{path::Path, sync::Arc};

use regatta_types::{
    documents::EngineKind,
    engine_settings::{OnnxRuntimeOptimization as Optimization, OnnxRuntimeProvider as Provider},
};

pub use self::{
    error::{CallError, LibraryError},
    installed::InstalledOnnxRuntime,
};
use self::{
    library::OnnxRuntime,
    session::{Session, SessionSettings},
    stream::{Stream, StreamError},
};
use super::{
    Description, Engine, EngineBackend, EngineError, EnginePlan, EngineRequest, LoadRequest, Loaded,
    model_file,
    sample_part::{at_each_length, fixed_batch},
};

/// The `onnxruntime` engine with the settings of a run.
pub(super) struct OnnxRuntimeBackend {
    plan: EnginePlan,
    runtime: &'static OnnxRuntime,
    settings: SessionSettings,
}

impl EngineBackend for OnnxRuntimeBackend {
    fn configure(request: &EngineRequest<'_>) -> Result<Self, EngineError> {
        let settings = request.settings;
        let unavailable = |error: LibraryError| EngineError::Unavailable {
            engine: EngineKind::Onnxruntime,
            source: error.into(),
        };
        let named = settings.onnxruntime_library.as_deref().map(Path::new);
        let installed = InstalledOnnxRuntime::find(named).map_err(unavailable)?;
        let runtime = OnnxRuntime::open(&installed).map_err(unavailable)?;
        let provider = settings.onnxruntime_provider.unwrap_or(Provider::Cpu);
        runtime.check_provider(provider).map_err(unavailable)?;
        Ok(Self {
            plan: EnginePlan::of_threads(request),
            runtime,
            settings: SessionSettings {
                provider,
                threads: settings.onnxruntime_threads.unwrap_or(1),
                optimization: settings.onnxruntime_optimization.unwrap_or(Optimization::All),
            },
        })
    }

    fn kind(&self) -> EngineKind {
        EngineKind::Onnxruntime
    }

    fn plan(&self) -> EnginePlan {
        self.plan
    }

    fn load(&self, request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
        model_file::checked_hash(request)?;
        let refused = |error: CallError| EngineError::ModelRefused {
            engine: EngineKind::Onnxruntime,
            file: request.model_file.clone(),
            source: error.into(),
        };
        let unfit = |reason| EngineError::ModelUnfit {
            file: request.model_file.clone(),
            benchmark: request.benchmark.name.clone(),
            reason,
        };
        let session = Session::load(self.runtime, &request.model_file, &self.settings).map_err(refused)?;
        let session = Arc::new(session);
        let inputs = inputs::of(&session, request).map_err(unfit)?;
        let (max_batch, sizes) = self.batches(request, fixed_batch(&inputs).map_err(unfit)?);
        let full = request.benchmark.model.sequence_length();
        let inputs = at_each_length(inputs, full, request.sequences.lengths()).map_err(unfit)?;
        let mut streams: Vec<Stream> = Vec::new();
        for _ in 0..request.streams {
            let stream = Stream::new(&session, &inputs, max_batch, &sizes, request, streams.first());
            streams.push(stream.map_err(|error| match error {
                StreamError::Refused(error) => refused(error),
                StreamError::Unfit(reason) => unfit(reason),
            })?);
        }
        let boxed = |stream| Box::new(stream) as Box<dyn Engine>;
        Ok(Loaded {
            description: self.description(),
            engines: streams.into_iter().map(boxed).collect(),
            shared: None,
        })
    }
}

impl OnnxRuntimeBackend {
    /// Returns the largest batch, and the sizes that are computed: the network's fixed size, on a GPU those that are requested, because other
    /// shapes would make the library prepare itself again during a run, and otherwise all.
    fn batches(&self, request: &LoadRequest<'_>, fixed: Option<usize>) -> (usize, Vec<usize>) {
        let mut sizes = request.batch_sizes.to_vec();
        sizes.sort_unstable();
        sizes.dedup();
        let largest = sizes.last().copied().unwrap_or(1);
        if let Some(fixed) = fixed {
            if largest > fixed {
                crate::fixed_batch::warn(&request.model_file, fixed, largest);
            }
            return (fixed, vec![fixed]);
        }
        match self.settings.provider {
            Provider::Cpu => (largest, Vec::new()),
            Provider::Cuda | Provider::Tensorrt => (largest, sizes),
        }
    }

    fn description(&self) -> Description {
        let threads = match self.settings.threads {
            1 => "1 thread per stream".to_owned(),
            threads => format!("{threads} threads"),
        };
        let runs_on = match self.settings.provider {
            Provider::Cpu => format!("the CPU ({}, {threads})", std::env::consts::ARCH),
            provider => format!("the GPU by provider {}", library::name_of(provider)),
        };
        Description {
            kind: EngineKind::Onnxruntime,
            version: self.runtime.version.clone(),
            runs_on,
        }
    }
}
