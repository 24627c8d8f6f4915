//! The scratch directory of a run process: the device's own, or links to the run's assets beside the device's files.

use std::{collections::BTreeMap, fs, path::PathBuf};

use regatta_engines::tensorrt::ENGINES;

use crate::{
    assets::{AssetStore, view},
    config::AgentConfig,
    daemon::runs::{run_dir::RunDir, run_failure::RunFailure},
};

/// Returns the scratch directory for a run's process.
///
/// # Errors
/// When the links to the assets cannot be created.
pub(super) fn scratch_of(dir: &RunDir, config: &AgentConfig) -> Result<Option<PathBuf>, RunFailure> {
    let assets = dir.assets().map_err(RunFailure::of)?;
    let Some(assets) = assets else {
        return Ok(config.scratch.clone());
    };
    let link_assets = || -> anyhow::Result<PathBuf> {
        let store = AssetStore::open(&config.state_dir)?;
        let places: BTreeMap<String, PathBuf> = assets
            .needed
            .iter()
            .map(|asset| (asset.path.clone(), store.place(asset)))
            .collect();
        let scratch = dir.scratch();
        if let Some(own) = &config.scratch {
            // The view links it, so that engines which the run builds stay. The scratch directory may be read-only.
            let engines = own.join(ENGINES);
            if let Err(error) = fs::create_dir_all(&engines) {
                tracing::warn!(
                    "engines that runs build are not kept: {}: {error}",
                    engines.display()
                );
            }
        }
        view::make(&scratch, config.scratch.as_deref(), &places)?;
        Ok(scratch)
    };
    let linked = link_assets().map_err(|e| format!("the run's assets cannot be laid out: {e:#}"))?;
    Ok(Some(linked))
}
