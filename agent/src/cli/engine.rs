//! The command line of `engine`: commands, flags and their help.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use regatta_tensorrt::{CalibrationMethod, ElementType, InputScale, InputShape};
use regatta_types::layout::Layout;

use super::Format;

/// The commands for engines.
#[derive(Debug, Subcommand)]
pub(crate) enum EngineCommand {
    /// Build an engine unless the cache has it
    Build(Box<EngineBuildArgs>),
    /// Describe an engine, and show whether this device can run it; exit code 1 if it cannot
    Inspect(EngineInspectArgs),
    /// List the engines of a cache
    List(EngineListArgs),
    /// Remove engines from a cache
    Remove(EngineRemoveArgs),
}

/// The engine cache, and the output format.
#[derive(Debug, Args)]
pub(crate) struct EnginePlace {
    /// Directory of the engine cache
    #[arg(long, value_name = "DIR", default_value = "engines", env = "REGATTA_ENGINES")]
    pub(crate) cache: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Flags of `engine build`.
#[derive(Debug, Args)]
pub(crate) struct EngineBuildArgs {
    /// The ONNX model
    #[arg(long, value_name = "FILE")]
    pub(crate) onnx: PathBuf,
    /// Data types in which the engine may compute
    #[arg(long, value_enum, default_value_t = EnginePrecision::AsInNetwork)]
    pub(crate) precision: EnginePrecision,
    /// Largest batch size; TensorRT optimises the engine for it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub(crate) batch: u32,
    /// Smallest batch size [default: 1; on DLA the same as --batch]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub(crate) min_batch: Option<u32>,
    /// Number of optimisation profiles: one for each context that runs at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) profiles: u32,
    /// Workspace in MiB [default: TensorRT's limit]
    #[arg(long, value_name = "MIB")]
    pub(crate) workspace: Option<u32>,
    /// TensorRT's builder optimisation level [default: TensorRT's level]
    #[arg(long, value_name = "0-5", value_parser = clap::value_parser!(u32).range(0..=5))]
    pub(crate) level: Option<u32>,
    /// Build for this DLA core instead of the GPU; needs --precision fp16 or int8
    #[arg(long, value_name = "CORE", value_parser = clap::value_parser!(u32).range(0..=15))]
    pub(crate) dla_core: Option<u32>,
    /// Fail if DLA cannot run a layer, instead of running that layer on the GPU
    #[arg(long, requires = "dla_core")]
    pub(crate) no_fallback: bool,
    /// Managed SRAM per DLA core in KiB, a power of two of at least 4, or 0 for TensorRT's choice [default: 1024]
    #[arg(long, value_name = "KIB", requires = "dla_core")]
    pub(crate) dla_sram: Option<u32>,
    /// Shape of an input with dynamic dimensions, without the batch, for example input_ids=384; repeatable, also for one
    /// input, which then has a profile for each shape
    #[arg(long = "input-shape", value_name = "[NAME=]D,D,...")]
    pub(crate) input_shapes: Vec<InputShape>,
    /// Take the input shapes from a benchmark file
    #[arg(long, value_name = "FILE", conflicts_with = "input_shapes")]
    pub(crate) benchmark_file: Option<PathBuf>,
    /// A library with TensorRT plug-ins that the network needs; repeatable
    #[arg(long = "plugins", value_name = "FILE")]
    pub(crate) plugins: Vec<PathBuf>,
    /// Data type of every input [default: the network's]
    #[arg(long, value_name = "fp32|fp16|int8|int32|int64")]
    pub(crate) input_dtype: Option<ElementType>,
    /// Layout of every input: linear, chw4 or another; on DLA also dla_hwc4
    #[arg(long, value_name = "FORMAT")]
    pub(crate) input_format: Option<Layout>,
    /// Scale of the samples that an int8 input takes, as `regatta prep` made them [default: the calibration's]
    #[arg(long, value_name = "[NAME=]SCALE", requires = "input_dtype")]
    pub(crate) input_scale: Option<InputScale>,
    /// Data type of every output [default: the network's]
    #[arg(long, value_name = "fp32|fp16|int8|int32|int64")]
    pub(crate) output_dtype: Option<ElementType>,
    /// Layout of every output; runs need linear outputs
    #[arg(long, value_name = "FORMAT")]
    pub(crate) output_format: Option<Layout>,
    /// A calibration cache in TensorRT's text format, for --precision int8
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration_cache: Option<PathBuf>,
    /// Samples for the calibration of --precision int8: a directory of .npy files, one .npy of all samples, or the output of
    /// `regatta prep`
    #[arg(long, value_name = "PATH", conflicts_with = "calibration_cache")]
    pub(crate) calibration_samples: Option<PathBuf>,
    /// How TensorRT finds scales: entropy or min-max [default: entropy; with --calibration-cache, the method that made it]
    #[arg(long, value_name = "METHOD", value_parser = calibration_method)]
    pub(crate) calibration_method: Option<CalibrationMethod>,
    /// Calibrate again and build again, although the cache has scales of these samples
    #[arg(long, requires = "calibration_samples")]
    pub(crate) force_calibration: bool,
    /// A list of the calibration samples, as MLCommons': one name per line, or one index per line for a single .npy
    #[arg(long, value_name = "FILE", requires = "calibration_samples")]
    pub(crate) calibration_list: Option<PathBuf>,
    /// Build even if memory seems too small
    #[arg(long)]
    pub(crate) ignore_memory: bool,
    /// Directory of TensorRT's libraries [default: the newest that is installed]
    #[arg(long, value_name = "DIR")]
    pub(crate) tensorrt: Option<PathBuf>,
    /// Cache and format
    #[command(flatten)]
    pub(crate) place: EnginePlace,
}

/// Flags of `engine inspect`.
#[derive(Debug, Args)]
pub(crate) struct EngineInspectArgs {
    /// The engine: its key in the cache, or its directory
    #[arg(value_name = "ENGINE")]
    pub(crate) engine: PathBuf,
    /// A library with TensorRT plug-ins that the engine needs; repeatable
    #[arg(long = "plugins", value_name = "FILE")]
    pub(crate) plugins: Vec<PathBuf>,
    /// Directory of TensorRT's libraries [default: the newest that is installed]
    #[arg(long, value_name = "DIR")]
    pub(crate) tensorrt: Option<PathBuf>,
    /// Cache and format
    #[command(flatten)]
    pub(crate) place: EnginePlace,
}

/// Flags of `engine list`.
#[derive(Debug, Args)]
pub(crate) struct EngineListArgs {
    /// Cache and format
    #[command(flatten)]
    pub(crate) place: EnginePlace,
}

/// Flags of `engine remove`.
#[derive(Debug, Args)]
pub(crate) struct EngineRemoveArgs {
    /// Keys of engines, as `engine list` shows them
    #[arg(
        value_name = "ENGINE",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub(crate) engines: Vec<String>,
    /// Remove all engines
    #[arg(long)]
    pub(crate) all: bool,
    /// Directory of the engine cache
    #[arg(long, value_name = "DIR", default_value = "engines", env = "REGATTA_ENGINES")]
    pub(crate) cache: PathBuf,
}

/// Parses a value of the setting `calibration_method`.
fn calibration_method(word: &str) -> Result<CalibrationMethod, String> {
    let methods = [CalibrationMethod::Entropy, CalibrationMethod::MinMax];
    let named = methods.into_iter().find(|method| method.as_str() == word);
    named.ok_or_else(|| "must be entropy or min-max".to_owned())
}

/// `regatta_tensorrt::Precision`, as words of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EnginePrecision {
    /// The types in the network, including Q/DQ layers
    AsInNetwork,
    /// 16-bit floats allowed
    Fp16,
    /// 8-bit integers and 16-bit floats allowed
    Int8,
}
