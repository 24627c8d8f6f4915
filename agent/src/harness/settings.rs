//! Engine settings of a run, by LWIS's names where the meaning is the same. Every name is known or refused.

use std::{collections::BTreeMap, fmt, ops::RangeInclusive, time::Duration};

use regatta_rules::documents::{EngineKind, EngineSpec};

use crate::engines::sim::SimModel;

/// How harness and engine are to work.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HarnessSettings {
    /// Most samples in a batch; `None` leaves it to the scenario.
    pub(crate) batch_size: Option<usize>,
    /// Batches that are computed at the same time, each by an engine of its own on a thread of its own.
    pub(crate) inference_streams: Option<usize>,
    /// Server: how long a worker waits for a fuller batch.
    pub(crate) deque_timeout: Duration,
    /// How long each stream computes before LoadGen begins; `None` leaves it to the engine.
    pub(crate) warmup_duration: Option<Duration>,
    /// Which thread computes; `None` leaves it to the scenario.
    pub(crate) dispatch: Option<Dispatch>,
    /// How samples are shared among several units; `None` leaves it to the scenario.
    pub(crate) sharing: Option<Sharing>,
    /// The processor that LoadGen's issuing thread keeps to.
    pub(crate) timing_cpu: Option<usize>,
    /// Its real-time priority.
    pub(crate) timing_priority: Option<u8>,
    /// Whether LoadGen's issuing thread spins while it waits, instead of sleeping.
    pub(crate) timing_spin: bool,
    /// After how long without an answer LoadGen gives up a run; `None` leaves it to LoadGen.
    pub(crate) stall_timeout: Option<Duration>,
    /// The modelled accelerator.
    pub(crate) sim: SimModel,
}

/// Which thread computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dispatch {
    /// LoadGen's issuing thread, within the issuing call: no hand-over.
    Direct,
    /// Worker threads behind a queue.
    Worker,
}

/// How samples are shared among the units of a chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// All units finish together, by service times that are learnt in the warm-up.
    Together,
    /// Whoever is free takes a full batch, as in NVIDIA's harness.
    FirstFree,
}

/// A setting that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SettingError {
    /// No such name for this engine.
    #[error("the {engine} engine has no setting `{name}`; known are {}", known(*engine))]
    Unknown {
        /// Which engine.
        engine: EngineKind,
        /// What was given.
        name: String,
    },
    /// The value is not of the setting's kind.
    #[error("the engine setting {name} is `{given}`, but must be {expected}")]
    Value {
        /// The setting.
        name: &'static str,
        /// What was given.
        given: String,
        /// What it must be.
        expected: &'static str,
    },
}

/// One setting: its name, what its value must be, and how it is taken over.
struct Setting {
    name: &'static str,
    expected: &'static str,
    /// Whether only `sim` has it.
    sim_only: bool,
    take: fn(&mut HarnessSettings, &str) -> Option<()>,
}

