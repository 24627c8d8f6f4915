//! The official power programs, which `tests/oracles/power-dev/checkout.sh` fetches.

use std::path::{Path, PathBuf};

/// Returns the directory of the official programs: the user's checkout in `REGATTA_POWER_DEV`, or the one among the oracles. Returns
/// `None`, after printing the reason, when neither is there.
#[must_use]
pub fn power_dev() -> Option<PathBuf> {
    let named = std::env::var_os("REGATTA_POWER_DEV").map(PathBuf::from);
    let oracle = std::env::var_os("REGATTA_ORACLES").map(|oracles| Path::new(&oracles).join("power-dev"));
    let found = named
        .or(oracle)
        .filter(|directory| directory.join("compliance/check.py").is_file());
    if found.is_none() {
        println!(
            "left out: power sessions: run tests/oracles/power-dev/checkout.sh, or set REGATTA_POWER_DEV"
        );
    }
    found
}
