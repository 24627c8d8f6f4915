//! `evidence.json`: the device's proof of a run. The agent seals it when the run ends and signs its exact bytes.

use serde::{Deserialize, Serialize};

use super::{LoadgenChoice, RunPhase, RunSpec, RunState, StateProof, StateSpec};
use crate::{DeviceId, RunId, StreamName};

/// The device's proof of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Schema number of this document.
    pub schema: u16,
    /// The run.
    pub run: RunId,
    /// The device.
    pub device: DeviceId,
    /// SHA-256 of the exact bytes of `spec.json`, hexadecimal.
    pub spec_sha256: String,
    /// Version and build of the agent that executed the run.
    pub agent: String,
    /// How the run ended on the device; see [`Evidence::final_phase`].
    pub outcome: RunState,
    /// Reasons why the run is not a valid measurement (Regatta's own LoadGen, a simulated device, ...). Empty when there are none.
    pub not_a_measurement: Vec<String>,
    /// The attempts at the run: one, or `ranging` and `testing` when power is measured.
    pub attempts: Vec<Attempt>,
    /// The device's state before the run.
    pub before: DeviceFacts,
    /// The device's state after the run.
    pub after: DeviceFacts,
    /// Power mode, clocks and fan: requested, set, observed and restored values. `None` in evidence of agents older than the state guard,
    /// and for runs that never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateProof>,
    /// Every file of the run except this one and its signature.
    pub files: Vec<FileProof>,
}
super::document!(Evidence, "evidence", 1);

impl Evidence {
    /// Returns the final phase of the run. A successful run is sealed while it is `draining` and becomes `done` on delivery. `None` when
    /// the evidence was sealed before the run ended.
    #[must_use]
    pub const fn final_phase(&self) -> Option<RunPhase> {
        match self.outcome.phase {
            RunPhase::Draining | RunPhase::Done => Some(RunPhase::Done),
            phase if phase.is_final() => Some(phase),
            _ => None,
        }
    }

    /// Returns the proof of the run's file `name`.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&FileProof> {
        self.files.iter().find(|file| file.name.as_str() == name)
    }

    /// Returns the reason why the evidence does not prove the requested state. `None` when it does, or when no state was requested.
    #[must_use]
    pub fn unproven_state(&self, requested: Option<&StateSpec>) -> Option<String> {
        let requested = requested?;
        let holds = self.state.as_ref().is_some_and(|proof| {
            let all_read = proof
                .set
                .iter()
                .all(|control| control.read.as_ref() == Some(&control.requested));
            proof.requested.as_ref() == Some(requested) && !proof.set.is_empty() && all_read
        });
        (!holds).then(|| {
            format!(
                "the evidence does not prove that the device was in the state {}",
                requested.name
            )
        })
    }
}

/// One pass of the run process, as the process itself reports it in `attempt.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// `run`, or `ranging` and `testing`.
    pub name: String,
    /// The LoadGen that the spec requested.
    pub requested_loadgen: LoadgenChoice,
    /// The LoadGen that ran. `None` when the process died before LoadGen started.
    pub loadgen: Option<LoadgenIdentity>,
    /// The engine as text: kind, version and hardware.
    pub engine: String,
    /// LoadGen's verdict; `None` when there is none.
    pub valid: Option<bool>,
    /// LoadGen's reasons when the verdict is not VALID.
    pub invalid_reasons: Vec<String>,
    /// Clock readings at LoadGen's start, or at the start of an engine build.
    pub started: Option<Clock>,
    /// Clock readings at LoadGen's end, or at the end of an engine build.
    pub ended: Option<Clock>,
    /// The agent's own activity in the timed window.
    pub window: WindowCost,
    /// How LoadGen's timing thread ran. `None` when it issued no query, and in attempts of agents older than this field.
    #[serde(default)]
    pub timing: Option<TimingThread>,
    /// What may have disturbed the measurement and did not fail it, such as a model server that served another client. Empty when there is
    /// nothing, and in attempts of agents older than this field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Attempt {
    /// Returns the attempt as it is known before anything is loaded: the requested LoadGen and engine.
    #[must_use]
    pub fn requested(spec: &RunSpec) -> Self {
        Self {
            name: "run".to_owned(),
            requested_loadgen: spec.loadgen.clone(),
            loadgen: None,
            engine: spec.engine.kind.to_string(),
            valid: None,
            invalid_reasons: Vec::new(),
            started: None,
            ended: None,
            window: WindowCost::default(),
            timing: None,
            warnings: Vec::new(),
        }
    }
}

/// How the thread ran that issues queries and measures time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimingThread {
    /// What it did while it waited: `block` (slept) or `spin`.
    pub wait: String,
    /// The processor that it was pinned to; `None` when several were allowed.
    pub cpu: Option<u32>,
    /// Its real-time priority, 1 to 99; `None` under ordinary scheduling.
    pub realtime_priority: Option<u8>,
    /// The timing requests that the system refused, with the system's reason.
    pub refused: Vec<String>,
}

