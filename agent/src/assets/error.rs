//! Why a run's assets are not on the device. Each message tells this layer only; causes are sources.

use std::{io, path::PathBuf};

/// Why a run's assets are not on the device.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AssetError {
    /// Without a certificate nobody is served.
    #[error("the device is not enrolled: only enrolled devices get assets")]
    NotEnrolled,
    /// The enrolment does not do.
    #[error("the device's enrolment cannot be used")]
    Enrolment(#[from] crate::enrolment::EnrolmentError),
    /// For a long time there was not a byte.
    #[error(
        "not a byte of the assets has come from {server} for {minutes} minutes: `regatta serve` has to run there, and the \
         port to be open"
    )]
    Network {
        /// The coordinator's store of assets.
        server: String,
        /// How long.
        minutes: u64,
        /// The last failure.
        #[source]
        source: io::Error,
    },
    /// The coordinator says no.
    #[error("the coordinator refuses `{what}`: {why} ({status})")]
    Refused {
        /// The asset.
        what: String,
        /// The HTTP status.
        status: u16,
        /// What it says.
        why: String,
    },
    /// The bytes are others than those that were asked for.
    #[error(
        "what the coordinator sent as `{what}` has another SHA-256: add it there again with `regatta asset add`"
    )]
    Wrong {
        /// The asset, or the file of it.
        what: String,
    },
    /// There is no room.
    #[error(
        "{} MiB of assets are missing and {} MiB are free for them: make room, or change min_free_mib or assets_max_mib",
        .wanted.div_ceil(1 << 20), .free >> 20
    )]
    NoSpace {
        /// Bytes that are missing.
        wanted: u64,
        /// Bytes that may be used.
        free: u64,
    },
    /// The disk refuses.
    #[error("cannot use {}", .path.display())]
    Disk {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The run is over.
    #[error("nobody wants them any more")]
    Cancelled,
}

impl AssetError {
    pub(super) fn is_full_disk(&self) -> bool {
        matches!(self, Self::Disk { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    }
}
