//! Assets, the coordinator's half: models, preprocessed data and caches that devices get from here. Each file is stored once under
//! its SHA-256 ([`asset_store`]); the store has the path of each below the scratch directory; devices get them over HTTPS
//! ([`server`]). The agent's half, and how the bytes travel: docs/assets.md.

mod asset_store;
mod body;
mod server;
mod tree;

pub(crate) use asset_store::{AssetStore, AssetStoreError, LockedAssetStore};
use regatta_types::{
    assets::{Asset, Assets},
    documents::RunSpec,
};
pub(crate) use server::Server;

use crate::{
    store::{self, AssetRow, Store},
    workspace::Config,
};

/// Why a run's assets cannot be named.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AssetsError {
    /// The store.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// Nobody serves them.
    #[error(
        "the benchmark's files are assets, and none are served: set `assets_listen = \"0.0.0.0:8885\"` in regatta.toml, or \
         drop them with `regatta asset remove`"
    )]
    NotServed,
    /// Something that was named is no asset.
    #[error("`{0}` is no asset; `regatta asset list` shows those that there are")]
    Unknown(String),
}

/// Names in a run's spec the assets that the run needs: those that hold its benchmark's model, samples and map, and those
/// in `wanted`. Engines that look at no data need none.
///
/// # Errors
/// [`AssetsError`].
pub(crate) fn name_in(
    spec: &mut RunSpec,
    requested: &[String],
    store: &Store,
    config: &Config,
) -> Result<(), AssetsError> {
    let rows = store.assets()?;
    let mut needed: Vec<Asset> = Vec::new();
    if spec.engine.kind.computes() {
        let places = places(spec);
        let holds_one = |row: &&AssetRow| places.iter().any(|place| holds(&row.asset.path, place));
        needed.extend(rows.iter().filter(holds_one).map(|row| row.asset.clone()));
    }
    for path in requested {
        let row = rows.iter().find(|row| row.asset.path == *path);
        let asset = &row.ok_or_else(|| AssetsError::Unknown(path.clone()))?.asset;
        if !needed.contains(asset) {
            needed.push(asset.clone());
        }
    }
    if !needed.is_empty() {
        let server = config.assets_for_devices().ok_or(AssetsError::NotServed)?;
        spec.assets = Some(Assets { server, needed });
    }
    Ok(())
}

/// Where a run looks for its files.
fn places(spec: &RunSpec) -> [&str; 3] {
    let benchmark = &spec.benchmark;
    [
        &benchmark.model.file,
        &benchmark.dataset.dir,
        &benchmark.dataset.map,
    ]
}

/// Whether what lies at `place` below the scratch directory is the asset at `path`, is in it, or holds it.
pub(crate) fn holds(path: &str, place: &str) -> bool {
    let within = |inner: &str, outer: &str| {
        inner
            .strip_prefix(outer)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    within(place, path) || within(path, place)
}

#[cfg(test)]
mod tests {
    use super::holds;

    #[test]
    fn an_asset_holds_what_is_in_it_and_stands_for_what_it_is_part_of() {
        assert!(holds("models/digits", "models/digits/digits.onnx"));
        assert!(holds("models/digits/digits.onnx", "models/digits/digits.onnx"));
        assert!(holds("data/digits/part-1", "data/digits"));
        assert!(!holds("models/digit", "models/digits/digits.onnx"));
        assert!(!holds(
            "models/digits/digits.onnx",
            "models/digits/digits.onnx.txt"
        ));
    }
}
