//! Selects the calibration of runs whose settings request int8 without naming one: the samples of the published list, if they are an asset. An int8
//! engine cannot be built without scales, so a run without any is refused before it is queued. This module does not prepare samples.

use std::path::Path;

use regatta_tensorrt::Model;
use regatta_types::{
    documents::{EngineKind, RunSpec, RunTask},
    engine_settings::{EngineBuild, EnginePrecision, InnerPath},
};

/// The ways to run without prepared calibration samples.
pub const SCALES_HINT: &str =
    "`--set calibration=PATH` names an asset with scales or samples, `--set precision=fp16` needs none";

/// A run that needs int8 engines and would not have scales for them.
#[derive(Debug, thiserror::Error)]
#[error(
    "the settings select int8 engines for {benchmark}, which need scales, but none of its calibrations is an asset"
)]
pub struct NoScales {
    benchmark: String,
    /// The directory into which `prep` writes the samples of a published list.
    dir: Option<String>,
}

impl NoScales {
    pub fn hint(&self) -> String {
        let own = SCALES_HINT;
        match (&self.dir, &self.benchmark) {
            (Some(dir), benchmark) => format!(
                "`regatta prep {benchmark} --data DIR --calibration LIST` prepares the samples of a list that `regatta data show {benchmark}` \
                 names, `regatta asset add {dir}` serves them; {own}"
            ),
            (None, _) => own.to_owned(),
        }
    }
}

/// Selects the calibration of a run if its settings need one. `is_asset` returns whether a path is served as an asset. A model that is not an asset
/// is on the device, and cannot be inspected here.
///
/// # Errors
/// Returns [`NoScales`] when the engine would not have scales.
pub(crate) fn select_calibration(
    spec: &mut RunSpec,
    is_asset: &dyn Fn(&str) -> bool,
    scratch: &Path,
) -> Result<(), NoScales> {
    if !needs_scales(spec) {
        return Ok(());
    }
    let mut networks = spec.benchmark.model.networks().into_iter();
    let prepared = spec.benchmark.calibration_dirs();
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

/// Returns whether the engines of a run are int8 engines for which its settings name no scales.
pub(crate) fn needs_scales(spec: &RunSpec) -> bool {
    let settings = &spec.engine.settings;
    let needs_scales = spec.engine.kind == EngineKind::Tensorrt
        && settings.precision == Some(EnginePrecision::Int8)
        && settings.calibration.is_none();
    // Existing engines already contain their scales.
    let is_built = settings.engine_build == Some(EngineBuild::Never)
        || settings.gpu_engine.is_some()
        || spec.task == RunTask::EngineInspection;
    needs_scales && !is_built
}

/// Returns whether a network is known not to contain Q/DQ layers.
pub fn has_no_scales(network: &Path) -> bool {
    Model::read(network).is_ok_and(|model| model.is_quantised() == Some(false))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::example_spec::tensorrt_spec;

    #[test]
    fn int8_takes_the_prepared_list_or_is_refused_where_the_network_has_no_scales() {
        let scratch = tempfile::tempdir().unwrap();
        let (model, list) = (
            "models/resnet50/resnet50.onnx",
            "preprocessed_data/imagenet/ResNet50/cal_image_list_option_1_fp32_linear",
        );
        let spec = |settings: &[(&str, &str)]| {
            let mut spec = tensorrt_spec("resnet50", settings);
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
        // An ONNX file with one node, which is Relu first and QuantizeLinear later.
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
