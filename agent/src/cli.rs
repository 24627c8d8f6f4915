//! The agent's command line: words, flags and their help. Checks single words; what needs two of them, or a file, is
//! checked by the commands.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use regatta_tensorrt::{ElementType, InputShape};
use regatta_types::{
    Mode, Scenario,
    documents::{EngineKind, LoadgenChoice, PowerSetting},
    layout::Layout,
};

use regatta_text::HumanDuration;

/// Runs MLPerf Inference on this device.
#[derive(Debug, Parser)]
#[command(name = "regatta-agent", version, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The agent's commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs the headless daemon: takes runs from the coordinator and delivers their logs
    Serve(ServeArgs),
    /// Joins a lab: uses a token of `regatta device add`, once
    #[command(alias = "enrol")]
    Enroll(EnrollArgs),
    /// Says who this device is: its id, its key, the lab that it is enrolled in
    Identity(IdentityArgs),
    /// Runs one benchmark here and now, without a coordinator
    Bench(Box<BenchArgs>),
    /// Looks for the settings that run benchmarks best on this board, and writes them as a system's file
    Tune(Box<TuneArgs>),
    /// Runs one run as a process of its own (what `serve` and a power client start)
    Exec(ExecArgs),
    /// Builds TensorRT engines from ONNX models, and looks at them
    #[command(subcommand)]
    Engine(EngineCommand),
    /// Says what this board is and whether it is fit to measure; exit code 1 when it is not
    Doctor(DoctorArgs),
    /// Says what CUDA finds, as JSON (what `serve` and `doctor` start)
    #[command(hide = true)]
    Gpus,
}

/// What can be done with engines.
#[derive(Debug, Subcommand)]
pub(crate) enum EngineCommand {
    /// Builds an engine, or finds it in the cache
    Build(Box<EngineBuildArgs>),
    /// Says what an engine is and whether it runs here; exit code 1 when it does not
    Inspect(EngineInspectArgs),
    /// Lists the engines of a cache
    List(EngineListArgs),
}

/// Where engines are kept, and how results are printed.
#[derive(Debug, Args)]
pub(crate) struct EnginePlace {
    /// Where engines are kept
    #[arg(long, value_name = "DIR", default_value = "engines", env = "REGATTA_ENGINES")]
    pub(crate) cache: PathBuf,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Flags of `engine build`.
#[derive(Debug, Args)]
pub(crate) struct EngineBuildArgs {
    /// The model
    #[arg(long, value_name = "FILE")]
    pub(crate) onnx: PathBuf,
    /// Types that the engine may compute in
    #[arg(long, value_enum, default_value_t = EnginePrecision::AsInNetwork)]
    pub(crate) precision: EnginePrecision,
    /// Largest batch, which the engine is tuned for
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub(crate) batch: u32,
    /// Smallest batch; by default 1, on DLA the same as --batch
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub(crate) min_batch: Option<u32>,
    /// Optimisation profiles: one for each context that is to run at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) profiles: u32,
    /// Workspace in MiB; by default TensorRT's own limit
    #[arg(long, value_name = "MIB")]
    pub(crate) workspace: Option<u32>,
    /// Builder optimisation level
    #[arg(long, value_name = "0-5", value_parser = clap::value_parser!(u32).range(0..=5))]
    pub(crate) level: Option<u32>,
    /// Builds for this DLA core in place of the GPU; computes in fp16 and int8 alone, so goes with --precision
    #[arg(long, value_name = "CORE", value_parser = clap::value_parser!(u32).range(0..=15))]
    pub(crate) dla_core: Option<u32>,
    /// A layer that DLA cannot run is an error and does not go to the GPU
    #[arg(long, requires = "dla_core")]
    pub(crate) no_fallback: bool,
    /// Managed SRAM per DLA core in KiB; NVIDIA's harness uses 1024 on Orin
    #[arg(long, value_name = "KIB", requires = "dla_core")]
    pub(crate) dla_sram: Option<u32>,
    /// What the model leaves free of an input besides the batch, such as input_ids=384; may stand more than once
    #[arg(long = "input-shape", value_name = "[NAME=]D,D,...")]
    pub(crate) input_shapes: Vec<InputShape>,
    /// Takes the shapes of the inputs from a benchmark's description
    #[arg(long, value_name = "FILE", conflicts_with = "input_shapes")]
    pub(crate) benchmark_file: Option<PathBuf>,
    /// Type of every input; by default the network's
    #[arg(long, value_name = "fp32|fp16|int8|int32|int64")]
    pub(crate) input_dtype: Option<ElementType>,
    /// Layout of every input, such as linear, chw4 or, on DLA, dla_hwc4
    #[arg(long, value_name = "FORMAT")]
    pub(crate) input_format: Option<Layout>,
    /// Type of every output; by default the network's
    #[arg(long, value_name = "fp32|fp16|int8|int32|int64")]
    pub(crate) output_dtype: Option<ElementType>,
    /// Layout of every output; only linear ones can be answers of a run
    #[arg(long, value_name = "FORMAT")]
    pub(crate) output_format: Option<Layout>,
    /// A calibration cache in TensorRT's text format, for --precision int8
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration_cache: Option<PathBuf>,
    /// Finds the scales of --precision int8 over these samples: a directory of .npy files, one .npy of many, or what `regatta prep` made
    /// for a network of several inputs
    #[arg(long, value_name = "PATH", conflicts_with = "calibration_cache")]
    pub(crate) calibration_samples: Option<PathBuf>,
    /// Which of the samples: a name per line, or a number where one .npy holds many, as in MLCommons' calibration lists
    #[arg(long, value_name = "FILE", requires = "calibration_samples")]
    pub(crate) calibration_list: Option<PathBuf>,
    /// Builds although memory looks too small
    #[arg(long)]
    pub(crate) ignore_memory: bool,
    /// Where TensorRT lies; by default the system's newest
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
    /// Where TensorRT lies; by default the system's newest
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

/// `regatta_tensorrt::Precision`, as words of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EnginePrecision {
    /// As the network says, Q/DQ layers included
    AsInNetwork,
    /// 16-bit floats allowed
    Fp16,
    /// 8-bit integers and 16-bit floats allowed
    Int8,
}

/// Flags of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The agent's configuration file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
}

