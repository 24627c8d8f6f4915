//! What a run asks of TensorRT, in the engine's own words, and where NVIDIA's software lies. Loads nothing but that.

use std::path::PathBuf;

use regatta_config::engine_settings::GpuSelection;
use regatta_cuda::{Driver, WaitMode};
use regatta_tensorrt::{
    ElementType, EngineManifest, InstalledTensorRt, Precision, ShimDirectories, TensorRt,
};
use regatta_types::layout::Layout;

use super::gpus;
use crate::engines::EngineError;

/// Bits of a byte count below the MiB, in which `engine build` counts a workspace.
const MIB: u32 = 20;

/// Where NVIDIA's software lies; `None` is where the system has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installation {
    /// The CUDA driver's file.
    pub(crate) cuda: Option<PathBuf>,
    /// TensorRT's directory.
    pub(crate) tensorrt: Option<PathBuf>,
    /// The shims' directories.
    pub(crate) shims: ShimDirectories,
}

impl Installation {
    /// What the environment says of this machine.
    pub(crate) fn of_this_machine() -> Self {
        Self {
            cuda: None,
            tensorrt: None,
            shims: ShimDirectories::from_environment(),
        }
    }

    /// Opens CUDA.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] with what is missing.
    pub(super) fn driver(&self) -> Result<Driver, EngineError> {
        let driver = match &self.cuda {
            None => Driver::open(),
            Some(file) => Driver::open_file(file),
        };
        driver.map_err(EngineError::tensorrt_unavailable)
    }

    /// Opens TensorRT.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] with what is missing.
    pub(super) fn tensorrt(&self) -> Result<TensorRt, EngineError> {
        let installed =
            InstalledTensorRt::find(self.tensorrt.as_deref()).map_err(EngineError::tensorrt_unavailable)?;
        TensorRt::open(&installed, &self.shims).map_err(EngineError::tensorrt_unavailable)
    }
}

/// What a run asks of TensorRT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EngineRequest {
    /// Where NVIDIA's software lies.
    pub(crate) installation: Installation,
    /// Where engines are kept.
    pub(crate) cache: PathBuf,
    /// Types that the engines were allowed to compute in; `None` takes any.
    pub(crate) precision: Option<Precision>,
    /// The workspace that the engines were built with, to the MiB; `None` takes any.
    pub(crate) workspace_bytes: Option<u64>,
    /// Whether an engine's batch must be the one that is asked for, and not larger.
    pub(crate) exact_batch: bool,
    /// Type and layout of the input that the engines must have; `None` takes any.
    pub(crate) input_dtype: Option<ElementType>,
    pub(crate) input_format: Option<Layout>,
    /// Which GPUs.
    pub(crate) gpus: GpuSelection,
    /// Each GPU.
    pub(crate) gpu: UnitRequest,
    /// Each DLA core.
    pub(crate) dla: UnitRequest,
    /// Which DLA cores.
    pub(crate) dla_cores: Vec<u32>,
    /// Batches that a DLA core gets at once and computes one after the other.
    pub(crate) dla_loops: usize,
    /// Whether the GPU's batches of fixed size are CUDA graphs; where that is only usual, failing is no error.
    pub(crate) graphs: Graphs,
    /// Whether the device works in host memory; `None` where that is the same memory.
    pub(crate) direct_host_access: Option<bool>,
    /// How a thread waits for its unit.
    pub(crate) wait: WaitMode,
}

/// Whether graphs are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Graphs {
    /// No.
    Never,
    /// If they can be had.
    Usual,
    /// Yes, by name.
    Requested,
}

/// What is asked of one kind of unit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct UnitRequest {
    /// The engine by key or directory; `None` looks for one that fits.
    pub(crate) engine: Option<String>,
    /// Most samples in a batch, where the user says so.
    pub(crate) batch: Option<usize>,
    /// Contexts, each with a batch in flight; none leaves the unit out.
    pub(crate) streams: usize,
    /// Streams on which they compute; 0 gives each its own.
    pub(crate) inference_streams: usize,
}

/// A unit of the machine, by CUDA's or TensorRT's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Gpu(u32),
    Dla(u32),
}

impl EngineRequest {
    /// The same with every GPU by its number, so that units can be counted. Asks CUDA only where none was named.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] without a driver.
    pub(crate) fn on_this_machine(&self) -> Result<Self, EngineError> {
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

    /// Whether an engine was built with the workspace that is asked for.
    pub(super) fn has_workspace(&self, manifest: &EngineManifest) -> bool {
        let wanted = self.workspace_bytes;
        wanted.is_none_or(|bytes| bytes >> MIB == manifest.workspace_bytes >> MIB)
    }

    /// The flag of `engine build` that makes such an engine.
    pub(super) fn workspace_flag(&self) -> String {
        let wanted = self.workspace_bytes;
        wanted.map_or_else(String::new, |bytes| format!(" --workspace {}", bytes >> MIB))
    }

    /// The units, GPUs first.
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

    /// A unit's name, as evidence tells which unit computed what.
    pub(super) fn name_of(&self, unit: Unit) -> String {
        match unit {
            Unit::Gpu(_) if self.gpus.numbers().len() == 1 => "gpu".to_owned(),
            Unit::Gpu(number) => format!("gpu{number}"),
            Unit::Dla(core) => format!("dla{core}"),
        }
    }

    /// What is asked of a unit.
    pub(super) fn of(&self, unit: Unit) -> &UnitRequest {
        match unit {
            Unit::Gpu(_) => &self.gpu,
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
