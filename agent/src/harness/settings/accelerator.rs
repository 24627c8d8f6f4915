//! Settings of an accelerator's units (a GPU, DLA cores) and of the engines on them, by LWIS's names and with LWIS's
//! meaning. `sim` has every name that `tensorrt` has; what its model does not know (graphs, formats, memory) has no effect
//! there.

use regatta_rules::documents::EngineKind;
use regatta_schedule::{
    board_model::{BoardModel, UnitModel},
    service_times::ServiceTimes,
};

use super::table::{COUNT, Setting, count, put};
use crate::engines::tensorrt::Gpus;

/// The units and the engines on them; `None` leaves it to the engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AcceleratorSettings {
    /// Which GPUs.
    pub(crate) gpus: Gpus,
    /// Each GPU.
    pub(crate) gpu: UnitSettings,
    /// Each DLA core.
    pub(crate) dla: UnitSettings,
    /// A DLA core gets so many batches at once and computes them one after the other: a batch that fits its memory, and
    /// fewer launches.
    pub(crate) dla_loop_count: Option<usize>,
    /// The GPU's engine: its key in the cache, or its directory.
    pub(crate) gpu_engine: Option<String>,
    /// The DLA cores' engine, likewise.
    pub(crate) dla_engine: Option<String>,
    /// DLA cores that are used at most.
    pub(crate) max_dlas: Option<usize>,
    /// The DLA core that engines are built for.
    pub(crate) dla_core: Option<usize>,
    /// Whether the GPU's work is launched as CUDA graphs.
    pub(crate) use_graphs: Option<bool>,
    /// Whether engines read and write host memory that they share, without a copy.
    pub(crate) use_direct_host_access: Option<bool>,
    /// Whether a thread spins while its unit computes, instead of sleeping.
    pub(crate) use_spin_wait: Option<bool>,
    /// Whether every batch has a stream of its own for copies and inference.
    pub(crate) run_infer_on_copy_streams: Option<bool>,
    /// Bytes of memory that the building of an engine may use.
    pub(crate) workspace_size: Option<u64>,
    /// Whether an engine's batch must be the one that is asked for, and not larger.
    pub(crate) exact_batch: bool,
    /// Types that an engine may compute in.
    pub(crate) precision: Option<&'static str>,
    /// Type of the engine's input.
    pub(crate) input_dtype: Option<&'static str>,
    /// Layout of the engine's input.
    pub(crate) input_format: Option<&'static str>,
}

/// One kind of unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UnitSettings {
    /// Most samples in a batch.
    pub(crate) batch_size: Option<usize>,
    /// Batches in flight, each with buffers of its own.
    pub(crate) copy_streams: Option<usize>,
    /// Streams on which batches are computed.
    pub(crate) inference_streams: Option<usize>,
}

impl AcceleratorSettings {
    /// The board as these settings have it run.
    pub(crate) fn applied_to(&self, board: &BoardModel) -> BoardModel {
        let (dlas, gpus): (Vec<_>, Vec<_>) = board.units.iter().cloned().partition(is_dla);
        let dlas = dlas.into_iter().take(self.max_dlas.unwrap_or(usize::MAX));
        let units = gpus.into_iter().map(|unit| self.gpu.applied_to(unit, 1));
        let loops = self.dla_loop_count.unwrap_or(1);
        let mut units: Vec<UnitModel> = units
            .chain(dlas.map(|unit| self.dla.applied_to(unit, loops)))
            .collect();
        if self.use_direct_host_access == Some(true) {
            units.iter_mut().for_each(|unit| unit.copy = 0.0);
        }
        BoardModel {
            units,
            ..board.clone()
        }
    }
}

/// Whether a modelled unit is a DLA core.
fn is_dla(unit: &UnitModel) -> bool {
    unit.name.starts_with("dla")
}

