//! Errors of asset downloads. Each message describes its own layer only. Causes are available as sources.

use std::{io, path::PathBuf};

use regatta_types::documents::end_reason;

/// Why a run's assets are not on the device.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AssetError {
    /// The device has no certificate, which the server requires.
    #[error("{}: only enrolled devices get assets", end_reason::NOT_ENROLLED)]
    NotEnrolled,
    /// The enrollment cannot be used.
    #[error("{}", end_reason::ENROLLMENT_UNUSABLE)]
    Enrollment(#[from] crate::enrollment::EnrollmentError),
    /// No byte arrived for a long time.
    #[error(
        "{} from {server} for {minutes} minutes; hint: check that `regatta serve` runs there and that the port is open",
        end_reason::NO_ASSET_DATA
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
    #[error("{}{what}`: {why} ({status})", end_reason::ASSET_REFUSED)]
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
        "`{what}` {}; hint: add it there again with `regatta asset add`",
        end_reason::OTHER_ASSET_HASH
    )]
    Wrong {
        /// The asset, or a file of it.
        what: String,
    },
    /// There is not enough space.
    #[error(
        "{} {} {} MiB are free for them; hint: free disk space, or change min_free_mib or assets_max_mib",
        .needed.div_ceil(1 << 20), end_reason::ASSETS_TOO_LARGE, .free >> 20
    )]
    NoSpace {
        /// Missing bytes.
        needed: u64,
        /// Available bytes.
        free: u64,
    },
    /// A file operation failed.
    #[error("{}{}", end_reason::ASSET_FILE, .path.display())]
    Disk {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The run no longer needs the assets.
    #[error("{}", end_reason::ASSETS_NOT_NEEDED)]
    Cancelled,
}

impl AssetError {
    pub(super) fn is_full_disk(&self) -> bool {
        matches!(self, Self::Disk { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    }
}
