//! The official power programs, which `tests/oracles/power-dev/checkout.sh` fetches.

use std::path::{Path, PathBuf};

/// Set where the programs' public repository cannot be reached: the tests are then left out in CI too, whose end says so.
const UNREACHABLE: &str = "REGATTA_POWER_DEV_UNREACHABLE";

/// Returns the directory of the official programs: the user's checkout in `REGATTA_POWER_DEV`, or the one among the oracles. Returns
/// `None`, after printing the reason, when neither is there.
///
/// # Panics
/// In CI when they are missing, although their repository can be reached.
#[must_use]
pub fn power_dev() -> Option<PathBuf> {
    let named = std::env::var_os("REGATTA_POWER_DEV").map(PathBuf::from);
    let oracle = std::env::var_os("REGATTA_ORACLES").map(|oracles| Path::new(&oracles).join("power-dev"));
    let found = named
        .or(oracle)
        .filter(|directory| directory.join("compliance/check.py").is_file());
    if found.is_none() {
        assert!(
            std::env::var_os("CI").is_none_or(|ci| ci != "true") || std::env::var_os(UNREACHABLE).is_some(),
            "no official power programs: tests/oracles/power-dev/checkout.sh fetches them"
        );
        println!(
            "left out: power sessions: run tests/oracles/power-dev/checkout.sh, or set REGATTA_POWER_DEV"
        );
    }
    found
}
