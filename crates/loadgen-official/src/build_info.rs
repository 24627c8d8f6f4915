//! Build information of a plug-in, as `build.sh` writes it. `configs/rounds` lists what a round accepts.

use std::path::Path;

use regatta_fsutil::regular_file::{self, MAX_TEXT};
use serde::{Deserialize, Serialize};

/// A plug-in's build information. It is compiled in, and in a file of the same name with `.json` beside the plug-in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildInfo {
    /// Version of the C interface.
    pub abi: u32,
    /// LoadGen's version, for example `6.0.17`.
    pub loadgen_version: String,
    /// The first ten or more digits of the git commit, `NA` when the sources had no history. The log has the same value.
    pub git_revision: String,
    /// Date of that commit, RFC 3339; `NA` when the sources had no history.
    pub git_commit_date: String,
    /// Whether files differed from the commit. LoadGen then logs an error in every run.
    pub uncommitted_changes: bool,
    /// `checkout` or `pypi`.
    pub source: String,
    /// Whether the sources are an unchanged commit. Every round requires that; a round may still not accept the commit.
    pub submittable: bool,
    /// SHA-256 of the compiled-in `mlperf.conf`, hexadecimal; `None` in LoadGens without one.
    pub mlperf_conf_sha256: Option<String>,
    /// The compiler's own description.
    pub compiler: String,
    /// The GCC release of its libstdc++.
    pub libstdcxx: u32,
    /// The C++ library whose distributions and shuffle it uses: `libstdc++-11` (and later) or `libstdc++-10` (and before).
    pub rng_abi: String,
    /// The target machine, as the compiler names it.
    pub target: String,
}

impl BuildInfo {
    /// Reads the file beside a plug-in; `None` when there is none that parses.
    #[must_use]
    pub fn beside(plugin: &Path) -> Option<Self> {
        let text = regular_file::read(&plugin.with_extension("json"), MAX_TEXT).ok()?;
        serde_json::from_slice(&text).ok()
    }
}
