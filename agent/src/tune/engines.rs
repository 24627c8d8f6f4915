//! The limits of the engines in the cache, for a search that builds none. This module reads manifests and does not load
//! engines.

use std::path::Path;

use regatta_tensorrt::{EngineCache, Model};

use crate::exit::Failure;

/// The existing engines for a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct EnginesHere {
    /// The largest batch of any GPU engine. 0 if there is none.
    pub(super) gpu_batch: usize,
    /// The most profiles of any GPU engine.
    pub(super) profiles: usize,
    /// The fixed batches of the DLA engines.
    pub(super) dla_batches: Vec<usize>,
}

impl EnginesHere {
    /// Reads the engines of a cache for a model. Ignores damaged entries. An engine for another machine only makes its
    /// trial fail.
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
