//! The request of a run to TensorRT: units, streams, and the engines that suit it.

use std::path::PathBuf;

use regatta_cuda::WaitMode;
use regatta_tensorrt::{ElementType, Precision};
use regatta_types::engine_settings::GpuSelection;
use regatta_types::layout::Layout;

use super::{build_options::BuildOptions, gpus, installation::Installation};
use crate::{EngineError, LoadRequest};

/// The request of a run to TensorRT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorRtRequest {
    /// The location of NVIDIA's libraries.
    pub installation: Installation,
    /// The directory of models and data.
    pub scratch: PathBuf,
    /// The directory of built engines.
    pub cache: PathBuf,
    /// Whether an engine that is missing may be built.
    pub builds_missing: bool,
    /// Libraries with plug-ins that the engines need.
    pub plugins: Vec<PathBuf>,
    /// Precision that the engines were built with. `None` accepts any.
    pub precision: Option<Precision>,
    /// Calibration samples or scales that int8 engines must have been built with. `None` accepts any.
    pub calibration: Option<PathBuf>,
    /// Options with which the engines were built.
    pub build: BuildOptions,
    /// Whether an engine's batch size must equal the requested one. Otherwise it may be larger.
    pub exact_batch: bool,
    /// Required type of the input. `None` accepts any.
    pub input_dtype: Option<ElementType>,
    /// Required layout of the input. `None` accepts any.
    pub input_format: Option<Layout>,
    /// The GPUs to use.
    pub gpus: GpuSelection,
    pub gpu: UnitRequest,
    /// The request for each DLA core.
    pub dla: UnitRequest,
    /// The DLA cores to use.
    pub dla_cores: Vec<u32>,
    /// Why no DLA core takes part although the settings request it.
    pub unused_dla: Option<String>,
    /// Batches that a DLA core receives at once and computes in a row.
    pub dla_loops: usize,
    /// Whether to use CUDA graphs for the GPU's usual batch sizes. With `Default`, a failed capture is not an error.
    pub graphs: Graphs,
    /// Whether the device works in host memory. `None` does so on integrated GPUs, which share it.
    pub direct_host_access: Option<bool>,
    /// How a thread waits for its unit.
    pub wait: WaitMode,
}

/// A request to load engines on the units of a machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct TensorRtLoad<'a> {
    /// The model and how it is served.
    pub(super) load: &'a LoadRequest<'a>,
    /// The units.
    pub(super) tensorrt: &'a TensorRtRequest,
}

/// Whether to use CUDA graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Graphs {
    /// Do not use graphs.
    Never,
    /// Use graphs if possible.
    Default,
    /// Use graphs, and fail if that is not possible.
    Requested,
}

/// The request for one kind of unit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnitRequest {
    /// The engine's key or directory. `None` searches the cache.
    pub engine: Option<String>,
    /// Most samples in a batch, if the user set it.
    pub batch: Option<usize>,
    /// Contexts, each with one batch in flight. 0 excludes the unit.
    pub streams: usize,
    /// Streams that the contexts compute on. 0 gives each context its own.
    pub inference_streams: usize,
}

/// A unit of the machine, by CUDA's or TensorRT's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Gpu(u32),
    Dla(u32),
}

impl TensorRtRequest {
    /// Returns the request with GPU numbers instead of "all". Queries CUDA only if no GPU was named.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] without a driver.
    pub fn on_this_machine(&self) -> Result<Self, EngineError> {
        let mut known = self.clone();
        if self.gpus == GpuSelection::All {
            let devices = self
                .installation
                .driver()?
                .devices()
                .map_err(EngineError::tensorrt_unavailable)?;
            known.gpus = GpuSelection::Named(gpus::alike(&devices));
        }
        Ok(known)
    }

    /// Returns the units, GPUs first.
    pub(super) fn units(&self) -> Vec<Unit> {
        let gpus = if self.gpu.streams > 0 {
            self.gpus.numbers()
        } else {
            &[]
        };
        let gpus = gpus.iter().map(|&number| Unit::Gpu(number));
        gpus.chain(self.dla_cores.iter().map(|&core| Unit::Dla(core)))
            .collect()
    }

    /// Returns a unit's name for the evidence.
    pub(super) fn name_of(&self, unit: Unit) -> String {
        match unit {
            Unit::Gpu(_) if self.gpus.numbers().len() == 1 => "gpu".to_owned(),
            Unit::Gpu(number) => format!("gpu{number}"),
            Unit::Dla(core) => format!("dla{core}"),
        }
    }

    pub(super) fn of(&self, unit: Unit) -> &UnitRequest {
        match unit {
            Unit::Gpu(_) => &self.gpu,
            Unit::Dla(_) => &self.dla,
        }
    }

    /// Returns the batch size that the user set for the units that compute, the GPU's first.
    pub(super) fn batch(&self) -> Option<usize> {
        let of_gpu = self.gpu.batch.filter(|_| self.gpu.streams > 0);
        of_gpu.or(self.dla.batch)
    }

    /// Returns the number of streams of all units.
    pub fn streams(&self) -> usize {
        self.units().iter().map(|&unit| self.of(unit).streams).sum()
    }

    /// Returns the number of units.
    pub fn unit_count(&self) -> usize {
        self.units().len()
    }
}
