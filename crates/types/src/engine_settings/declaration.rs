//! The declaration of every engine setting, once: [`EngineSettings`] and [`SETTINGS`] come from it. A new setting is one entry
//! here, and the line of the harness or engine that reads its field. Recorded runs contain settings, so one that was released stays declared.

use std::time::Duration;

use super::{
    loopback_address::LoopbackAddress,
    search::{
        Bound::{DlaCores, Number, Processors, SamplesPerQuery},
        SearchRule, SearchValues,
    },
    sequence_lengths::SequenceLengths,
    units::{BoardName, GpuSelection, SimUnits},
    value::{
        CalibrationMethod, Dispatch, EngineBuild, EnginePrecision, InnerPath, InnerPaths, InputType,
        OnnxRuntimeOptimization, OnnxRuntimeProvider, SettingType, SettingValue, Sharing, TimingWait,
        ValueType::{self, Boolean, Text, Word},
    },
};
use crate::{
    EngineKind::{self, Null, Onnxruntime, Server as ModelServer, Sim, Tensorrt, Tract},
    Scenario::{self, MultiStream, Offline, Server, SingleStream},
    layout::Layout,
};

/// One setting as it is declared.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The name on the command line, in plans and in systems files.
    pub name: &'static str,
    /// Type and range.
    pub value_type: ValueType,
    /// The default, in words.
    pub default: &'static str,
    /// The engines that the setting acts on.
    pub engines: &'static [EngineKind],
    /// The engines that accept the setting and ignore it.
    pub ignored_by: &'static [EngineKind],
    /// The scenarios that the setting acts in. It is accepted in the others.
    pub scenarios: &'static [Scenario],
    /// What the setting does, in one line.
    pub doc: &'static str,
    /// Where name and meaning come from.
    pub source: SettingSource,
    /// What `regatta-agent tune` tries; the first rule of an engine and scenario applies.
    pub search: &'static [SearchRule],
    /// Sets its field; false where the value is not of the field's type.
    pub(super) set: fn(&mut EngineSettings, &SettingValue) -> bool,
    /// The value of its field.
    pub(super) get: fn(&EngineSettings) -> Option<SettingValue>,
}

/// Where a setting's name and meaning come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingSource {
    /// NVIDIA's harness (LWIS): the same name with the same meaning.
    Lwis,
    /// Regatta.
    Regatta,
}

impl SettingSource {
    /// The name in JSON and in the documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lwis => "NVIDIA",
            Self::Regatta => "Regatta",
        }
    }
}

/// Declares settings: the fields of [`EngineSettings`] with their types, and the entries of [`SETTINGS`].
macro_rules! declare {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty { $($field:ident: $value:expr,)* })*) => {
        /// Settings of engine and harness, typed. `None` leaves a setting to the engine.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct EngineSettings {
            $($(#[doc = $doc])+ pub $name: Option<$type>,)*
        }

        impl EngineSettings {
            /// Returns these settings, with the values of `fallback` for those that are not set.
            #[must_use]
            pub fn or(self, fallback: Self) -> Self {
                Self { $($name: self.$name.or(fallback.$name),)* }
            }
        }

        /// Every setting, in the order in which they are listed.
        pub static SETTINGS: &[Setting] = &[$({
            const DECLARED: Setting = Setting {
                name: stringify!($name),
                doc: concat!($($doc),+).trim_ascii_start(),
                $($field: $value,)*
                set: |settings, value| {
                    settings.$name = <$type as SettingType>::from_value(value);
                    settings.$name.is_some()
                },
                get: |settings| settings.$name.as_ref().map(SettingType::value),
                ..UNDECLARED
            };
            DECLARED
        }),*];
    };
}

/// Defaults for the optional keys of a declaration.
const UNDECLARED: Setting = Setting {
    name: "",
    value_type: Boolean,
    default: "the engine's",
    engines: &EngineKind::ALL,
    ignored_by: &[],
    scenarios: &Scenario::ALL,
    doc: "",
    source: SettingSource::Regatta,
    search: &[],
    set: |_, _| false,
    get: |_| None,
};

