//! Assets, the device's half: models, preprocessed data and caches that a run needs come from the coordinator over HTTPS, are
//! kept by their content and shared by all runs. Cut connections, restarts and power cuts cost no more than what was not on
//! the disk yet; what does not have its SHA-256 is not kept. The coordinator's half, and how the bytes travel: docs/assets.md.
//!
//! ```text
//! STATE/assets/file/SHA256       a file
//! STATE/assets/tree/SHA256/      a tree, all of it
//! STATE/assets/manifest/SHA256   what belongs to a tree
//! STATE/assets/part/SHA256       a file or tree on its way
//! ```
//!
//! Blocks; it is called on a thread of its own. How a run looks at its assets: [`view`].

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
    pull::{Piece, Puller},
};
use crate::{enrolment::Enrolment, identity::DeviceIdentity};

/// Longest manifest: a line per file, and trees of a few hundred thousand files.
const LONGEST_MANIFEST: u64 = 64 << 20;

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Bytes that are here.
    pub(crate) done: u64,
    /// Bytes of everything that is needed.
    pub(crate) total: u64,
    /// Why nothing comes at the moment.
    pub(crate) waits: Option<String>,
}

/// What is to be got.
#[derive(Debug)]
pub(crate) struct Order {
    /// Directory of the key, the enrolment and the asset store.
    pub(crate) state_dir: PathBuf,
    /// Who asks.
    pub(crate) identity: Arc<DeviceIdentity>,
    /// What, and from where.
    pub(crate) assets: Assets,
    /// SHA-256 of what other runs still need.
    pub(crate) pinned: BTreeSet<String>,
    /// What may be used of the disk.
    pub(crate) limits: Limits,
    /// Set when nobody wants it any more.
    pub(crate) cancelled: Arc<AtomicBool>,
}

/// A server, `host:port`, as a device reaches it that knows the coordinator by another host.
pub(crate) fn server_at(server: &str, host: &str) -> String {
    let port = server.rsplit_once(':').map_or("", |(_, port)| port);
    if host.contains(':') {
        return format!("[{host}]:{port}");
    }
    format!("{host}:{port}")
}

/// Gets what is missing. `progress` hears how far it is, with every piece and every pause.
///
/// # Errors
/// [`AssetError`]. What has come is kept, and another attempt goes on with it.
pub(crate) fn fetch(order: &Order, progress: &mut dyn FnMut(Progress)) -> Result<(), AssetError> {
    let store = AssetStore::open(&order.state_dir)?;
    let needed = &order.assets.needed;
    let missing: Vec<&Asset> = needed.iter().filter(|asset| !store.use_now(asset)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut pinned = order.pinned.clone();
    pinned.extend(needed.iter().map(|asset| asset.sha256.clone()));
    store.free_space(&missing, &pinned, order.limits)?;
    let enrolment = Enrolment::load(&order.state_dir)?.ok_or(AssetError::NotEnrolled)?;
    let client = Client::new(&order.assets.server, enrolment.tls(&order.identity)?);
    let total = needed.iter().map(|asset| asset.bytes).sum();
    let here: u64 = total - missing.iter().map(|asset| asset.bytes).sum::<u64>();
    let mut report = |done, waits| progress(Progress { done, total, waits });
    let mut puller = Puller::new(client, &order.cancelled, here, &mut report);
    for asset in missing {
        let fetched = match asset.kind {
            AssetKind::File => fetch_file(&store, asset, &mut puller),
            AssetKind::Tree => fetch_tree(&store, asset, &mut puller),
        };
        if fetched.as_ref().is_err_and(AssetError::is_full_disk) {
            // Somebody else has filled the disk: half an asset would only keep other runs from it.
            store.drop_part(&asset.sha256);
        }
        fetched?;
    }
    Ok(())
}

fn fetch_file(store: &AssetStore, asset: &Asset, puller: &mut Puller<'_>) -> Result<(), AssetError> {
    let part = store.part(&asset.sha256);
    let piece = Piece {
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
        Ok(Piece {
            path: part.join(&line.path),
            bytes: line.bytes,
            name: format!("{}/{}", asset.path, line.path),
            sha256: line.sha256,
        })
    });
    puller.pull(&format!("/v1/tree/{}", asset.sha256), pieces)?;
    store.settle(&part, &store.place(asset))
}

/// A manifest's length stands in no spec: the coordinator is asked for it.
fn fetch_manifest(store: &AssetStore, asset: &Asset, puller: &mut Puller<'_>) -> Result<(), AssetError> {
    let address = format!("/v1/file/{}", asset.sha256);
    let bytes = puller.length(&address, &asset.path)?;
    if bytes > LONGEST_MANIFEST {
        return Err(AssetError::Wrong {
            what: asset.path.clone(),
        });
    }
    let part = store.manifest(&format!("{}.part", asset.sha256));
    let piece = Piece {
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