impl UnitSettings {
    /// The unit with this batch and so many batches in flight, each computed `loops` times in a row. A batch beyond those
    /// that the table knows counts as the largest of them.
    fn applied_to(&self, mut unit: UnitModel, loops: usize) -> UnitModel {
        let batch = self.batch_size.unwrap_or(unit.batch).min(unit.times.max_batch());
        unit.batch = batch.saturating_mul(loops);
        if let Some(times) = looped(&unit.times, batch, loops) {
            unit.times = times;
        }
        unit.streams = self.copy_streams.unwrap_or(unit.streams);
        unit
    }
}

/// Times of up to `loops` batches of `batch` samples in a row; `None` for one.
fn looped(times: &ServiceTimes, batch: usize, loops: usize) -> Option<ServiceTimes> {
    let once = times.seconds(batch);
    let steps = (1..=loops).flat_map(|done| {
        let seconds = once * done as f64;
        [(batch * (done - 1) + 1, seconds), (batch * done, seconds)]
    });
    let mut points: Vec<_> = steps.collect();
    points.dedup_by_key(|&mut (size, _)| size);
    // Sizes ascend and times are positive, so the points are a table.
    (loops > 1).then(|| ServiceTimes::new(points).ok()).flatten()
}

/// The engines that have units.
const UNITS: &[EngineKind] = &[EngineKind::Tensorrt, EngineKind::Sim];

/// A setting of these.
const fn of_units(
    name: &'static str,
    expected: &'static str,
    take: fn(&mut super::HarnessSettings, &str) -> Option<()>,
) -> Setting {
    Setting {
        name,
        expected,
        engines: UNITS,
        take,
    }
}

const STREAMS: &str = "a whole number from 1 to 64";
const CORE: &str = "a whole number from 0 to 15";
const GPUS: &str = "`all`, or CUDA's numbers of GPUs separated by commas, such as 0,2";
const ENGINE: &str = "an engine's key, or its directory";
const SWITCH: &str = "`true` or `false`";
const FORMAT: &str =
    "`linear`, `chw4`, `chw16`, `chw32`, `hwc8`, `dhwc8`, `cdhw32`, `dla_linear` or `dla_hwc4`";

pub(super) const SETTINGS: &[Setting] = &[
    of_units("gpu_batch_size", COUNT, |s, v| {
        put(&mut s.accelerator.gpu.batch_size, count(v))
    }),
    of_units("dla_batch_size", COUNT, |s, v| {
        put(&mut s.accelerator.dla.batch_size, count(v))
    }),
    of_units("gpu_copy_streams", STREAMS, |s, v| {
        put(&mut s.accelerator.gpu.copy_streams, streams(v))
    }),
    of_units("dla_copy_streams", STREAMS, |s, v| {
        put(&mut s.accelerator.dla.copy_streams, streams(v))
    }),
    of_units("gpu_inference_streams", STREAMS, |s, v| {
        put(&mut s.accelerator.gpu.inference_streams, streams(v))
    }),
    of_units("dla_inference_streams", STREAMS, |s, v| {
        put(&mut s.accelerator.dla.inference_streams, streams(v))
    }),
    of_units("dla_loop_count", STREAMS, |s, v| {
        put(&mut s.accelerator.dla_loop_count, streams(v))
    }),
    of_units("gpu_engine", ENGINE, |s, v| {
        put(&mut s.accelerator.gpu_engine, word(v))
    }),
    of_units("dla_engine", ENGINE, |s, v| {
        put(&mut s.accelerator.dla_engine, word(v))
    }),
    of_units("gpus", GPUS, |s, v| {
        s.accelerator.gpus = Gpus::parse(v)?;
        Some(())
    }),
    of_units("max_dlas", CORE, |s, v| put(&mut s.accelerator.max_dlas, core(v))),
    of_units("dla_core", CORE, |s, v| put(&mut s.accelerator.dla_core, core(v))),
    of_units("use_graphs", SWITCH, |s, v| {
        put(&mut s.accelerator.use_graphs, switch(v))
    }),
    of_units("use_direct_host_access", SWITCH, |s, v| {
        put(&mut s.accelerator.use_direct_host_access, switch(v))
    }),
    of_units("use_spin_wait", SWITCH, |s, v| {
        put(&mut s.accelerator.use_spin_wait, switch(v))
    }),
    of_units("run_infer_on_copy_streams", SWITCH, |s, v| {
        put(&mut s.accelerator.run_infer_on_copy_streams, switch(v))
    }),
    of_units("workspace_size", "a whole number of bytes", |s, v| {
        put(&mut s.accelerator.workspace_size, v.parse().ok())
    }),
    of_units("exact_batch", SWITCH, |s, v| {
        s.accelerator.exact_batch = switch(v)?;
        Some(())
    }),
    of_units("precision", "`fp32`, `fp16` or `int8`", |s, v| {
        put(&mut s.accelerator.precision, one_of(&["fp32", "fp16", "int8"], v))
    }),
    of_units("input_dtype", "`fp32`, `fp16`, `int8` or `int32`", |s, v| {
        put(
            &mut s.accelerator.input_dtype,
            one_of(&["fp32", "fp16", "int8", "int32"], v),
        )
    }),
    of_units("input_format", FORMAT, |s, v| {
        put(
            &mut s.accelerator.input_format,
            one_of(
                &[
                    "linear",
                    "chw4",
                    "chw16",
                    "chw32",
                    "hwc8",
                    "dhwc8",
                    "cdhw32",
                    "dla_linear",
                    "dla_hwc4",
                ],
                v,
            ),
        )
    }),
];