/// Engines with a GPU and DLA cores.
const UNITS: &[EngineKind] = &[Tensorrt, Sim];
/// Scenarios with more than one sample under way.
const SEVERAL_SAMPLES: &[Scenario] = &[MultiStream, Server, Offline];
/// Scenarios with more than one query or batch under way.
const SEVERAL_BATCHES: &[Scenario] = &[Server, Offline];

const BATCH: ValueType = integer(1, 1_048_576, "an integer");
const STREAMS: ValueType = integer(1, 64, "an integer");
const CORES: ValueType = integer(0, 15, "an integer");

const fn integer(min: u64, max: u64, noun: &'static str) -> ValueType {
    ValueType::Integer { min, max, noun }
}

const fn number(min: f64, max: f64, noun: &'static str) -> ValueType {
    ValueType::Number { min, max, noun }
}

/// A rule for engines with units.
const fn on_units(
    scenarios: &'static [Scenario],
    values: SearchValues,
    first: &'static [super::Bound],
) -> SearchRule {
    SearchRule {
        engines: UNITS,
        scenarios,
        values,
        first,
        needs_dla: false,
    }
}

/// A rule for engines with DLA cores.
const fn on_dla(
    scenarios: &'static [Scenario],
    values: SearchValues,
    first: &'static [super::Bound],
) -> SearchRule {
    SearchRule {
        needs_dla: true,
        ..on_units(scenarios, values, first)
    }
}

/// A rule for engines whose streams are threads.
const fn on_threads(
    scenarios: &'static [Scenario],
    values: SearchValues,
    first: &'static [super::Bound],
) -> SearchRule {
    SearchRule {
        engines: &[Tract, Onnxruntime],
        ..on_units(scenarios, values, first)
    }
}

