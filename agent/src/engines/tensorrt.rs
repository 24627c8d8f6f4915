//! The `tensorrt` engine: engines that `engine build` made, run on the GPU and on DLA cores at once.
//!
//! Each stream is an execution context with memory of its own ([`Runner`]); streams of one unit overlap their copies and take turns
//! on the unit. What a run asks for is a [`Wish`]; which engine of the cache answers it, [`choice`] says. Nothing is built here,
//! and no model is read: the benchmark's file only names the engine by its hash.

mod choice;
mod convert;
mod graphs;
mod memory;
mod runner;
mod samples;
mod tensors;

use std::{error::Error, path::PathBuf, sync::Arc};

use regatta_cuda::{Context, Driver, Stream, Wait};
use regatta_rules::documents::EngineKind;
use regatta_tensorrt::{Engine as TrtEngine, Entry, Installed, Precision, Shims, TensorRt};

pub(crate) use self::samples::SharedSamples;
use self::{
    runner::{Runner, Setup},
    tensors::Tensors,
};
use super::{Description, Engine, EngineError, LoadRequest, Loaded, model_file};
use crate::engine_command::chip;

/// Where NVIDIA's software lies; `None` is where the system has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installation {
    /// The CUDA driver's file.
    pub(crate) cuda: Option<PathBuf>,
    /// TensorRT's directory.
    pub(crate) tensorrt: Option<PathBuf>,
    /// The shims' directories.
    pub(crate) shims: Shims,
}

impl Installation {
    /// What the environment says of this machine.
    pub(crate) fn of_this_machine() -> Self {
        Self {
            cuda: None,
            tensorrt: None,
            shims: Shims::from_environment(),
        }
    }

    fn open(&self) -> Result<(Context, TensorRt), EngineError> {
        let driver = match &self.cuda {
            None => Driver::open(),
            Some(file) => Driver::open_file(file),
        };
        let context = driver.and_then(|driver| driver.context(0)).map_err(unavailable)?;
        context.bind().map_err(unavailable)?;
        let installed = Installed::find(self.tensorrt.as_deref()).map_err(unavailable)?;
        let tensorrt = TensorRt::open(&installed, &self.shims).map_err(unavailable)?;
        Ok((context, tensorrt))
    }
}

/// What a run asks of TensorRT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wish {
    /// Where NVIDIA's software lies.
    pub(crate) installation: Installation,
    /// Where engines are kept.
    pub(crate) cache: PathBuf,
    /// Types that the engines were allowed to compute in; `None` takes any.
    pub(crate) precision: Option<Precision>,
    /// The GPU.
    pub(crate) gpu: UnitWish,
    /// Each DLA core.
    pub(crate) dla: UnitWish,
    /// Which DLA cores.
    pub(crate) dla_cores: Vec<u32>,
    /// Batches that a DLA core gets at once and computes one after the other.
    pub(crate) dla_loops: usize,
    /// Whether the GPU's batches of fixed size are CUDA graphs; where that is only usual, failing is no error.
    pub(crate) graphs: Graphs,
    /// Whether the device works in host memory; `None` where that is the same memory.
    pub(crate) direct_host_access: Option<bool>,
    /// How a thread waits for its unit.
    pub(crate) wait: Wait,
}

/// Whether graphs are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Graphs {
    /// No.
    Never,
    /// If they can be had.
    Usual,
    /// Yes, by name.
    Wanted,
}

/// What is asked of one kind of unit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct UnitWish {
    /// The engine by key or directory; `None` looks for one that fits.
    pub(crate) engine: Option<String>,
    /// Most samples in a batch, where the user says so.
    pub(crate) batch: Option<usize>,
    /// Contexts, each with a batch in flight; none leaves the unit out.
    pub(crate) streams: usize,
    /// Streams on which they compute; 0 gives each its own.
    pub(crate) inference_streams: usize,
}

/// A unit of the chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Gpu,
    Dla(u32),
}

impl Unit {
    fn name(self) -> String {
        match self {
            Self::Gpu => "gpu".to_owned(),
            Self::Dla(core) => format!("dla{core}"),
        }
    }
}

impl Wish {
    fn units(&self) -> Vec<Unit> {
        let gpu = (self.gpu.streams > 0).then_some(Unit::Gpu);
        gpu.into_iter()
            .chain(self.dla_cores.iter().map(|&core| Unit::Dla(core)))
            .collect()
    }

    fn of(&self, unit: Unit) -> &UnitWish {
        match unit {
            Unit::Gpu => &self.gpu,
            Unit::Dla(_) => &self.dla,
        }
    }

    /// How many streams there are over all units.
    pub(crate) fn streams(&self) -> usize {
        self.units().iter().map(|&unit| self.of(unit).streams).sum()
    }

    /// How many units there are.
    pub(crate) fn unit_count(&self) -> usize {
        self.units().len()
    }
}