const SETTINGS: &[Setting] = &[
    Setting {
        name: "batch_size",
        expected: COUNT,
        sim_only: false,
        take: |s, v| put(&mut s.batch_size, count(v)),
    },
    Setting {
        name: "inference_streams",
        expected: "a whole number from 1 to 256",
        sim_only: false,
        take: |s, v| {
            put(
                &mut s.inference_streams,
                count(v).filter(|&streams| streams <= 256),
            )
        },
    },
    Setting {
        name: "deque_timeout_usec",
        expected: "a whole number of microseconds",
        sim_only: false,
        take: |s, v| {
            s.deque_timeout = Duration::from_micros(v.parse().ok()?);
            Some(())
        },
    },
    Setting {
        name: "warmup_duration",
        expected: "a number of seconds from 0 to 3600",
        sim_only: false,
        take: |s, v| put(&mut s.warmup_duration, seconds(v, 0.0..=3600.0)),
    },
    Setting {
        name: "dispatch",
        expected: "`direct` or `worker`",
        sim_only: false,
        take: |s, v| put(&mut s.dispatch, dispatch(v)),
    },
    Setting {
        name: "sharing",
        expected: "`together` or `first-free`",
        sim_only: false,
        take: |s, v| put(&mut s.sharing, sharing(v)),
    },
    Setting {
        name: "timing_cpu",
        expected: "the number of a processor",
        sim_only: false,
        take: |s, v| put(&mut s.timing_cpu, v.parse().ok()),
    },
    Setting {
        name: "timing_priority",
        expected: "a real-time priority from 1 to 99",
        sim_only: false,
        take: |s, v| {
            put(
                &mut s.timing_priority,
                v.parse().ok().filter(|priority| (1..=99).contains(priority)),
            )
        },
    },
    Setting {
        name: "timing_wait",
        expected: "`block` or `spin`",
        sim_only: false,
        take: |s, v| {
            s.timing_spin = match v {
                "block" => false,
                "spin" => true,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "stall_timeout",
        expected: "a number of seconds from 1 to 86400",
        sim_only: false,
        take: |s, v| put(&mut s.stall_timeout, seconds(v, 1.0..=86_400.0)),
    },
    Setting {
        name: "sim_units",
        expected: "units as NAME=BASE+PER_SAMPLE in microseconds, separated by commas, such as gpu=400+60,dla0=900+210",
        sim_only: true,
        take: |s, v| {
            s.sim.board.units = SimModel::parse_units(v)?;
            s.sim.board.name.clear();
            Some(())
        },
    },
    Setting {
        name: "sim_board",
        expected: "a modelled board such as agx-orin.resnet50, or the path of a board's file",
        sim_only: true,
        take: |s, v| {
            s.sim.board = SimModel::board_named(v)?;
            Some(())
        },
    },
    Setting {
        name: "sim_jitter",
        expected: "a share from 0 to 1",
        sim_only: true,
        take: |s, v| {
            s.sim.board.jitter = v.parse().ok().filter(|share| (0.0..=1.0).contains(share))?;
            Some(())
        },
    },
    Setting {
        name: "sim_seed",
        expected: "a whole number",
        sim_only: true,
        take: |s, v| {
            s.sim.seed = v.parse().ok()?;
            Some(())
        },
    },
];

const COUNT: &str = "a whole number from 1 to 1048576";

fn put<T>(setting: &mut Option<T>, value: Option<T>) -> Option<()> {
    *setting = Some(value?);
    Some(())
}

fn count(given: &str) -> Option<usize> {
    given.parse().ok().filter(|count| (1..=1_048_576).contains(count))
}

fn seconds(given: &str, range: RangeInclusive<f64>) -> Option<Duration> {
    let seconds: f64 = given.parse().ok()?;
    range.contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

fn dispatch(given: &str) -> Option<Dispatch> {
    match given {
        "direct" => Some(Dispatch::Direct),
        "worker" => Some(Dispatch::Worker),
        _ => None,
    }
}

fn sharing(given: &str) -> Option<Sharing> {
    match given {
        "together" => Some(Sharing::Together),
        "first-free" => Some(Sharing::FirstFree),
        _ => None,
    }
}

/// The names that an engine knows, for people.
fn known(engine: EngineKind) -> impl fmt::Display {
    let known = SETTINGS
        .iter()
        .filter(move |setting| !setting.sim_only || engine == EngineKind::Sim);
    known.map(|setting| setting.name).collect::<Vec<_>>().join(", ")
}

impl Default for HarnessSettings {
    fn default() -> Self {
        Self {
            batch_size: None,
            inference_streams: None,
            deque_timeout: Duration::ZERO,
            warmup_duration: None,
            dispatch: None,
            sharing: None,
            timing_cpu: None,
            timing_priority: None,
            timing_spin: false,
            stall_timeout: None,
            sim: SimModel::default(),
        }
    }
}

impl TryFrom<&EngineSpec> for HarnessSettings {
    type Error = SettingError;

    fn try_from(spec: &EngineSpec) -> Result<Self, SettingError> {
        read(spec.kind, &spec.settings)
    }
}

fn read(engine: EngineKind, given: &BTreeMap<String, String>) -> Result<HarnessSettings, SettingError> {
    let mut settings = HarnessSettings::default();
    for (name, value) in given {
        let setting = SETTINGS
            .iter()
            .find(|setting| setting.name == name && (!setting.sim_only || engine == EngineKind::Sim))
            .ok_or_else(|| SettingError::Unknown {
                engine,
                name: name.clone(),
            })?;
        (setting.take)(&mut settings, value.trim()).ok_or_else(|| SettingError::Value {
            name: setting.name,
            given: value.clone(),
            expected: setting.expected,
        })?;
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(engine: EngineKind, given: &[(&str, &str)]) -> Result<HarnessSettings, SettingError> {
        let given = given
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        read(engine, &given)
    }

    #[test]
    fn every_setting_is_taken_over() {
        let read = settings(
            EngineKind::Sim,
            &[
                ("batch_size", "32"),
                ("inference_streams", "2"),
                ("deque_timeout_usec", "500"),
                ("warmup_duration", "0.25"),
                ("dispatch", "worker"),
                ("sharing", "first-free"),
                ("timing_cpu", "3"),
                ("timing_priority", "20"),
                ("timing_wait", "spin"),
                ("stall_timeout", "2.5"),
                ("sim_units", "gpu=400+60, dla0=900+210"),
                ("sim_jitter", "0.05"),
                ("sim_seed", "9"),
            ],
        )
        .unwrap();
        insta::assert_debug_snapshot!(read);
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let refused: Vec<String> = [
            settings(EngineKind::Tract, &[("gpu_batch_size", "8")]),
            settings(EngineKind::Null, &[("sim_units", "gpu=1+1")]),
            settings(EngineKind::Tract, &[("batch_size", "0")]),
            settings(EngineKind::Tract, &[("batch_size", "many")]),
            settings(EngineKind::Tract, &[("inference_streams", "257")]),
            settings(EngineKind::Tract, &[("warmup_duration", "-1")]),
            settings(EngineKind::Tract, &[("dispatch", "both")]),
            settings(EngineKind::Tract, &[("timing_priority", "100")]),
            settings(EngineKind::Tract, &[("stall_timeout", "0")]),
            settings(EngineKind::Sim, &[("sim_units", "gpu=1")]),
            settings(EngineKind::Sim, &[("sim_jitter", "NaN")]),
            settings(EngineKind::Sim, &[("sim_board", "no-such-board")]),
            settings(EngineKind::Tract, &[("sharing", "fairly")]),
        ]
        .into_iter()
        .map(|refused| refused.unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(refused.join("\n"));
    }
}
