//! The limits of the engines in the cache, for a search that builds none. This module reads manifests and does not load
//! engines.

use std::path::{Path, PathBuf};

use regatta_tensorrt::{EngineCache, EngineManifest, Model};

use crate::exit::Failure;

/// What the existing engines of a benchmark can do.
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
    /// Returns what the engines of every network can do. Ignores damaged entries of the cache. An engine for another machine only makes
    /// its trial fail.
    ///
    /// # Errors
    /// [`Failure`] when a network or the cache cannot be read.
    pub(super) fn of(cache: &Path, networks: &[PathBuf]) -> Result<Self, Failure> {
        let manifests: Vec<EngineManifest> = EngineCache::new(cache.to_owned())
            .list()?
            .into_iter()
            .filter_map(|(_, entry)| Some(entry.ok()?.manifest))
            .collect();
        let mut of_all: Option<Self> = None;
        for network in networks {
            let onnx = Model::read(network)
                .and_then(|model| model.sha256())
                .map_err(Failure::could_not)?;
            let own = Self::among(manifests.iter().filter(|manifest| manifest.onnx_sha256 == onnx));
            of_all = Some(match of_all {
                Some(others) => others.and(&own),
                None => own,
            });
        }
        Ok(of_all.unwrap_or_default())
    }

    fn among<'a>(manifests: impl Iterator<Item = &'a EngineManifest>) -> Self {
        let mut here = Self::default();
        for manifest in manifests {
            let batch = manifest.batch as usize;
            if manifest.dla.is_some() {
                here.dla_batches.push(batch);
            } else {
                here.gpu_batch = here.gpu_batch.max(batch);
                here.profiles = here.profiles.max(manifest.profiles as usize);
            }
        }
        here
    }

    /// Returns what both can do.
    fn and(mut self, other: &Self) -> Self {
        self.gpu_batch = self.gpu_batch.min(other.gpu_batch);
        self.profiles = self.profiles.min(other.profiles);
        self.dla_batches.retain(|batch| other.dla_batches.contains(batch));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_engines_of_every_network_can_do_remains() {
        let here = |gpu_batch, profiles, dla_batches: &[usize]| EnginesHere {
            gpu_batch,
            profiles,
            dla_batches: dla_batches.to_vec(),
        };
        let both = here(16, 1, &[2, 4]).and(&here(8, 3, &[4, 8]));
        assert_eq!(both, here(8, 1, &[4]));
        assert_eq!(both.and(&EnginesHere::default()), EnginesHere::default());
    }
}
