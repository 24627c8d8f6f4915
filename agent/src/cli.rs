//! The agent's command line: words, flags and their help. Checks single words; the commands check everything that needs two of
//! them, or a file.

mod build_command;
mod engine;

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use regatta_terminal::LogOptions;
use regatta_types::{
    Mode, Scenario,
    documents::{EngineKind, LoadgenChoice, PowerSetting, TUNING_TIME},
};

use regatta_text::HumanDuration;

pub(crate) use self::{
    build_command::BuildCommand,
    engine::{
        EngineBuildArgs, EngineCommand, EngineInspectArgs, EngineListArgs, EnginePrecision, EngineRemoveArgs,
    },
};
use crate::config_file::ConfigFlag;

/// Runs MLPerf Inference on this device.
#[derive(Debug, Parser)]
#[command(name = "regatta-agent", version)]
pub struct Cli {
    /// The log.
    #[command(flatten)]
    pub(crate) log: LogOptions,
    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The agent's commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the daemon: execute the coordinator's runs and deliver their logs
    Serve(ServeArgs),
    /// Run many simulated devices in one process, to try a fleet on one machine
    #[cfg(feature = "simulate")]
    Simulate(SimulateArgs),
    /// Enroll this device in a lab with a one-time token from `regatta device add`
    Enroll(EnrollArgs),
    /// Show this device's id, its key and the lab that it is enrolled in
    Identity(IdentityArgs),
    /// Run one benchmark on this device, without a coordinator
    Bench(Box<BenchArgs>),
    /// Search for the settings that run benchmarks best on this board, and write a system file
    Tune(Box<TuneArgs>),
    /// Execute one run from its spec.json; `serve` and power clients start it
    Exec(ExecArgs),
    /// Build, inspect and list TensorRT engines of ONNX models
    #[command(subcommand)]
    Engine(EngineCommand),
    /// Show the identity of this board, and whether it is fit to measure; exit code 1 if it is not
    Doctor(DoctorArgs),
    /// Show what CUDA finds, as JSON; `serve` and `doctor` start it
    #[command(hide = true)]
    Gpus,
}

/// Flags of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The configuration
    #[command(flatten)]
    pub(crate) config: ConfigFlag,
}

/// Flags of `simulate`.
#[cfg(feature = "simulate")]
#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// Number of devices
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub(crate) devices: u32,
    /// Prefix of the devices' names; a number follows, as in boat-sim-0001
    #[arg(long, value_name = "NAME", default_value = "boat-sim", value_parser = simulated_name)]
    pub(crate) name: String,
    /// Tokens of devices that are not enrolled yet, as `regatta device add NAME --count N` prints them; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,
    /// Directory of the devices' keys, configurations and runs
    #[arg(long, value_name = "DIR", default_value = "simulated")]
    pub(crate) state_dir: PathBuf,
    /// Directory of models and preprocessed data
    #[arg(long, value_name = "DIR", env = "MLPERF_SCRATCH_PATH")]
    pub(crate) scratch: Option<PathBuf>,
    /// The broker of a workspace without keys, such as mqtt://127.0.0.1:1883; devices then need no tokens
    #[arg(long, value_name = "ADDRESS", conflicts_with = "tokens")]
    pub(crate) broker: Option<regatta_types::BrokerAddress>,
    /// Interval between heartbeats
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) heartbeat: HumanDuration,
    /// Number of run processes at once [default: twice the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) concurrent_runs: Option<u16>,
}

/// Checks the beginning of simulated devices' names: letters, digits, `.`, `_` and `-`, because it is part of a path.
#[cfg(feature = "simulate")]
fn simulated_name(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.len() <= 58;
    if is_name && text.chars().all(allowed) {
        Ok(text.to_owned())
    } else {
        Err("must be up to 58 letters, digits, `.`, `_` and `-`, and begin with a letter or digit".to_owned())
    }
}

