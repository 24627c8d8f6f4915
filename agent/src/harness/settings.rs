//! Engine settings of a run, by LWIS's names where the meaning is the same. Every name is known or refused.

mod accelerator;
mod table;

use std::{collections::BTreeMap, fmt, time::Duration};

use regatta_rules::documents::{EngineKind, EngineSpec};

pub(crate) use self::accelerator::{AcceleratorSettings, UnitSettings};
use self::table::Setting;
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
    /// The units of an accelerator, modelled or not.
    pub(crate) accelerator: AcceleratorSettings,
    /// The modelled accelerator, with the settings of its units applied.
    pub(crate) sim: SimModel,
    /// Whether the units' times are learnt and kept also where no policy needs them. No setting of a plan: `bench` asks for it.
    pub(crate) learn: bool,
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

/// The names that an engine knows, for people.
fn known(engine: EngineKind) -> impl fmt::Display {
    let known = table::settings().filter(move |setting| setting.is_of(engine));
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
            accelerator: AcceleratorSettings::default(),
            sim: SimModel::default(),
            learn: false,
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
        let setting: &Setting = table::settings()
            .find(|setting| setting.name == name && setting.is_of(engine))
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
    settings.sim.board = settings.accelerator.applied_to(&settings.sim.board);
    settings.sim.spin = settings.accelerator.use_spin_wait == Some(true);
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
                ("gpu_batch_size", "64"),
                ("dla_batch_size", "2"),
                ("dla_loop_count", "4"),
                ("gpu_copy_streams", "2"),
                ("dla_copy_streams", "3"),
                ("gpu_inference_streams", "1"),
                ("dla_inference_streams", "1"),
                ("gpu_engine", "0123456789abcdef"),
                ("dla_engine", "engines/0123456789abcdef"),
                ("gpus", "2,0"),
                ("max_dlas", "1"),
                ("dla_core", "0"),
                ("use_graphs", "true"),
                ("use_direct_host_access", "true"),
                ("use_spin_wait", "true"),
                ("run_infer_on_copy_streams", "false"),
                ("workspace_size", "30000000000"),
                ("exact_batch", "true"),
                ("precision", "int8"),
                ("input_dtype", "int8"),
                ("input_format", "chw4"),
                ("sim_units", "gpu=400+60, dla0=900+210"),
                ("sim_jitter", "0.05"),
                ("sim_seed", "9"),
            ],
        )
        .unwrap();
        insta::assert_debug_snapshot!(read);
    }

    #[test]
    fn every_systems_file_has_only_settings_that_there_are() {
        for system in regatta_rules::known::systems().unwrap() {
            for run in &system.runs {
                for engine in [run.engine, EngineKind::Sim] {
                    let given = run.settings.settings();
                    assert!(read(engine, &given).is_ok(), "{}: {given:?}", system.name);
                }
            }
        }
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
            settings(EngineKind::Tensorrt, &[("sim_seed", "1")]),
            settings(EngineKind::Tensorrt, &[("precision", "fp12")]),
            settings(EngineKind::Sim, &[("use_graphs", "yes")]),
            settings(EngineKind::Sim, &[("dla_loop_count", "0")]),
            settings(EngineKind::Tensorrt, &[("gpus", "0,0")]),
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
