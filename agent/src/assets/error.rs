//! Errors of asset downloads. Each message describes its own layer only. Causes are available as sources.

use std::{io, path::PathBuf};

/// Why a run's assets are not on the device.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AssetError {
    /// The device has no certificate, which the server requires.
    #[error("the device is not enrolled: only enrolled devices get assets")]
    NotEnrolled,
    /// The enrollment cannot be used.
    #[error("the device's enrollment cannot be used")]
    Enrollment(#[from] crate::enrollment::EnrollmentError),
    /// No byte arrived for a long time.
    #[error(
        "no data of the assets has arrived from {server} for {minutes} minutes; hint: check that `regatta serve` runs there and that \
         the port is open"
    )]
    Network {
        /// The coordinator's asset server.
        server: String,
        /// The time in minutes.
        minutes: u64,
        /// The last network error.
        #[source]
        source: io::Error,
    },
    /// The coordinator rejected the request.
    #[error("the coordinator refuses `{what}`: {why} ({status})")]
    Refused {
        /// The asset.
        what: String,
        /// The HTTP status.
        status: u16,
        /// The coordinator's message.
        why: String,
    },
    /// The received bytes have a different hash.
    #[error(
        "`{what}` from the coordinator has another SHA-256; hint: add it there again with `regatta asset add`"
    )]
    Wrong {
        /// The asset, or a file of it.
        what: String,
    },
    /// There is not enough space.
    #[error(
        "{} MiB of assets are missing and {} MiB are free for them; hint: free disk space, or change min_free_mib or assets_max_mib",
        .needed.div_ceil(1 << 20), .free >> 20
    )]
    NoSpace {
        /// Missing bytes.
        needed: u64,
        /// Available bytes.
        free: u64,
    },
    /// A file operation failed.
    #[error("cannot use {}", .path.display())]
    Disk {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The run no longer needs the assets.
    #[error("no run needs them any more")]
    Cancelled,
}

impl AssetError {
    pub(super) fn is_full_disk(&self) -> bool {
        matches!(self, Self::Disk { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    }
}