fn streams(given: &str) -> Option<usize> {
    count(given).filter(|&streams| streams <= 64)
}

fn core(given: &str) -> Option<usize> {
    given.parse().ok().filter(|&core| core <= 15)
}

fn switch(given: &str) -> Option<bool> {
    given.parse().ok()
}

fn word(given: &str) -> Option<String> {
    (!given.is_empty()).then(|| given.to_owned())
}

fn one_of(words: &[&'static str], given: &str) -> Option<&'static str> {
    words.iter().find(|word| **word == given).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::sim::SimModel;

    fn orin() -> BoardModel {
        SimModel::board_named("agx-orin.resnet50").unwrap()
    }

    #[test]
    fn a_board_runs_as_the_settings_say() {
        let settings = AcceleratorSettings {
            gpu: UnitSettings {
                batch_size: Some(64),
                copy_streams: Some(4),
                inference_streams: None,
            },
            dla: UnitSettings {
                batch_size: Some(2),
                ..UnitSettings::default()
            },
            dla_loop_count: Some(4),
            max_dlas: Some(1),
            ..AcceleratorSettings::default()
        };
        let board = settings.applied_to(&orin());
        let told: Vec<_> = board
            .units
            .iter()
            .map(|unit| (unit.name.as_str(), unit.batch, unit.streams))
            .collect();
        assert_eq!(told, [("gpu", 64, 4), ("dla0", 8, 2)]);
        // Each loop takes what a batch of 2 takes, however many samples of it are there.
        let (looped, once) = (&board.units[1].times, orin().units[1].times.seconds(2));
        for (samples, loops) in [(1, 1.0), (2, 1.0), (3, 2.0), (6, 3.0), (7, 4.0), (8, 4.0)] {
            let expected: f64 = once * loops;
            assert!((looped.seconds(samples) - expected).abs() < 1e-12, "{samples}");
        }
    }

    #[test]
    fn nothing_set_changes_nothing() {
        assert_eq!(AcceleratorSettings::default().applied_to(&orin()), orin());
    }

    #[test]
    fn a_batch_beyond_the_table_is_the_tables_largest() {
        let dla = UnitSettings {
            batch_size: Some(64),
            ..UnitSettings::default()
        };
        let settings = AcceleratorSettings {
            dla,
            ..AcceleratorSettings::default()
        };
        assert_eq!(settings.applied_to(&orin()).units[1].batch, 8);
    }

    #[test]
    fn shared_memory_takes_no_copy() {
        let mut board = orin();
        board.units[0].copy = 1e-5;
        let mut settings = AcceleratorSettings {
            use_direct_host_access: Some(false),
            ..AcceleratorSettings::default()
        };
        assert_eq!(settings.applied_to(&board), board);
        settings.use_direct_host_access = Some(true);
        assert_eq!(settings.applied_to(&board), orin());
    }
}
