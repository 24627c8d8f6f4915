//! The official power programs, which `tests/oracles/power-dev/checkout.sh` fetches.

use std::path::{Path, PathBuf};

use regatta_test_requirements::{Requirement, skip};

/// Returns the directory of the official programs: the user's checkout in `REGATTA_POWER_DEV`, or the one among the oracles. Records
/// a skipped test when neither is there.
///
/// # Panics
/// Under CI when they are missing, although their repository can be reached.
#[must_use]
pub fn power_dev() -> Option<PathBuf> {
    let named = std::env::var_os("REGATTA_POWER_DEV").map(PathBuf::from);
    let oracle = std::env::var_os("REGATTA_ORACLES").map(|oracles| Path::new(&oracles).join("power-dev"));
    let found = named
        .or(oracle)
        .filter(|directory| directory.join("compliance/check.py").is_file());
    if found.is_none() {
        skip(
            Requirement::PowerPrograms,
            "no official power programs: run tests/oracles/power-dev/checkout.sh, or set REGATTA_POWER_DEV",
        );
    }
    found
}
