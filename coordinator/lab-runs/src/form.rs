//! Selects the form of a benchmark's samples that the engine's settings name. If devices cannot get that form, the error shows how to make
//! it. This module makes no samples.

use std::path::Path;

use regatta_types::{
    benchmark::{Benchmark, Prep},
    documents::{EngineKind, RunSpec},
    samples::{Form, FormError, SampleSet},
};

use super::int8_scales::needs_scales;

/// A form that a run cannot use.
#[derive(Debug, thiserror::Error)]
pub enum NoForm {
    /// The benchmark's samples cannot have that form.
    #[error(transparent)]
    Form(#[from] FormError),
    /// Devices get the benchmark's samples as assets, but not in this form.
    #[error(
        "the settings need samples of {benchmark} as {requested}, which are not an asset: `{prep}` prepares them, then `regatta asset add --benchmark {benchmark} --dtype {} --layout {}`; `--set input_dtype={}` runs without",
        requested.dtype.word(),
        requested.layout,
        own.dtype.word()
    )]
    NoAsset {
        benchmark: String,
        requested: Form,
        /// The benchmark file's form.
        own: Form,
        /// The command that makes the form.
        prep: String,
    },
}

/// Selects the form of samples that the run's settings name. `is_asset` returns whether a directory is served as an asset. Otherwise the
/// device's own files count, which only the device sees.
///
/// # Errors
/// Returns [`NoForm`] when the samples cannot have the form, or are an asset in another form only.
pub(crate) fn select_sample_form(
    spec: &mut RunSpec,
    is_asset: &dyn Fn(&str) -> bool,
    scratch: &Path,
) -> Result<(), NoForm> {
    let Some(changed) = requested_benchmark(spec)? else {
        return Ok(());
    };
    let (benchmark, own, requested) = (&spec.benchmark, spec.benchmark.form(), changed.form());
    let dir = &changed.dataset.dir;
    let is_made = is_asset(dir) || scratch.join(dir).join(SampleSet::FILE).is_file();
    if own.converts_to(requested) && !is_made {
        return Ok(());
    }
    if is_asset(&benchmark.dataset.dir) && !is_asset(dir) {
        return Err(NoForm::NoAsset {
            benchmark: benchmark.name.clone(),
            requested,
            own,
            prep: requested.prep_command(&benchmark.name),
        });
    }
    spec.benchmark = changed;
    Ok(())
}

/// Returns the benchmark with samples in the form that the run's settings name. Returns `None` when its own samples are used.
fn requested_benchmark(spec: &RunSpec) -> Result<Option<Benchmark>, FormError> {
    let (benchmark, own) = (&spec.benchmark, spec.benchmark.form());
    let requested = match spec.engine.kind {
        EngineKind::Tensorrt => benchmark.requested_form(&spec.engine.settings),
        _ => None,
    };
    let Some(requested) = requested.filter(|&requested| requested != own) else {
        return Ok(None);
    };
    match benchmark.in_form(requested) {
        // The samples may already have this layout, such as NVIDIA's files of [224, 224, 4]. The engine checks them against its input.
        Err(_) if own.dtype == requested.dtype => Ok(None),
        changed => changed.map(Some),
    }
}

/// The samples that must be prepared for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleNeed {
    pub form: Form,
    /// Whether its engines are int8 engines for which the settings name no scales. They need a calibration, or scales in the network.
    pub needs_scales: bool,
}

/// Returns the form of the samples with which the engine needs no conversions. Waveforms always have the benchmark's form, because the settings name
/// the form of the features, which the harness computes from them.
pub(crate) fn sample_need(spec: &RunSpec) -> Result<SampleNeed, FormError> {
    let own = spec.benchmark.form();
    let is_speech = matches!(spec.benchmark.prep, Some(Prep::Speech(_)));
    let requested = requested_benchmark(spec)?.map(|changed| changed.form());
    Ok(SampleNeed {
        form: requested
            .filter(|requested| !(is_speech && own.converts_to(*requested)))
            .unwrap_or(own),
        needs_scales: needs_scales(spec),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::example_spec::tensorrt_spec;

    fn spec(settings: &[(&str, &str)]) -> RunSpec {
        tensorrt_spec("digits", settings)
    }

    #[test]
    fn the_settings_choose_among_what_there_is() {
        let scratch = tempfile::tempdir().unwrap();
        let own = "preprocessed_data/digits/float32";
        let dir = |settings: &[(&str, &str)], assets: &[&str]| {
            let mut spec = spec(settings);
            select_sample_form(&mut spec, &|path| assets.contains(&path), scratch.path())
                .map(|()| spec.benchmark.dataset.dir)
        };
        let int8 = [("input_dtype", "int8"), ("input_format", "chw4")];
        let int8_dir = "preprocessed_data/digits/int8_chw4";
        assert_eq!(dir(&[], &[]).unwrap(), own);
        assert_eq!(
            dir(&[("input_dtype", "fp32"), ("input_format", "linear")], &[own]).unwrap(),
            own
        );
        assert_eq!(dir(&int8, &[]).unwrap(), int8_dir, "a device's own files");
        assert_eq!(dir(&int8, &[own, int8_dir]).unwrap(), int8_dir);
        assert_eq!(
            dir(&int8, &[own]).unwrap_err().to_string(),
            "the settings need samples of digits as int8_chw4, which are not an asset: `regatta prep digits \
             --dtype int8 --layout chw4 --scale SCALE --output SCRATCH` prepares them, then `regatta asset add --benchmark digits \
             --dtype int8 --layout chw4`; `--set input_dtype=fp32` runs without"
        );
        // Engines can convert floats, but ready-made files are preferred.
        let half = [("input_dtype", "fp16")];
        let half_dir = "preprocessed_data/digits/fp16_linear";
        assert_eq!(dir(&half, &[own]).unwrap(), own);
        assert_eq!(dir(&half, &[own, half_dir]).unwrap(), half_dir);
        fs::create_dir_all(scratch.path().join(half_dir)).unwrap();
        fs::write(scratch.path().join(half_dir).join("samples.json"), "").unwrap();
        assert_eq!(dir(&half, &[]).unwrap(), half_dir);
    }
}