/// Identity of the LoadGen that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadgenIdentity {
    /// `regatta-loadgen` or `mlcommons-loadgen`.
    pub implementation: String,
    /// Its version.
    pub version: String,
    /// Its git revision, `NA` when the source had none.
    pub revision: String,
    /// The C++ library whose distributions and shuffle it follows: `libstdc++-11` (and later) or `libstdc++-10` (and before).
    pub rng_abi: String,
    /// SHA-256 of the `mlperf.conf` that it ran with, hexadecimal.
    pub mlperf_conf_sha256: String,
}

/// One reading of the device's clocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Wall time, RFC 3339 UTC with nanoseconds.
    pub utc: String,
    /// `CLOCK_MONOTONIC` in nanoseconds.
    pub monotonic_ns: u64,
    /// The kernel's boot id. Monotonic times are comparable only within one boot.
    pub boot_id: String,
    /// Wall clock offset in microseconds, as a time daemon reported it to the kernel. Only daemons that use the kernel's own loop report
    /// it (ntpd, systemd-timesyncd). chrony steers by frequency and does not.
    pub ntp_offset_us: Option<i64>,
    /// Whether the kernel considers the wall clock synchronised.
    pub synchronised: Option<bool>,
}

/// The agent's activity besides the benchmark while LoadGen ran. `None` means that the kernel does not report the value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WindowCost {
    /// Bytes that the daemon sent to the network.
    pub bytes_sent: u64,
    /// CPU time that the daemon used, in nanoseconds.
    pub daemon_cpu_ns: u64,
    /// Wake-ups of the daemon's busy thread.
    pub daemon_wakeups: Option<u64>,
    /// Migrations of the daemon's busy thread to another processor.
    pub daemon_migrations: Option<u64>,
    /// The processor of LoadGen's issuing thread, from which the daemon was excluded in the window.
    pub daemon_kept_off_cpu: Option<u32>,
    /// Voluntary sleeps of LoadGen's issuing thread, including those of engine code that runs on it.
    pub timing_sleeps: Option<u64>,
    /// Preemptions of the issuing thread by other threads.
    pub timing_preemptions: Option<u64>,
    /// Migrations of the issuing thread to another processor.
    pub timing_migrations: Option<u64>,
}

/// A device's hardware, software and current state, as the operating system reports them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Host name.
    pub hostname: String,
    /// The board's own name (device tree model, or DMI product).
    pub model: String,
    /// Machine architecture, for example `aarch64`.
    pub arch: String,
    /// Kernel release.
    pub kernel: String,
    /// The kernel's boot id. It differs between machines, also between boards of one image. Older agents do not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Operating system, from os-release.
    pub os: String,
    /// Part number of the compute module, for example `p3701-0005`, when the device tree has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Number of DLA cores that the device tree enables.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dla_cores: u32,
    /// Logical CPUs.
    pub cpus: u32,
    /// Physical memory in bytes.
    pub memory_bytes: u64,
    /// Scaling governor of CPU 0, when there is one.
    pub cpu_governor: Option<String>,
    /// Current frequency of CPU 0 in kHz, when the kernel reports it.
    pub cpu_khz: Option<u64>,
    /// Hottest thermal zone in thousandths of a degree Celsius, when there is one.
    pub hottest_millicelsius: Option<i64>,
    /// One-minute load average.
    pub load_average: Option<f64>,
    /// The GPUs in CUDA's order. Empty unless CUDA was queried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuFacts>,
    /// The reason why runs cannot use TensorRT on these GPUs, such as a missing shim. `None` when they can, and from older agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensorrt_obstacle: Option<String>,
    /// The library of ONNX Runtime that runs without the setting `onnxruntime_library` open, in a hello only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onnxruntime: Option<String>,
    /// Interval of the agent's heartbeats in milliseconds. Only a hello has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
    /// The maximum size of all assets on the agent in bytes, in a hello only. Older agents do not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assets_max_bytes: Option<u64>,
    /// Whether the helper that sets power mode, clocks and fan is installed, in a hello only. Older agents do not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_helper: Option<bool>,
    /// The revisions of the official LoadGen that runs can name, in a hello only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loadgens: Vec<String>,
    /// The software below a run's own files, in a hello only. Older agents do not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub software: Option<SoftwareFacts>,
}

/// The software of a device that can change between two equal runs, as it was when its agent started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftwareFacts {
    /// SHA-256 of the agent's program, hexadecimal. `None` when the agent could not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_sha256: Option<String>,
    /// JetPack release, on Jetson boards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jetpack: Option<String>,
    /// TensorRT, by the library that an engine would load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensorrt: Option<String>,
    /// ONNX Runtime, by the library that runs without the setting `onnxruntime_library` open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onnxruntime: Option<String>,
}

/// A GPU as CUDA's driver describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuFacts {
    /// Its name, for example `Orin`.
    pub name: String,
    /// Compute capability, for example `8.7`.
    pub compute_capability: String,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Its memory in bytes; shared with the host on integrated GPUs.
    pub memory_bytes: u64,
    /// Whether it shares the host's memory.
    pub integrated: bool,
}

/// One file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileProof {
    /// The stream's name, which is the file's name.
    pub name: StreamName,
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256, hexadecimal.
    pub sha256: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}
