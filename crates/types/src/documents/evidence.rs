//! `evidence.json`: what the device proves of a run. Sealed when the run ends, and signed over its exact bytes.

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
    /// The agent that ran it: version and build.
    pub agent: String,
    /// How the run ended on the device, see [`Evidence::final_phase`].
    pub outcome: RunState,
    /// What is not a valid measurement about this run (our LoadGen, a simulated device ...); empty when nothing is.
    pub not_a_measurement: Vec<String>,
    /// The attempts at the run: one, or `ranging` and `testing` when power is measured.
    pub attempts: Vec<Attempt>,
    /// The device's state before the run.
    pub before: DeviceFacts,
    /// The device's state after the run.
    pub after: DeviceFacts,
    /// Power mode, clocks and fan: what was asked for, set, seen and put back. `None` in evidence of agents before the state
    /// guard, and where a run never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateProof>,
    /// Every file of the run except this one and its signature.
    pub files: Vec<FileProof>,
}
super::document!(Evidence, "evidence", 1);

impl Evidence {
    /// The final phase of the run: a run that ended well is sealed while it is still `draining`, and is `done` once it is
    /// delivered. `None` when the evidence was sealed before the run had ended.
    #[must_use]
    pub const fn final_phase(&self) -> Option<RunPhase> {
        match self.outcome.phase {
            RunPhase::Draining | RunPhase::Done => Some(RunPhase::Done),
            phase if phase.is_final() => Some(phase),
            _ => None,
        }
    }

    /// The proof of one of the run's files.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&FileProof> {
        self.files.iter().find(|file| file.name.as_str() == name)
    }

    /// Why this is no measurement of the state that was asked for, where it does not prove that the device was in it.
    #[must_use]
    pub fn unproven_state(&self, asked: Option<&StateSpec>) -> Option<String> {
        let asked = asked?;
        let holds = self.state.as_ref().is_some_and(|proof| {
            let all_read = proof
                .set
                .iter()
                .all(|knob| knob.read.as_ref() == Some(&knob.wanted));
            proof.asked.as_ref() == Some(asked) && !proof.set.is_empty() && all_read
        });
        (!holds).then(|| {
            format!(
                "the evidence does not prove that the device was in the state {}",
                asked.name
            )
        })
    }
}

/// One pass of the run process: what the process itself reports, in `attempt.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// `run`, or `ranging` and `testing`.
    pub name: String,
    /// Which LoadGen was asked for.
    pub asked_loadgen: LoadgenChoice,
    /// Which LoadGen ran. `None` when the process died before it began.
    pub loadgen: Option<LoadgenIdentity>,
    /// The engine in words: kind, version, and what it runs on.
    pub engine: String,
    /// LoadGen's verdict; `None` when there is none.
    pub valid: Option<bool>,
    /// LoadGen's reasons when the verdict is not VALID.
    pub invalid_reasons: Vec<String>,
    /// Clock readings at LoadGen's start.
    pub started: Option<Clock>,
    /// Clock readings at LoadGen's end.
    pub ended: Option<Clock>,
    /// What the agent itself cost in the timed window.
    pub window: WindowCost,
    /// How LoadGen's timing thread ran. `None` when it issued nothing, and in attempts of agents before this was noted.
    #[serde(default)]
    pub timing: Option<TimingThread>,
}

impl Attempt {
    /// What can be said before anything is loaded: what was asked for.
    #[must_use]
    pub fn asked(spec: &RunSpec) -> Self {
        Self {
            name: "run".to_owned(),
            asked_loadgen: spec.loadgen.clone(),
            loadgen: None,
            engine: spec.engine.kind.to_string(),
            valid: None,
            invalid_reasons: Vec::new(),
            started: None,
            ended: None,
            window: WindowCost::default(),
            timing: None,
        }
    }
}

/// How the thread ran that issues queries and measures time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimingThread {
    /// What it did while it waited: `block` (slept) or `spin`.
    pub wait: String,
    /// The one processor that it was allowed on; `None` where there were several.
    pub cpu: Option<u32>,
    /// Its real-time priority, 1 to 99; `None` under ordinary scheduling.
    pub realtime_priority: Option<u8>,
    /// What was asked for and not to be had, with the system's reason.
    pub refused: Vec<String>,
}

/// Which LoadGen ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadgenIdentity {
    /// `regatta-loadgen` or `mlcommons-loadgen`.
    pub implementation: String,
    /// Its version.
    pub version: String,
    /// Its git revision, `NA` where the source had none.
    pub revision: String,
    /// Whose distributions and shuffle it follows: `libstdc++-11` (and later) or `libstdc++-10` (and before).
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
    /// The kernel's boot id: monotonic times compare only within one boot.
    pub boot_id: String,
    /// What a time daemon has told the kernel that the wall clock is off by, in microseconds, where it works through the
    /// kernel's own loop (ntpd, systemd-timesyncd; not chrony, which steers by frequency).
    pub ntp_offset_us: Option<i64>,
    /// Whether the kernel regards the wall clock as synchronised.
    pub synchronised: Option<bool>,
}

/// What the agent did besides the benchmark while LoadGen ran. `None` is what the kernel does not tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WindowCost {
    /// Bytes that the daemon handed to the network.
    pub bytes_sent: u64,
    /// CPU time that the daemon used, in nanoseconds.
    pub daemon_cpu_ns: u64,
    /// Times that the daemon's busy thread woke up.
    pub daemon_wakeups: Option<u64>,
    /// Times that it moved to another processor.
    pub daemon_migrations: Option<u64>,
    /// The processor of LoadGen's issuing thread, which the daemon could not use in the window.
    pub daemon_kept_off_cpu: Option<u32>,
    /// Times that LoadGen's issuing thread went to sleep by itself, with what the engine does on it.
    pub timing_sleeps: Option<u64>,
    /// Times that another thread took the issuing thread's processor.
    pub timing_preemptions: Option<u64>,
    /// Times that the issuing thread moved to another processor.
    pub timing_migrations: Option<u64>,
}

/// What a device is and in what state, as far as the operating system tells.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Host name.
    pub hostname: String,
    /// The board's own name (device tree model, or DMI product).
    pub model: String,
    /// Machine architecture, such as `aarch64`.
    pub arch: String,
    /// Kernel release.
    pub kernel: String,
    /// Operating system, from os-release.
    pub os: String,
    /// Part number of the compute module, such as `p3701-0005`, where the device tree tells one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// DLA cores that the device tree has switched on.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dla_cores: u32,
    /// Logical CPUs.
    pub cpus: u32,
    /// Physical memory in bytes.
    pub memory_bytes: u64,
    /// Scaling governor of CPU 0, where there is one.
    pub cpu_governor: Option<String>,
    /// Current frequency of CPU 0 in kHz, where there is one.
    pub cpu_khz: Option<u64>,
    /// Hottest thermal zone in thousandths of a degree Celsius, where there is one.
    pub hottest_millicelsius: Option<i64>,
    /// One-minute load average.
    pub load_average: Option<f64>,
    /// The GPUs, where CUDA was asked for them, in its own order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuFacts>,
}

/// What CUDA's driver says of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuFacts {
    /// Its name, such as `Orin`.
    pub name: String,
    /// Compute capability, such as `8.7`.
    pub compute_capability: String,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of memory that it has, or shares with the host.
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