/// Flags of `enroll`.
#[derive(Debug, Args)]
pub(crate) struct EnrollArgs {
    /// The agent's configuration file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// The token; `-` reads it from standard input, where no list of processes shows it
    #[arg(value_name = "TOKEN")]
    pub(crate) token: String,
}

/// Flags of `identity`.
#[derive(Debug, Args)]
pub(crate) struct IdentityArgs {
    /// The agent's configuration file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// How it is printed
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
}

/// Flags of `exec`.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The run's spec.json; its directory is the run's directory
    #[arg(value_name = "SPEC")]
    pub(crate) spec: PathBuf,
    /// Where models and preprocessed data lie
    #[arg(long, value_name = "DIR", env = "MLPERF_SCRATCH_PATH")]
    pub(crate) scratch: Option<PathBuf>,
}

/// Flags of `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// What computes the answers: null, tract, tensorrt or sim
    #[arg(long, value_name = "ENGINE")]
    pub(crate) sut: EngineKind,
    /// The benchmark's name; null and sim take any name where both sample counts are given
    #[arg(long, value_name = "NAME")]
    pub(crate) model: String,
    /// SingleStream, MultiStream, Offline or Server
    #[arg(long, value_name = "SCENARIO")]
    pub(crate) scenario: Scenario,
    /// AccuracyOnly, PerformanceOnly, SubmissionRun or FindPeakPerformance
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Mode,
    /// Plays the part of the conf that is compiled into the official LoadGen: the only place that seeds are read from
    #[arg(long, value_name = "FILE")]
    pub(crate) mlperf_conf: PathBuf,
    /// The tuning of this machine
    #[arg(long, value_name = "FILE")]
    pub(crate) user_conf: PathBuf,
    /// A compliance test's audit.config
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_conf: Option<PathBuf>,
    /// A shorter or longer run than the conf files ask for, such as 3s (units: ms, s, m, h)
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<HumanDuration>,
    /// native, official or official:REVISION
    #[arg(long, value_name = "LOADGEN", default_value_t = LoadgenChoice::Native)]
    pub(crate) loadgen: LoadgenChoice,
    /// Samples in the whole set, where no dataset says so
    #[arg(long, value_name = "N", requires = "performance_samples")]
    pub(crate) total_samples: Option<usize>,
    /// Samples that fit into memory together, where no dataset says so
    #[arg(long, value_name = "N", requires = "total_samples")]
    pub(crate) performance_samples: Option<usize>,
    /// An engine's setting; may stand more than once
    #[arg(long = "setting", value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) settings: Vec<(String, String)>,
    /// Whose values for the benchmark are taken: a system's name, a file that ends in .toml, or auto for this board's
    #[arg(long, value_name = "SYSTEM")]
    pub(crate) system: Option<String>,
    /// The state of the board that those values are for: MaxP or MaxQ
    #[arg(long, value_name = "STATE", default_value = "MaxP")]
    pub(crate) power_setting: PowerSetting,
    /// Where LoadGen's logs are to lie
    #[arg(long, value_name = "DIR")]
    pub(crate) log_dir: PathBuf,
    /// Writes the sample indices as issued: u64 little-endian, u64::MAX after each query (null only)
    #[arg(long, value_name = "FILE")]
    pub(crate) issue_log: Option<PathBuf>,
    /// Writes the units' service times as measured in the warm-up, as a board for `sim_board` (tensorrt and sim only)
    #[arg(long, value_name = "FILE")]
    pub(crate) write_board: Option<PathBuf>,
    /// Where models and preprocessed data lie
    #[arg(long, value_name = "DIR", env = "MLPERF_SCRATCH_PATH")]
    pub(crate) scratch: Option<PathBuf>,
    /// A benchmark's description, instead of the one that came with this program
    #[arg(long, value_name = "FILE")]
    pub(crate) benchmark_file: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
}

