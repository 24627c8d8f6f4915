//! Selects the calibration of runs whose settings ask for int8 and name none: the samples of the published list, where they are an asset.
//! Without scales from anywhere no int8 engine can be built, so such a run is refused before it is queued. This module makes no samples.

use std::path::Path;

use regatta_tensorrt::Model;
use regatta_types::{
    documents::{EngineKind, RunSpec, RunTask},
    engine_settings::{EngineBuild, EnginePrecision, InnerPath},
};

/// A run whose engine would have no scales.
#[derive(Debug, thiserror::Error)]
#[error(
    "the settings need int8 engines of {benchmark}, which need scales, and no calibration of it is an asset"
)]
pub struct NoScales {
    benchmark: String,
    /// Where `prep` writes the samples of a published list.
    dir: Option<String>,
}

impl NoScales {
    /// Returns the remedy.
    pub fn hint(&self) -> String {
        let own = "`--set calibration=PATH` names an asset with scales or samples, `--set precision=fp16` needs none";
        match (&self.dir, &self.benchmark) {
            (Some(dir), benchmark) => format!(
                "`regatta prep {benchmark} --data DIR --calibration LIST` prepares the samples of a list that `regatta data show {benchmark}` \
                 names, `regatta asset add {dir}` serves them; {own}"
            ),
            (None, _) => own.to_owned(),
        }
    }
}

/// Selects the calibration of a run, if its settings need one. `is_asset` returns whether a path is served as an asset. A model that is not
/// is the device's own, which only the device sees.
///
/// # Errors
/// Returns [`NoScales`] when the engine would have none.
pub(crate) fn select_calibration(
    spec: &mut RunSpec,
    is_asset: &dyn Fn(&str) -> bool,
    scratch: &Path,
) -> Result<(), NoScales> {
    let settings = &spec.engine.settings;
    let needs_scales = spec.engine.kind == EngineKind::Tensorrt
        && settings.precision == Some(EnginePrecision::Int8)
        && settings.calibration.is_none();
    // Engines that exist already have their scales.
    let is_built = settings.engine_build == Some(EngineBuild::Never)
        || settings.gpu_engine.is_some()
        || spec.task == RunTask::EngineInspection;
    if !needs_scales || is_built {
        return Ok(());
    }
    let mut networks = spec.benchmark.model.networks().into_iter();
    let prepared = match networks.len() {
        1 => spec.benchmark.calibration_dirs(),
        // The scales of several networks are files, one for each.
        _ => Vec::new(),
    };
    if let Some(dir) = prepared.iter().find(|dir| is_asset(dir)) {
        spec.engine.settings.calibration = Some(InnerPath(dir.clone()));
        return Ok(());
    }
    if networks.any(|network| is_asset(&network) && has_no_scales(&scratch.join(network))) {
        return Err(NoScales {
            benchmark: spec.benchmark.name.clone(),
            dir: prepared.into_iter().next(),
        });
    }
    Ok(())
}

/// Returns whether a network is known to have no Q/DQ layers.
fn has_no_scales(network: &Path) -> bool {
    Model::read(network).is_ok_and(|model| model.is_quantised() == Some(false))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use regatta_catalogue::catalogue::Catalogue;
    use regatta_types::documents::Document as _;

    use super::*;

    fn spec(benchmark: &str, settings: &[(&str, &str)]) -> RunSpec {
        let catalogue = Catalogue::read(None).unwrap();
        let benchmark = serde_json::to_value(catalogue.benchmark(benchmark).unwrap()).unwrap();
        let settings: std::collections::BTreeMap<_, _> = settings.iter().copied().collect();
        let spec = serde_json::json!({
            "schema": 1, "run": "018f4e2a-7b6c-7d3e-8f00-112233445566", "device": "0123456789abcdef0123456789abcdef",
            "created": "2026-01-01T00:00:00Z", "round": "v6.1", "benchmark": benchmark, "scenario": "Offline",
            "mode": "PerformanceOnly", "engine": { "kind": "tensorrt", "settings": settings }, "loadgen": "native",
            "length": "full", "conf": { "mlperf_conf": "", "user_conf": "", "audit_config": null }, "delivery": "after",
        });
        RunSpec::from_json(spec.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn int8_takes_the_prepared_list_or_is_refused_where_the_network_has_no_scales() {
        let scratch = tempfile::tempdir().unwrap();
        let (model, list) = (
            "models/resnet50/resnet50.onnx",
            "preprocessed_data/imagenet/ResNet50/cal_image_list_option_1_fp32_linear",
        );
        let spec = |settings: &[(&str, &str)]| {
            let mut spec = spec("resnet50", settings);
            spec.benchmark.model.file = model.to_owned();
            spec
        };
        let selected = |settings: &[(&str, &str)], assets: &[&str]| {
            let mut spec = spec(settings);
            let is_asset = |path: &str| assets.contains(&path);
            select_calibration(&mut spec, &is_asset, scratch.path())
                .map(|()| spec.engine.settings.calibration.map(|path| path.0))
        };
        let int8 = [("precision", "int8")];
        // An ONNX file with one node: Relu, then QuantizeLinear.
        let network = |node: &[u8]| {
            let field = |number: u8, bytes: &[u8]| {
                [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()][..], bytes].concat()
            };
            let graph = field(7, &field(1, &field(4, node)));
            fs::create_dir_all(scratch.path().join("models/resnet50")).unwrap();
            fs::write(scratch.path().join(model), graph).unwrap();
        };
        network(b"Relu");
        let refused = selected(&int8, &[model]).unwrap_err();
        assert!(
            refused.hint().contains(&format!("regatta asset add {list}")),
            "{}",
            refused.hint()
        );
        assert_eq!(selected(&int8, &[model, list]).unwrap().as_deref(), Some(list));
        assert_eq!(selected(&int8, &[]).unwrap(), None, "the device's own files");
        for settings in [
            [("precision", "fp16")].as_slice(),
            &[("precision", "int8"), ("engine_build", "never")],
            &[("precision", "int8"), ("gpu_engine", "ab12")],
        ] {
            assert_eq!(selected(settings, &[model]).unwrap(), None, "{settings:?}");
        }
        let named = [("precision", "int8"), ("calibration", "own.cache")];
        assert_eq!(
            selected(&named, &[model, list]).unwrap().as_deref(),
            Some("own.cache")
        );
        network(b"QuantizeLinear");
        assert_eq!(selected(&int8, &[model]).unwrap(), None);
    }
}