declare! {
    /// Most samples in a batch; on `tensorrt` where `gpu_batch_size` or `dla_batch_size` is not set.
    batch_size: usize {
        value_type: BATCH,
        default: "by scenario",
        scenarios: SEVERAL_SAMPLES,
        search: &[
            on_threads(&[MultiStream], SearchValues::Doublings(SamplesPerQuery), &[Number(1), SamplesPerQuery]),
            on_threads(&[Server], SearchValues::Doublings(Number(16)), &[Number(1)]),
            on_threads(&[Offline], SearchValues::Doublings(Number(128)), &[Number(2), Number(16), Number(64)]),
        ],
    }

    /// Most windows of a volume in a batch; on `tensorrt` where `gpu_batch_size` is not set.
    window_batch: usize {
        value_type: integer(1, 1024, "an integer"),
        default: "1",
        engines: &[Tract, Onnxruntime, Tensorrt],
        ignored_by: &[Null, Sim],
    }

    /// Lengths in tokens at which sequences are computed; each sample takes the shortest that holds it.
    sequence_lengths: SequenceLengths {
        value_type: Text("ascending numbers of tokens separated by commas, such as 128,192,384"),
        default: "the full length, which is always one of them",
        engines: &[Tract, Onnxruntime, Tensorrt],
        ignored_by: &[Null, Sim],
    }

    /// Batches that are computed at the same time, each on its own thread.
    inference_streams: usize {
        value_type: integer(1, 256, "an integer"),
        default: "1; `sim`: all that its units have, in MultiStream one per unit",
        scenarios: SEVERAL_SAMPLES,
        search: &[on_threads(SEVERAL_SAMPLES, SearchValues::Doublings(Processors), &[Number(1), Processors])],
    }

    /// Most samples in a batch of a GPU.
    gpu_batch_size: usize {
        value_type: BATCH,
        default: "the engine's; with `sim_board`, the board's",
        engines: UNITS,
        source: SettingSource::Lwis,
        search: &[
            on_units(&[SingleStream], SearchValues::Numbers(&[1]), &[Number(1)]),
            on_units(&[MultiStream], SearchValues::Doublings(SamplesPerQuery), &[SamplesPerQuery]),
            on_units(&[Server], SearchValues::Doublings(Number(64)), &[Number(1), Number(8)]),
            on_units(&[Offline], SearchValues::Doublings(Number(512)), &[Number(8), Number(64), Number(256)]),
        ],
    }

    /// Batches in flight on each GPU, each with its own buffers; in MultiStream at most the batches of a query.
    gpu_copy_streams: usize {
        value_type: STREAMS,
        default: "`inference_streams`, else 1; with `sim_board`, the board's",
        engines: UNITS,
        scenarios: SEVERAL_SAMPLES,
        source: SettingSource::Lwis,
        search: &[on_units(SEVERAL_SAMPLES, SearchValues::Numbers(&[1, 2, 4]), &[Number(2)])],
    }

    /// Streams on which the batches of a GPU are computed.
    gpu_inference_streams: usize {
        value_type: STREAMS,
        default: "one per batch in flight",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
        scenarios: SEVERAL_SAMPLES,
        source: SettingSource::Lwis,
    }

    /// Most DLA cores that take part.
    max_dlas: usize {
        value_type: CORES,
        default: "all of a modelled board; `tensorrt`: those that it finds, at most 2, if `dla_batch_size`, `dla_engine` or `no_gpu` is set, otherwise 0",
        engines: UNITS,
        scenarios: SEVERAL_SAMPLES,
        source: SettingSource::Lwis,
        search: &[on_dla(SEVERAL_SAMPLES, SearchValues::UpTo(DlaCores), &[Number(0), DlaCores])],
    }

    /// Most samples in a batch of a DLA core.
    dla_batch_size: usize {
        value_type: BATCH,
        default: "the engine's; with `sim_board`, the board's",
        engines: UNITS,
        scenarios: SEVERAL_SAMPLES,
        source: SettingSource::Lwis,
        search: &[
            on_dla(&[MultiStream], SearchValues::Doublings(SamplesPerQuery), &[Number(8)]),
            on_dla(&[Server], SearchValues::Doublings(Number(8)), &[Number(8)]),
            on_dla(&[Offline], SearchValues::Doublings(Number(32)), &[Number(8)]),
        ],
    }

    /// Batches in flight on each DLA core.
    dla_copy_streams: usize {
        value_type: STREAMS,
        default: "`inference_streams`, else 1; with `sim_board`, the board's",
        engines: UNITS,
        scenarios: SEVERAL_BATCHES,
        source: SettingSource::Lwis,
        search: &[on_dla(SEVERAL_SAMPLES, SearchValues::Numbers(&[1, 2, 4]), &[Number(2)])],
    }

    /// Streams on which the batches of a DLA core are computed.
    dla_inference_streams: usize {
        value_type: STREAMS,
        default: "one per batch in flight",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
        scenarios: SEVERAL_BATCHES,
        source: SettingSource::Lwis,
    }

    /// Batches that a DLA core takes together and computes one after the other, each with the complete network.
    dla_enqueue_count: usize {
        value_type: STREAMS,
        default: "1",
        engines: UNITS,
        scenarios: SEVERAL_SAMPLES,
        search: &[on_dla(&[Offline], SearchValues::Numbers(&[1, 2, 4]), &[Number(1)])],
    }

    /// The DLA core that computes alone, without the GPU.
    dla_core: usize {
        value_type: CORES,
        default: "none",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
        source: SettingSource::Lwis,
    }

    /// Whether the DLA cores compute without the GPU, all or `max_dlas` of them; in SingleStream the first one.
    no_gpu: bool {
        default: "false",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
        source: SettingSource::Lwis,
    }

    /// Whether batches of 1, and in MultiStream a query or its portions, are launched as CUDA graphs.
    use_graphs: bool {
        default: "true in SingleStream and MultiStream where the engine allows it, else false",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
        source: SettingSource::Lwis,
        search: &[SearchRule {
            engines: &[Tensorrt],
            ..on_units(&Scenario::ALL, SearchValues::Words(&["true", "false"]), &[])
        }],
    }

    /// Whether a stream's thread spins while its unit computes, instead of sleeping.
    use_spin_wait: bool {
        default: "false",
        engines: UNITS,
        source: SettingSource::Lwis,
        search: &[on_units(&Scenario::ALL, SearchValues::Words(&["false", "true"]), &[])],
    }

    /// Whether engines read and write the host's memory without a copy; on `sim`, copies take no time.
    use_direct_host_access: bool {
        default: "true where GPU and host share memory; a modelled board's copies",
        engines: UNITS,
        source: SettingSource::Lwis,
    }

    /// Whether each batch in flight has its own stream, in place of `gpu_inference_streams` and `dla_inference_streams`.
    run_infer_on_copy_streams: bool {
        default: "false",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
        scenarios: SEVERAL_BATCHES,
        source: SettingSource::Lwis,
    }

    /// The GPUs that take part; `all` means those of the first one's kind.
    gpus: GpuSelection {
        value_type: Text("`all`, or CUDA's numbers of GPUs separated by commas, such as 0,2"),
        default: "`all`; in SingleStream the first of them",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
    }

    /// Libraries with TensorRT plug-ins that the engine needs, beside those of the benchmark's file.
    tensorrt_plugins: InnerPaths {
        value_type: Text("paths below the scratch directory separated by commas, such as plugins/libnms.so"),
        default: "none",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
    }

    /// The GPU's engine, by its key in the cache or by its directory.
    gpu_engine: String {
        value_type: Text("an engine's key, or its directory; for several networks all, separated by commas"),
        default: "the one that fits",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
    }

    /// The DLA cores' engine, by its key in the cache or by its directory.
    dla_engine: String {
        value_type: Text("an engine's key, or its directory"),
        default: "the one that fits",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
    }

    /// Whether the device builds a `missing` engine before the run, `never`, or all of them anew with new INT8 scales (`recalibrate`).
    engine_build: EngineBuild {
        value_type: Word(EngineBuild::WORDS),
        default: "`missing`",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
    }

    /// The workspace in bytes that engines must have been built with, compared in MiB; on Jetson at most half of the memory.
    workspace_size: u64 {
        value_type: integer(0, u64::MAX, "a number of bytes"),
        default: "any",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
        source: SettingSource::Lwis,
    }

    /// TensorRT's level of optimisation that engines must have been built with; TensorRT 8.5 has none.
    builder_optimization_level: u8 {
        value_type: integer(0, 5, "a level"),
        default: "any; TensorRT's own in a build",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
    }

    /// The managed SRAM in bytes of each core that DLA engines must have been built with, a power of two, or 0 for TensorRT's choice.
    dla_sram_size: u64 {
        value_type: integer(0, 1 << 30, "a number of bytes"),
        default: "any; 1048576 in a build, as in NVIDIA's harness",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
    }

    /// Whether the GPU computes the layers that DLA cannot; without it, such a network is refused.
    dla_gpu_fallback: bool {
        default: "any; true in a build",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
    }

    /// Whether engines must have the requested batch sizes, and no larger ones.
    exact_batch: bool {
        default: "false",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
    }

    /// The precision that engines must have been built for.
    precision: EnginePrecision {
        value_type: Word(EnginePrecision::WORDS),
        default: "any",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
        source: SettingSource::Lwis,
    }

    /// Calibration of `int8` engines, the default `precision` with it: samples, or scales in a file that ends in `.cache`.
    calibration: InnerPath {
        value_type: Text("a path below the scratch directory"),
        default: "none",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
    }

    /// How TensorRT finds the scales of calibration samples; scales in a file are those of the method that made them.
    calibration_method: CalibrationMethod {
        value_type: Word(CalibrationMethod::WORDS),
        default: "any; `entropy` in a calibration",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
    }

    /// The type of input that engines must take; samples of it are used where they were made.
    input_dtype: InputType {
        value_type: Word(InputType::WORDS),
        default: "any",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
        source: SettingSource::Lwis,
    }

    /// The layout of input that engines must take; samples of it are used where they were made.
    input_format: Layout {
        value_type: Word(&Layout::WORDS),
        default: "any",
        engines: &[Tensorrt],
        ignored_by: &[Sim],
        source: SettingSource::Lwis,
    }

    /// The ONNX Runtime on the device: the file of its library, or a directory or Python environment that contains it.
    onnxruntime_library: String {
        value_type: Text("a path on the device"),
        default: "`ORT_DYLIB_PATH`, else the active Python environment's, else the system's",
        engines: &[Onnxruntime],
        ignored_by: &[Null, Sim],
    }

    /// The part of ONNX Runtime that computes; what it does not have is computed by the following ones of `tensorrt`, `cuda`, `cpu`.
    onnxruntime_provider: OnnxRuntimeProvider {
        value_type: Word(OnnxRuntimeProvider::WORDS),
        default: "`cpu`",
        engines: &[Onnxruntime],
        ignored_by: &[Null, Sim],
    }

    /// Threads that compute a batch on the CPU: the stream's and others, which all streams share.
    onnxruntime_threads: usize {
        value_type: integer(1, 256, "an integer"),
        default: "1",
        engines: &[Onnxruntime],
        ignored_by: &[Null, Sim],
        search: &[SearchRule {
            engines: &[Onnxruntime],
            ..on_units(&[SingleStream], SearchValues::Doublings(Processors), &[Number(1), Processors])
        }],
    }

    /// How far ONNX Runtime changes a network before it computes it.
    onnxruntime_optimization: OnnxRuntimeOptimization {
        value_type: Word(OnnxRuntimeOptimization::WORDS),
        default: "`all`",
        engines: &[Onnxruntime],
        ignored_by: &[Null, Sim],
    }

    /// The driver of the model server: how it is started, and how requests to it are written.
    server: String {
        value_type: Text("a driver such as llama-cpp, or the path of a driver's file on the device"),
        default: "none: it must be set",
        engines: &[ModelServer],
        ignored_by: &[Null, Sim],
    }

    /// The file or directory that the server loads.
    server_model: InnerPath {
        value_type: Text("a path below the scratch directory"),
        default: "the benchmark's model file",
        engines: &[ModelServer],
        ignored_by: &[Null, Sim],
    }

    /// The address of a model server that already runs on the device. The run uses it, does not start one, and leaves it running.
    server_address: LoopbackAddress {
        value_type: Text("an address of the device itself with a port, such as 127.0.0.1:8080; a server on another machine is not measured"),
        default: "none: the device starts the server",
        engines: &[ModelServer],
        ignored_by: &[Null, Sim],
    }

    /// The port that the server listens on.
    server_port: u16 {
        value_type: integer(1, 65_535, "the number of a port"),
        default: "a free one; `endpoints run --device`: 8080",
        engines: &[ModelServer],
        ignored_by: &[Null, Sim],
    }

    /// The tokens that the server keeps for all requests at a time.
    server_context: usize {
        value_type: integer(1, 1 << 32, "a number of tokens"),
        default: "those of the longest prompts and answers; `endpoints run --device`: 32768",
        engines: &[ModelServer],
        ignored_by: &[Null, Sim],
    }

    /// Instances of the network that Triton computes at the same time, on each GPU that it uses.
    instance_group_count: usize {
        value_type: STREAMS,
        default: "Triton's",
        engines: &[ModelServer],
        ignored_by: &[Null, Sim],
        source: SettingSource::Lwis,
    }

    /// The batch size that Triton's dynamic batching makes of requests.
    preferred_batch_size: usize {
        value_type: BATCH,
        default: "none; without `max_queue_delay_usec`, Triton's backend decides",
        engines: &[ModelServer],
        ignored_by: &[Null, Sim],
        source: SettingSource::Lwis,
    }

    /// Microseconds that a request may wait in Triton for a fuller batch.
    max_queue_delay_usec: u64 {
        value_type: integer(0, u64::MAX, "a number of microseconds"),
        default: "0; without `preferred_batch_size`, Triton's backend decides",
        engines: &[ModelServer],
        ignored_by: &[Null, Sim],
        source: SettingSource::Lwis,
    }

    /// Whether LoadGen's thread computes (`direct`), or a thread per stream behind a queue (`worker`).
    dispatch: Dispatch {
        value_type: Word(Dispatch::WORDS),
        default: "by scenario; `null` with one stream `direct`",
    }

    /// How units share samples: so that they finish `together`, or `first-free` as in NVIDIA's harness.
    sharing: Sharing {
        value_type: Word(Sharing::WORDS),
        default: "`together`",
        engines: UNITS,
        ignored_by: &[Null, Tract, Onnxruntime],
        scenarios: &[MultiStream, Offline],
    }

    /// Microseconds after its arrival that a query may wait for a fuller batch; NVIDIA's harness counts later.
    deque_timeout_usec: u64 {
        value_type: integer(0, u64::MAX, "a number of microseconds"),
        default: "0",
        scenarios: &[Server],
        source: SettingSource::Lwis,
    }

    /// Seconds that each stream computes blank samples before LoadGen begins; as long again to time several units.
    warmup_duration: Duration {
        value_type: number(0.0, 3600.0, "a number of seconds"),
        default: "0.5; `null` and `sim`: 0",
        source: SettingSource::Lwis,
    }

    /// The processor that LoadGen's issuing thread is pinned to.
    timing_cpu: usize {
        value_type: integer(0, u64::MAX, "the number of a processor"),
        default: "none",
    }

    /// The real-time priority of that thread (`SCHED_FIFO`) while time is measured.
    timing_priority: u8 {
        value_type: integer(1, 99, "a real-time priority"),
        default: "none",
    }

    /// How that thread waits; the MLCommons LoadGen always blocks.
    timing_wait: TimingWait {
        value_type: Word(TimingWait::WORDS),
        default: "`block`",
        search: &[SearchRule {
            engines: &[Tract, Onnxruntime, Tensorrt, Sim],
            ..on_units(&[SingleStream, MultiStream, Server], SearchValues::Words(TimingWait::WORDS), &[])
        }],
    }

    /// Seconds without any response after which a run ends and is INVALID.
    stall_timeout: Duration {
        value_type: number(1.0, 86_400.0, "a number of seconds"),
        default: "1800",
    }

    /// The modelled units, with microseconds per batch and per sample.
    sim_units: SimUnits {
        value_type: Text("units as NAME=BASE+PER_SAMPLE in microseconds, separated by commas, such as gpu=400+60,dla0=900+210"),
        default: "`gpu=400+200`",
        engines: &[Sim],
    }

    /// The modelled board: one of `configs/simulated-boards`, or the path of such a file on the device.
    sim_board: BoardName {
        value_type: Text("a modelled board such as agx-orin.resnet50, or the path of a board's file"),
        default: "none",
        engines: &[Sim],
    }

    /// Spread of the modelled service times, as a share of them.
    sim_jitter: f64 {
        value_type: number(0.0, 1.0, "a share"),
        default: "0; with `sim_board`, the board's",
        engines: &[Sim],
    }

    /// Seed of that spread.
    sim_seed: u64 {
        value_type: integer(0, u64::MAX, "an integer"),
        default: "0",
        engines: &[Sim],
    }
}