/// Flags of `tune`.
#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    /// What computes the answers: tract, tensorrt or sim
    #[arg(long, value_name = "ENGINE")]
    pub(crate) sut: EngineKind,
    /// The benchmarks' names, comma separated
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    pub(crate) model: Vec<String>,
    /// Scenarios, comma separated
    #[arg(long, value_name = "SCENARIO", value_delimiter = ',', required = true)]
    pub(crate) scenario: Vec<Scenario>,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// How long the whole search may take
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub(crate) limit: HumanDuration,
    /// The system's name in the file; by default the host's
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// A system whose values are tried first: a name, a file that ends in .toml, or auto for this board's
    #[arg(long, value_name = "SYSTEM")]
    pub(crate) system: Option<String>,
    /// The state that the board is in: MaxP or MaxQ
    #[arg(long, value_name = "STATE", default_value = "MaxP")]
    pub(crate) power_setting: PowerSetting,
    /// A setting that is not searched; may stand more than once
    #[arg(long = "setting", value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) settings: Vec<(String, String)>,
    /// tensorrt: builds no engine, and searches only what those in the cache can do
    #[arg(long)]
    pub(crate) no_build: bool,
    /// tensorrt: a further flag of every `engine build`, such as calibration-cache=resnet50.cache; may stand more than once
    #[arg(long = "build-flag", value_name = "NAME[=VALUE]", conflicts_with = "no_build")]
    pub(crate) build_flags: Vec<String>,
    /// Plays the part of the official conf; by default that of the newest round
    #[arg(long, value_name = "FILE")]
    pub(crate) mlperf_conf: Option<PathBuf>,
    /// native, official or official:REVISION
    #[arg(long, value_name = "LOADGEN", default_value_t = LoadgenChoice::Native)]
    pub(crate) loadgen: LoadgenChoice,
    /// Samples in the whole set, where no dataset says so
    #[arg(long, value_name = "N", requires = "performance_samples")]
    pub(crate) total_samples: Option<usize>,
    /// Samples that fit into memory together, where no dataset says so
    #[arg(long, value_name = "N", requires = "total_samples")]
    pub(crate) performance_samples: Option<usize>,
    /// Where models and preprocessed data lie
    #[arg(long, value_name = "DIR", env = "MLPERF_SCRATCH_PATH")]
    pub(crate) scratch: Option<PathBuf>,
    /// A benchmark's description, instead of the one that came with this program
    #[arg(long, value_name = "FILE")]
    pub(crate) benchmark_file: Option<PathBuf>,
}

impl TuneArgs {
    /// The words of `bench` that every trial of a benchmark and scenario has.
    pub(crate) fn bench_words(
        &self,
        model: &str,
        scenario: Scenario,
        mlperf_conf: &Path,
        log_dir: &Path,
    ) -> Vec<String> {
        let path = |path: &Path| path.display().to_string();
        let mut words = vec!["bench".to_owned()];
        let mut flag = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                words.extend([name.to_owned(), value]);
            }
        };
        flag("--sut", Some(self.sut.to_string()));
        flag("--model", Some(model.to_owned()));
        flag("--scenario", Some(scenario.to_string()));
        flag("--mode", Some(Mode::PerformanceOnly.to_string()));
        flag("--mlperf-conf", Some(path(mlperf_conf)));
        flag("--log-dir", Some(path(log_dir)));
        flag("--loadgen", Some(self.loadgen.to_string()));
        flag("--format", Some("json".to_owned()));
        // Every trial over an engine that was built for its batch; a larger one would be another choice.
        let builds = self.sut == EngineKind::Tensorrt && !self.no_build;
        flag("--setting", builds.then(|| "exact_batch=true".to_owned()));
        flag(
            "--total-samples",
            self.total_samples.map(|count| count.to_string()),
        );
        flag(
            "--performance-samples",
            self.performance_samples.map(|count| count.to_string()),
        );
        flag("--scratch", self.scratch.as_deref().map(path));
        flag("--benchmark-file", self.benchmark_file.as_deref().map(path));
        words
    }
}

/// Flags of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// How the findings are printed
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
    /// Reads another system's files, such as those of a mounted card
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Splits `NAME=VALUE`.
fn setting(given: &str) -> Result<(String, String), &'static str> {
    let (name, value) = given
        .split_once('=')
        .ok_or("an engine setting is written NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
