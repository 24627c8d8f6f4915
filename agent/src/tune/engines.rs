//! What the engines of the cache can do, for a search that is to build none. Reads their manifests and loads nothing.

use std::path::Path;

use regatta_tensorrt::{EngineCache, Model};

use crate::exit::Failure;

/// The engines that there are for a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct EnginesHere {
    /// The largest batch of any for the GPU; 0 where there is none.
    pub(super) gpu_batch: usize,
    /// The most profiles of any of these.
    pub(super) profiles: usize,
    /// Batches of those for DLA, which are as they are.
    pub(super) dla_batches: Vec<usize>,
}

impl EnginesHere {
    /// Those of a cache for a model. One that is damaged, or of another machine, is a failed trial's affair.
    ///
    /// # Errors
    /// [`Failure`] when the model or the cache cannot be read.
    pub(super) fn of(cache: &Path, model: &Path) -> Result<Self, Failure> {
        let onnx = Model::read(model)
            .and_then(|model| model.sha256())
            .map_err(Failure::could_not)?;
        let mut here = Self::default();
        for (_, entry) in EngineCache::new(cache.to_owned()).list()? {
            let Ok(manifest) = entry.map(|entry| entry.manifest) else {
                continue;
            };
            if manifest.onnx_sha256 != onnx {
                continue;
            }
            let batch = manifest.batch as usize;
            if manifest.dla.is_some() {
                here.dla_batches.push(batch);
            } else {
                here.gpu_batch = here.gpu_batch.max(batch);
                here.profiles = here.profiles.max(manifest.profiles as usize);
            }
        }
        Ok(here)
    }
}
