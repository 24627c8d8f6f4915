//! Assets on the device: models, preprocessed data and caches that runs need. The device downloads them from the
//! coordinator over HTTPS, stores them by content hash and shares them between runs. After a lost connection, a restart
//! or a power cut, the download continues with the data on disk. Data with a wrong SHA-256 is not kept. docs/assets.md
//! describes the coordinator's side and the protocol.
//!
//! ```text
//! STATE/assets/file/SHA256       a file
//! STATE/assets/tree/SHA256/      a tree, all of it
//! STATE/assets/manifest/SHA256   what belongs to a tree
//! STATE/assets/part/SHA256       a file or tree on its way
//! ```
//!
//! The functions block, so the caller uses a separate thread. [`view`] provides a run's assets.

mod client;
mod error;
mod pull;
mod store;
pub(crate) mod view;

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, BufRead as _, BufReader},
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use regatta_types::assets::{Asset, AssetKind, Assets, ManifestLine};

pub(crate) use self::error::AssetError;
pub(crate) use self::store::{AssetStore, Limits};
use self::{
    client::Client,
    pull::{AssetPiece, Puller},
};
use crate::{enrollment::Enrollment, identity::DeviceIdentity};

/// Longest manifest in bytes. It has one line per file, and trees have up to a few hundred thousand files.
const MAX_MANIFEST: u64 = 64 << 20;

/// The progress of a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DownloadProgress {
    /// Bytes on the device.
    pub(crate) done: u64,
    /// Bytes of all needed assets.
    pub(crate) total: u64,
    /// Why the download is waiting, if it is.
    pub(crate) waits: Option<String>,
}

/// The parameters of a download.
#[derive(Debug)]
pub(crate) struct FetchRequest {
    /// Directory of the key, the enrollment and the asset store.
    pub(crate) state_dir: PathBuf,
    /// The device's identity.
    pub(crate) identity: Arc<DeviceIdentity>,
    /// The assets and their server.
    pub(crate) assets: Assets,
    /// SHA-256 of the assets that other runs still need.
    pub(crate) pinned: BTreeSet<String>,
    /// The limits for disk space.
    pub(crate) limits: Limits,
    /// Set when the assets are no longer needed.
    pub(crate) cancelled: Arc<AtomicBool>,
}

/// Returns the server's `host:port` with another host, for a device that reaches the coordinator under that host.
pub(crate) fn server_at(server: &str, host: &str) -> String {
    let port = server.rsplit_once(':').map_or("", |(_, port)| port);
    if host.contains(':') {
        return format!("[{host}]:{port}");
    }
    format!("{host}:{port}")
}

/// Downloads the missing assets. Calls `progress` after every chunk and at every pause.
///
/// # Errors
/// [`AssetError`]. Received data is kept, and the next attempt continues with it.
pub(crate) fn fetch(
    request: &FetchRequest,
    progress: &mut dyn FnMut(DownloadProgress),
) -> Result<(), AssetError> {
    let store = AssetStore::open(&request.state_dir)?;
    let needed = &request.assets.needed;
    let missing: Vec<&Asset> = needed.iter().filter(|asset| !store.use_now(asset)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut pinned = request.pinned.clone();
    pinned.extend(needed.iter().map(|asset| asset.sha256.clone()));
    store.free_space(&missing, &pinned, request.limits)?;
    let enrollment = Enrollment::load(&request.state_dir)?.ok_or(AssetError::NotEnrolled)?;
    let client = Client::new(&request.assets.server, enrollment.tls(&request.identity)?);
    let total = needed.iter().map(|asset| asset.bytes).sum();
    let here: u64 = total - missing.iter().map(|asset| asset.bytes).sum::<u64>();
    let mut report = |done, waits| progress(DownloadProgress { done, total, waits });
    let mut puller = Puller::new(client, &request.cancelled, here, &mut report);
    for asset in missing {
        let fetched = match asset.kind {
            AssetKind::File => fetch_file(&store, asset, &mut puller),
            AssetKind::Tree => fetch_tree(&store, asset, &mut puller),
        };
        if fetched.as_ref().is_err_and(AssetError::is_full_disk) {
            // Something else has filled the disk. A partial asset would only take space from other runs.
            store.drop_part(&asset.sha256);
        }
        fetched?;
    }
    Ok(())
}

fn fetch_file(store: &AssetStore, asset: &Asset, puller: &mut Puller<'_>) -> Result<(), AssetError> {
    let part = store.part(&asset.sha256);
    let piece = AssetPiece {
        path: part.clone(),
        bytes: asset.bytes,
        sha256: asset.sha256.clone(),
        name: asset.path.clone(),
    };
    puller.pull(&format!("/v1/file/{}", asset.sha256), std::iter::once(Ok(piece)))?;
    store.settle(&part, &store.place(asset))
}

fn fetch_tree(store: &AssetStore, asset: &Asset, puller: &mut Puller<'_>) -> Result<(), AssetError> {
    let manifest = store.manifest(&asset.sha256);
    if !manifest.exists() {
        fetch_manifest(store, asset, puller)?;
    }
    let part = store.part(&asset.sha256);
    let disk = |source| AssetError::Disk {
        path: manifest.clone(),
        source,
    };
    fs::create_dir_all(&part).map_err(disk)?;
    let lines = BufReader::new(File::open(&manifest).map_err(disk)?).lines();
    let pieces = lines.map(|line| {
        let line: ManifestLine = line
            .and_then(|line| line.parse().map_err(io::Error::other))
            .map_err(disk)?;
        Ok(AssetPiece {
            path: part.join(&line.path),
            bytes: line.bytes,
            name: format!("{}/{}", asset.path, line.path),
            sha256: line.sha256,
        })
    });
    puller.pull(&format!("/v1/tree/{}", asset.sha256), pieces)?;
    store.settle(&part, &store.place(asset))
}

/// Downloads a tree's manifest. The spec does not state its length, so the device requests it from the coordinator.
fn fetch_manifest(store: &AssetStore, asset: &Asset, puller: &mut Puller<'_>) -> Result<(), AssetError> {
    let address = format!("/v1/file/{}", asset.sha256);
    let bytes = puller.length(&address, &asset.path)?;
    if bytes > MAX_MANIFEST {
        return Err(AssetError::Wrong {
            what: asset.path.clone(),
        });
    }
    let part = store.manifest(&format!("{}.part", asset.sha256));
    let piece = AssetPiece {
        path: part.clone(),
        bytes,
        sha256: asset.sha256.clone(),
        name: asset.path.clone(),
    };
    puller.pull_uncounted(&address, piece)?;
    store.settle(&part, &store.manifest(&asset.sha256))
}

#[cfg(test)]
mod tests {
    use super::server_at;

    #[test]
    fn another_host_keeps_the_port() {
        assert_eq!(server_at("lab:8885", "10.0.0.5"), "10.0.0.5:8885");
        assert_eq!(server_at("[::1]:8885", "fe80::2"), "[fe80::2]:8885");
    }
}
