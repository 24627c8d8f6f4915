//! The warning about a network whose batch is fixed, as exporters leave it by default.

use std::path::Path;

/// Warns that batches are smaller than requested.
pub(crate) fn warn(network: &Path, fixed: usize, requested: usize) {
    tracing::warn!(
        "the batch of {} is fixed at {fixed}, so batches of {fixed} are computed instead of {requested}; hint: export it with a free batch",
        network.display()
    );
}
