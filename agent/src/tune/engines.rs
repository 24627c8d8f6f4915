//! The limits of the engines in the cache, for a search that builds none. This module reads manifests and does not load
//! engines.

use std::path::{Path, PathBuf};

use regatta_tensorrt::{EngineCache, EngineManifest, Model};

use crate::exit::Failure;

/// What the existing engines of a benchmark can do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct EngineLimits {
    /// The largest batch of any GPU engine. 0 if there is none.
    pub(super) gpu_batch: usize,
    /// The most profiles of any GPU engine.
    pub(super) profiles: usize,
    /// The fixed batches of the DLA engines.
    pub(super) dla_batches: Vec<usize>,
}

impl EngineLimits {
    /// Returns the capabilities of the engines of every network. Ignores damaged cache entries. An engine that was built for another machine only
    /// fails its trial.
    ///
    /// # Errors
    /// [`Failure`] when a network or the cache cannot be read.
    pub(super) fn of(cache: &Path, networks: &[PathBuf]) -> Result<Self, Failure> {
        let manifests: Vec<EngineManifest> = EngineCache::new(cache.to_owned())
            .list()?
            .into_iter()
            .filter_map(|(_, entry)| Some(entry.ok()?.manifest))
            .collect();
        let of_network = |network: &PathBuf| {
            let onnx = Model::read(network)
                .and_then(|model| model.sha256())
                .map_err(Failure::could_not)?;
            Ok(Self::among(
                manifests.iter().filter(|manifest| manifest.onnx_sha256 == onnx),
            ))
        };
        let limits: Vec<Self> = networks.iter().map(of_network).collect::<Result<_, Failure>>()?;
        Ok(limits.into_iter().reduce(Self::and).unwrap_or_default())
    }

    fn among<'a>(manifests: impl Iterator<Item = &'a EngineManifest>) -> Self {
        let mut limits = Self::default();
        for manifest in manifests {
            let batch = manifest.batch as usize;
            if manifest.dla.is_some() {
                limits.dla_batches.push(batch);
            } else {
                limits.gpu_batch = limits.gpu_batch.max(batch);
                limits.profiles = limits.profiles.max(manifest.profiles as usize);
            }
        }
        limits
    }

    /// Returns what both can do.
    fn and(mut self, other: Self) -> Self {
        self.gpu_batch = self.gpu_batch.min(other.gpu_batch);
        self.profiles = self.profiles.min(other.profiles);
        self.dla_batches.retain(|batch| other.dla_batches.contains(batch));
        self
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use regatta_fsutil::hash::sha256_hex;
    use regatta_tensorrt::{
        BuildOutput, BuildSettings, CacheEntry, CalibrationMethod, IoFormat, Placement, Precision,
    };

    use super::*;

    /// Stores an engine for a network, which no test computes.
    fn store(cache: &Path, network: &Path, batch: u32, profiles: u32) {
        let settings = BuildSettings {
            onnx: network.to_owned(),
            precision: Precision::AsInNetwork,
            batch,
            min_batch: 1,
            profiles,
            workspace_bytes: 0,
            optimization_level: None,
            dla: None,
            input_shapes: Vec::new(),
            input: IoFormat::default(),
            output: IoFormat::default(),
            timing_cache: Vec::new(),
            calibration_cache: Vec::new(),
            calibration_method: CalibrationMethod::default(),
        };
        let built = BuildOutput {
            plan: format!("{batch} {profiles}").into_bytes(),
            timing_cache: Vec::new(),
            calibration_cache: Vec::new(),
            placement: Placement::default(),
        };
        let onnx = sha256_hex(&fs::read(network).unwrap());
        let entry = CacheEntry {
            manifest: EngineManifest::new(&settings, onnx, "8.5.2".parse().unwrap(), "chip".to_owned()),
            plan_sha256: sha256_hex(&built.plan),
            plan_bytes: built.plan.len() as u64,
            build_seconds: 0.0,
            tensors: Vec::new(),
            placement: Placement::default(),
        };
        EngineCache::new(cache.to_owned()).store(&entry, &built).unwrap();
    }

    #[test]
    fn only_what_the_engines_of_every_network_can_do_is_searched() {
        let place = tempfile::tempdir().unwrap();
        let (cache, networks) = (
            place.path().join("engines"),
            ["encoder", "decoder"].map(|name| place.path().join(name)),
        );
        for network in &networks {
            fs::write(network, network.file_name().unwrap().as_encoded_bytes()).unwrap();
        }
        let limits = || EngineLimits::of(&cache, &networks).unwrap();
        assert_eq!(limits(), EngineLimits::default());
        store(&cache, &networks[0], 16, 1);
        assert_eq!(limits(), EngineLimits::default(), "the decoder has no engine");
        store(&cache, &networks[1], 8, 3);
        let of_both = EngineLimits {
            gpu_batch: 8,
            profiles: 1,
            dla_batches: Vec::new(),
        };
        assert_eq!(limits(), of_both);
    }

    #[test]
    fn a_batch_of_the_dla_remains_if_every_network_has_it() {
        let of = |dla_batches: &[usize]| EngineLimits {
            dla_batches: dla_batches.to_vec(),
            ..EngineLimits::default()
        };
        assert_eq!(of(&[2, 4]).and(of(&[4, 8])), of(&[4]));
    }
}
