//! What a run asks of TensorRT: from the settings, the scenario and where things lie to the engine's own words.

use std::{
    env,
    path::{Path, PathBuf},
};

use regatta_cuda::WaitMode;
use regatta_rules::Scenario;
use regatta_tensorrt::Precision;

use super::settings::{AcceleratorSettings, HarnessSettings, UnitSettings};
use crate::engines::tensorrt::{Graphs, Installation, UnitWish, Wish};

/// Where `engine build` keeps engines unless it is told otherwise.
const ENGINES: &str = "engines";
/// DLA cores that are used where a setting speaks of DLA and of no number: all that any Jetson has.
const ALL_DLAS: usize = 2;

/// The wish of a run.
pub(crate) fn wish(settings: &HarnessSettings, scenario: Scenario, scratch: Option<&Path>) -> Wish {
    let accelerator = &settings.accelerator;
    let latency = matches!(scenario, Scenario::SingleStream | Scenario::MultiStream);
    let dla_cores = match scenario {
        // One sample at a time is the GPU's, unless there is to be none.
        Scenario::SingleStream if accelerator.dla_core.is_none() => Vec::new(),
        _ => dla_cores(accelerator),
    };
    // A core that was named is alone at work, as in NVIDIA's harness.
    let gpu_streams = if accelerator.dla_core.is_some() { 0 } else { 1 };
    Wish {
        installation: Installation::of_this_machine(),
        cache: engine_cache(scratch),
        precision: accelerator.precision.map(|word| match word {
            "fp16" => Precision::Fp16,
            "int8" => Precision::Int8,
            _ => Precision::AsInNetwork,
        }),
        workspace_bytes: accelerator.workspace_size,
        exact_batch: accelerator.exact_batch,
        // The settings know no other words than these types do.
        input_dtype: accelerator.input_dtype.and_then(|word| word.parse().ok()),
        input_format: accelerator.input_format.and_then(|word| word.parse().ok()),
        gpus: match scenario {
            // One sample at a time is one GPU's.
            Scenario::SingleStream => accelerator.gpus.first(),
            _ => accelerator.gpus.clone(),
        },
        gpu: unit(
            &accelerator.gpu,
            settings,
            &accelerator.gpu_engine,
            gpu_streams,
            scenario,
        ),
        dla: unit(&accelerator.dla, settings, &accelerator.dla_engine, 1, scenario),
        dla_cores,
        dla_loops: accelerator.dla_loop_count.unwrap_or(1),
        graphs: match accelerator.use_graphs {
            Some(true) => Graphs::Wanted,
            Some(false) => Graphs::Never,
            None if latency => Graphs::Usual,
            None => Graphs::Never,
        },
        direct_host_access: accelerator.use_direct_host_access,
        wait: if accelerator.use_spin_wait == Some(true) {
            WaitMode::Spin
        } else {
            WaitMode::Block
        },
    }
}

fn unit(
    unit: &UnitSettings,
    settings: &HarnessSettings,
    engine: &Option<String>,
    usual: usize,
    scenario: Scenario,
) -> UnitWish {
    let streams = unit.copy_streams.or(settings.inference_streams).unwrap_or(1);
    UnitWish {
        engine: engine.clone(),
        batch: match scenario {
            Scenario::SingleStream => Some(1),
            _ => unit.batch_size.or(settings.batch_size),
        },
        streams: match scenario {
            // There is nothing behind a query of these that a second stream could go on with.
            Scenario::SingleStream | Scenario::MultiStream => usual,
            Scenario::Server | Scenario::Offline => usual * streams,
        },
        inference_streams: if settings.accelerator.run_infer_on_copy_streams == Some(true) {
            0
        } else {
            unit.inference_streams.unwrap_or(0)
        },
    }
}

/// The cores that a setting speaks of; none where no setting does.
fn dla_cores(accelerator: &AcceleratorSettings) -> Vec<u32> {
    let spoken_of = accelerator.dla.batch_size.is_some() || accelerator.dla_engine.is_some();
    let count = accelerator
        .max_dlas
        .unwrap_or(if spoken_of { ALL_DLAS } else { 0 });
    let number = |core: usize| u32::try_from(core).unwrap_or(u32::MAX);
    match accelerator.dla_core {
        Some(core) => vec![number(core)],
        None => (0..count).map(number).collect(),
    }
}

/// `REGATTA_ENGINES`, else `engines` here where that is, else below the scratch directory.
pub(crate) fn engine_cache(scratch: Option<&Path>) -> PathBuf {
    let named = env::var_os("REGATTA_ENGINES").filter(|value| !value.is_empty());
    let here = || Some(PathBuf::from(ENGINES)).filter(|place| place.is_dir());
    named
        .map(PathBuf::from)
        .or_else(here)
        .unwrap_or_else(|| scratch.unwrap_or(Path::new("")).join(ENGINES))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(accelerator: AcceleratorSettings, scenario: Scenario) -> Wish {
        let settings = HarnessSettings {
            accelerator,
            ..HarnessSettings::default()
        };
        wish(&settings, scenario, None)
    }

    #[test]
    fn the_gpu_works_alone_unless_a_setting_speaks_of_dla() {
        let dla = AcceleratorSettings {
            max_dlas: Some(2),
            ..AcceleratorSettings::default()
        };
        for (scenario, alone, with_dla) in [
            (Scenario::SingleStream, 1, 1),
            (Scenario::MultiStream, 1, 3),
            (Scenario::Offline, 1, 3),
            (Scenario::Server, 1, 3),
        ] {
            assert_eq!(of(AcceleratorSettings::default(), scenario).streams(), alone);
            assert_eq!(of(dla.clone(), scenario).streams(), with_dla, "{scenario}");
        }
        let named = AcceleratorSettings {
            dla_core: Some(1),
            ..AcceleratorSettings::default()
        };
        let wish = of(named, Scenario::SingleStream);
        assert_eq!((wish.gpu.streams, wish.dla_cores.as_slice()), (0, &[1][..]));
    }
}