/// Opens CUDA and TensorRT, loads the engines that fit, and makes a runner for every stream: the first of each unit, then the
/// second of those that have one, and so on.
pub(super) fn load(request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
    let wish = request.tensorrt;
    let (context, tensorrt) = wish.installation.open()?;
    let here = choice::Here {
        onnx_sha256: model_file::checked_hash(request)?,
        tensorrt: tensorrt.version(),
        chip: chip(),
    };
    let shared = context
        .device()
        .integrated
        .then(|| Arc::new(SharedSamples::new(&context)));
    let shared = match wish.direct_host_access {
        Some(true) => Some(shared.unwrap_or_else(|| Arc::new(SharedSamples::new(&context)))),
        Some(false) => None,
        None => shared,
    };
    let units: Vec<LoadedUnit> = wish
        .units()
        .into_iter()
        .map(|unit| LoadedUnit::new(unit, request, &here, &tensorrt, &context))
        .collect::<Result<_, _>>()?;
    let most = units.iter().map(|unit| unit.streams).max().unwrap_or(0);
    let mut engines: Vec<Box<dyn Engine>> = Vec::new();
    for number in 0..most {
        for (position, unit) in units.iter().enumerate().filter(|(_, unit)| number < unit.streams) {
            let setup = unit.setup(request, position, number, shared.clone());
            engines.push(Box::new(Runner::new(&context, &unit.engine, setup)?));
        }
    }
    Ok(Loaded {
        description: describe(&tensorrt, &context, &units, shared.is_some()),
        engines,
        shared,
    })
}

/// A unit with its engine loaded.
struct LoadedUnit {
    unit: Unit,
    entry: Entry,
    engine: TrtEngine,
    tensors: Tensors,
    streams: usize,
    /// Streams that several contexts share for computing; none where each uses its own.
    inference: Vec<Arc<Stream>>,
}

impl LoadedUnit {
    fn new(
        unit: Unit,
        request: &LoadRequest<'_>,
        here: &choice::Here,
        tensorrt: &TensorRt,
        context: &Context,
    ) -> Result<Self, EngineError> {
        let wish = request.tensorrt.of(unit);
        let core = match unit {
            Unit::Gpu => None,
            Unit::Dla(core) => Some(core),
        };
        let (entry, plan) = choice::choose(request, here, wish, core.is_some())?;
        let refused = |source: Box<dyn Error + Send + Sync>| EngineError::ModelRefused {
            engine: EngineKind::Tensorrt,
            file: request.model_file.clone(),
            source,
        };
        let engine = tensorrt
            .load(&plan, core)
            .map_err(|error| refused(error.into()))?;
        let tensors = Tensors::of(&engine, request)?;
        let profiles = engine.profiles();
        if tensors.batch_is_free && wish.streams > profiles {
            return Err(choice::too_few_profiles(request, &entry, wish.streams, profiles));
        }
        // As many as there are contexts, or none at all, is one each.
        let shared = (1..wish.streams).contains(&wish.inference_streams);
        let inference = (0..if shared { wish.inference_streams } else { 0 })
            .map(|_| Stream::new(context).map(Arc::new))
            .collect::<Result<_, _>>()
            .map_err(unavailable)?;
        Ok(Self {
            unit,
            entry,
            engine,
            tensors,
            streams: wish.streams,
            inference,
        })
    }

    fn setup(
        &self,
        request: &LoadRequest<'_>,
        position: usize,
        number: usize,
        shared: Option<Arc<SharedSamples>>,
    ) -> Setup {
        let wish = request.tensorrt;
        let on_gpu = self.unit == Unit::Gpu;
        Setup {
            unit: position,
            unit_name: self.unit.name(),
            tensors: self.tensors.clone(),
            profile: if self.tensors.batch_is_free { number } else { 0 },
            loops: if on_gpu { 1 } else { wish.dla_loops.max(1) },
            wished: wish.of(self.unit).batch,
            inference: (!self.inference.is_empty())
                .then(|| Arc::clone(&self.inference[number % self.inference.len()])),
            graphs: if on_gpu { wish.graphs } else { Graphs::Never },
            graph_sizes: request.batch_sizes.to_vec(),
            shared,
            wait: wish.wait,
            response: request.benchmark.model.response,
        }
    }
}

fn describe(tensorrt: &TensorRt, context: &Context, units: &[LoadedUnit], direct: bool) -> Description {
    let told = units.iter().map(|unit| {
        let manifest = &unit.entry.manifest;
        format!(
            "{}: engine {}, batch {}, {} stream(s)",
            unit.unit.name(),
            manifest.key(),
            manifest.batch,
            unit.streams
        )
    });
    let driver = context.driver().version();
    let access = if direct { "in host memory" } else { "by copies" };
    Description {
        kind: EngineKind::Tensorrt,
        version: tensorrt.version().to_string(),
        runs_on: format!(
            "{} (CUDA {}.{}, {access}; {})",
            context.device().name,
            driver / 1000,
            driver % 1000 / 10,
            told.collect::<Vec<_>>().join("; ")
        ),
    }
}

/// CUDA or TensorRT cannot be used on this machine.
fn unavailable(source: impl Into<Box<dyn Error + Send + Sync>>) -> EngineError {
    EngineError::Unavailable {
        engine: EngineKind::Tensorrt,
        source: source.into(),
    }
}