/// Flags of `enroll`.
#[derive(Debug, Args)]
pub(crate) struct EnrollArgs {
    /// The configuration
    #[command(flatten)]
    pub(crate) config: ConfigFlag,
    /// Rename this device if it is enrolled under another name than the token's
    #[arg(long)]
    pub(crate) rename: bool,
    /// Enroll with a new key, for a device that was removed: the former key, its enrollment and its runs are moved to former-ID in the
    /// state directory
    #[arg(long, conflicts_with = "rename")]
    pub(crate) new_identity: bool,
    /// The token; `-` reads it from standard input, which hides it from process lists
    #[arg(value_name = "TOKEN")]
    pub(crate) token: String,
}

/// Flags of `identity`.
#[derive(Debug, Args)]
pub(crate) struct IdentityArgs {
    /// The configuration
    #[command(flatten)]
    pub(crate) config: ConfigFlag,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
}

/// Flags of `exec`.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The run's spec.json; its directory is the run's directory
    #[arg(value_name = "SPEC")]
    pub(crate) spec: PathBuf,
    /// Directory of models and preprocessed data
    #[arg(long, value_name = "DIR", env = "MLPERF_SCRATCH_PATH")]
    pub(crate) scratch: Option<PathBuf>,
}

/// The flags of a benchmark's file and data, which `bench` and `tune` share.
#[derive(Debug, Args)]
pub(crate) struct BenchmarkData {
    /// A benchmark file, instead of the built-in one
    #[arg(long, value_name = "FILE")]
    pub(crate) benchmark_file: Option<PathBuf>,
    /// Directory of models and preprocessed data
    #[arg(long, value_name = "DIR", env = "MLPERF_SCRATCH_PATH")]
    pub(crate) scratch: Option<PathBuf>,
    /// Number of samples in the set, for a benchmark without a dataset
    #[arg(long, value_name = "N", requires = "performance_samples")]
    pub(crate) total_samples: Option<usize>,
    /// Number of samples to load together, for a benchmark without a dataset
    #[arg(long, value_name = "N", requires = "total_samples")]
    pub(crate) performance_samples: Option<usize>,
}

/// Flags of `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// The engine: null, tract, onnxruntime, tensorrt, server or sim
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: EngineKind,
    /// The benchmark's name; null and sim accept any name if both sample counts are set
    #[arg(long, value_name = "NAME")]
    pub(crate) benchmark: String,
    /// SingleStream, MultiStream, Offline or Server
    #[arg(long, value_name = "SCENARIO")]
    pub(crate) scenario: Scenario,
    /// AccuracyOnly, PerformanceOnly, SubmissionRun or FindPeakPerformance
    #[arg(long, value_name = "MODE", default_value = "PerformanceOnly")]
    pub(crate) mode: Mode,
    /// The round's mlperf.conf, which the official LoadGen has compiled in; seeds come only from it [default: that of the newest round]
    #[arg(long, value_name = "FILE")]
    pub(crate) mlperf_conf: Option<PathBuf>,
    /// The user.conf with this system's settings [default: the benchmark's first guesses]
    #[arg(long, value_name = "FILE")]
    pub(crate) user_conf: Option<PathBuf>,
    /// The audit.config of a compliance test
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_conf: Option<PathBuf>,
    /// Minimum duration, instead of the conf files', for example 3s (units: ms, s, m, h)
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<HumanDuration>,
    /// The LoadGen: native, official or official:REVISION
    #[arg(long, value_name = "LOADGEN", default_value_t = LoadgenChoice::Native)]
    pub(crate) loadgen: LoadgenChoice,
    /// The benchmark's data
    #[command(flatten)]
    pub(crate) data: BenchmarkData,
    /// An engine setting (`regatta settings list` shows all); repeatable
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) settings: Vec<SettingAssignment>,
    /// The system whose settings apply: a name, a file that ends in .toml, or auto for this board's
    #[arg(long, value_name = "SYSTEM")]
    pub(crate) system: Option<String>,
    /// The power setting that the system's settings are for: MaxP or MaxQ
    #[arg(long, value_name = "STATE", default_value = "MaxP")]
    pub(crate) power_setting: PowerSetting,
    /// Directory for LoadGen's logs [default: logs/BENCHMARK-SCENARIO-MODE-TIME]
    #[arg(long, value_name = "DIR")]
    pub(crate) log_dir: Option<PathBuf>,
    /// Write the issued sample indices to a file: little-endian u64, u64::MAX after each query (null only)
    #[arg(long, value_name = "FILE")]
    pub(crate) issue_log: Option<PathBuf>,
    /// Write the service times of the warm-up as a board model for `sim_board` (tensorrt and sim only)
    #[arg(long, value_name = "FILE")]
    pub(crate) write_board: Option<PathBuf>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
}

