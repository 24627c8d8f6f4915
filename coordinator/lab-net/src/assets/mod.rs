//! Assets at the coordinator: models, preprocessed data and caches for devices.
//!
//! Each file is stored once under its SHA-256 (`asset_store`). The store has the path of each below the scratch directory. Devices
//! download them over HTTPS (`server`). docs/assets.md describes the agent's part and the transfer.

mod asset_store;
mod body;
mod error;
mod server;
mod source_tree;
mod tree;

pub use asset_store::{AssetStore, LockedAssetStore};
pub use error::AssetStoreError;
use regatta_catalogue::servers::{self, ServedWork};
use regatta_types::{
    EngineKind,
    assets::{Asset, Assets},
    benchmark::Benchmark,
    documents::RunSpec,
    engine_settings::EngineSettings,
};
pub use server::{Server, ServerError};
pub use source_tree::SourceTree;

use regatta_lab_store::{self as store, AssetRow, Store, workspace::Config};

/// The reason why a run's assets cannot be named.
#[derive(Debug, thiserror::Error)]
pub enum AssetsError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// No server for assets is configured.
    #[error(
        "the benchmark's files are assets, and none are served: set `assets_listen = \"0.0.0.0:8885\"` in regatta.toml, or \
         drop them with `regatta asset remove`"
    )]
    NotServed,
    /// A requested name is not an asset.
    #[error("`{0}` is not an asset; hint: `regatta asset list` shows all")]
    Unknown(String),
}

/// Adds the assets that a run needs to its spec: those with its benchmark's model, samples and map, and those in `requested`. Engines
/// that read no data need none.
///
/// # Errors
/// Returns [`AssetsError`].
pub fn name_in(
    spec: &mut RunSpec,
    requested: &[String],
    store: &Store,
    config: &Config,
) -> Result<(), AssetsError> {
    let rows = store.assets().all()?;
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

/// Returns the paths at which a run looks for its files.
pub fn places(spec: &RunSpec) -> Vec<String> {
    let benchmark = &spec.benchmark;
    let settings = &spec.engine.settings;
    let mut places = if spec.engine.kind == EngineKind::Server {
        served_places(benchmark, settings)
    } else {
        benchmark.model.files()
    };
    places.extend(settings.tensorrt_plugins.iter().flat_map(|paths| paths.0.clone()));
    places.extend(settings.calibration.as_ref().map(|path| path.0.clone()));
    places.extend([benchmark.dataset.dir.clone(), benchmark.dataset.map.clone()]);
    // Utterances have no map.
    places.retain(|place| !place.is_empty());
    places
}

/// Returns the paths of what a model server loads and its driver needs.
fn served_places(benchmark: &Benchmark, settings: &EngineSettings) -> Vec<String> {
    let mut places = match &settings.server_model {
        Some(model) => vec![model.0.clone()],
        // The server has its model already. The file of a network has the order of its outputs.
        None if settings.server_address.is_some()
            && ServedWork::of(&benchmark.model) != ServedWork::Networks =>
        {
            Vec::new()
        }
        None => benchmark.model.files(),
    };
    let needs_tokenizer = ServedWork::of(&benchmark.model) == ServedWork::Speech
        || settings.server.as_deref().is_some_and(servers::may_take_texts);
    places.extend(benchmark.tokenizer_file().filter(|_| needs_tokenizer));
    places
}

/// Returns whether `place`, below the scratch directory, is the asset at `path`, is inside it, or contains it.
pub fn holds(path: &str, place: &str) -> bool {
    let within = |inner: &str, outer: &str| {
        inner
            .strip_prefix(outer)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    within(place, path) || within(path, place)
}

#[cfg(test)]
mod tests {
    use regatta_catalogue::known;

    use super::*;

    #[test]
    fn a_server_gets_the_model_that_it_loads_and_the_tokenizer_that_its_driver_needs() {
        let mut benchmarks = known::benchmarks().unwrap().into_iter();
        let llama = benchmarks
            .find(|benchmark| benchmark.name == "llama3.1-8b-edge")
            .unwrap();
        let resnet = benchmarks.find(|benchmark| benchmark.name == "resnet50").unwrap();
        let places = |benchmark: &Benchmark, settings: &[(&str, &str)]| {
            let settings = EngineSettings::parse(EngineKind::Server, settings.iter().copied());
            served_places(benchmark, &settings.unwrap())
        };
        let running = ("server_address", "127.0.0.1:8080");
        let own = "models/llama3.1-8b/config.json";
        assert_eq!(places(&llama, &[("server", "llama-cpp")]), [own]);
        assert_eq!(places(&llama, &[("server", "llama-cpp"), running]), [""; 0]);
        let named = [("server", "edge-llm"), ("server_model", "models/mine")];
        let tokenizer = "models/llama3.1-8b/tokenizer.json";
        assert_eq!(places(&llama, &named), ["models/mine", tokenizer]);
        assert_eq!(
            places(&resnet, &[("server", "triton"), running]),
            resnet.model.files()
        );
    }

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