/// Flags of `tune`.
#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    /// The engine: tract, onnxruntime, tensorrt or sim
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: EngineKind,
    /// The benchmarks' names, comma separated
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    pub(crate) benchmark: Vec<String>,
    /// Scenarios, comma separated
    #[arg(long, value_name = "SCENARIO", value_delimiter = ',', required = true)]
    pub(crate) scenario: Vec<Scenario>,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Time limit of the search (units: ms, s, m, h)
    #[arg(long, value_name = "TIME", default_value = TUNING_TIME)]
    pub(crate) limit: HumanDuration,
    /// The system's name in the file [default: the host's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// A system whose settings are tried first: a name, a file that ends in .toml, or auto for this board's
    #[arg(long, value_name = "SYSTEM")]
    pub(crate) system: Option<String>,
    /// The power setting of the board: MaxP or MaxQ
    #[arg(long, value_name = "STATE", default_value = "MaxP")]
    pub(crate) power_setting: PowerSetting,
    /// An engine setting that stays fixed; repeatable
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) settings: Vec<SettingAssignment>,
    /// tensorrt: build no engine; use only those in the cache
    #[arg(long)]
    pub(crate) no_build: bool,
    /// tensorrt: an additional flag of every `engine build`, for example calibration-cache=resnet50.cache; repeatable
    #[arg(long = "build-flag", value_name = "NAME[=VALUE]", conflicts_with = "no_build")]
    pub(crate) build_flags: Vec<String>,
    /// The mlperf.conf [default: that of the newest round]
    #[arg(long, value_name = "FILE")]
    pub(crate) mlperf_conf: Option<PathBuf>,
    /// The LoadGen: native, official or official:REVISION
    #[arg(long, value_name = "LOADGEN", default_value_t = LoadgenChoice::Native)]
    pub(crate) loadgen: LoadgenChoice,
    /// The benchmark's data
    #[command(flatten)]
    pub(crate) data: BenchmarkData,
}

impl TuneArgs {
    /// Returns the arguments of `bench` that all trials of a benchmark and scenario share.
    pub(crate) fn bench_words(
        &self,
        benchmark: &str,
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
        flag("--engine", Some(self.engine.to_string()));
        flag("--benchmark", Some(benchmark.to_owned()));
        flag("--scenario", Some(scenario.to_string()));
        flag("--mode", Some(Mode::PerformanceOnly.to_string()));
        flag("--mlperf-conf", Some(path(mlperf_conf)));
        flag("--log-dir", Some(path(log_dir)));
        flag("--loadgen", Some(self.loadgen.to_string()));
        flag("--format", Some("json".to_owned()));
        // Each trial uses an engine that was built for its batch size; a larger one would be another candidate.
        let builds = self.engine == EngineKind::Tensorrt && !self.no_build;
        flag("--set", builds.then(|| "exact_batch=true".to_owned()));
        flag(
            "--total-samples",
            self.data.total_samples.map(|count| count.to_string()),
        );
        flag(
            "--performance-samples",
            self.data.performance_samples.map(|count| count.to_string()),
        );
        flag("--scratch", self.data.scratch.as_deref().map(path));
        flag("--benchmark-file", self.data.benchmark_file.as_deref().map(path));
        words
    }
}

/// Flags of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
    /// Read the files of another system, for example of a mounted SD card
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,
}

/// The output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people
    Text,
    /// JSON for programs
    Json,
}

/// An engine setting of the command line, not yet checked.
#[derive(Debug, Clone)]
pub(crate) struct SettingAssignment {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// Splits `NAME=VALUE`.
fn setting(text: &str) -> Result<SettingAssignment, &'static str> {
    let (name, value) = text
        .split_once('=')
        .ok_or("write an engine setting as NAME=VALUE")?;
    Ok(SettingAssignment {
        name: name.trim().to_owned(),
        value: value.trim().to_owned(),
    })
}
