//! How a plug-in was built, in the words of `build.sh`. What a round accepts is for `configs/rounds` to say.

use serde::{Deserialize, Serialize};

/// A plug-in's own account: compiled in, and beside the file under the same name with `.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildInfo {
    /// Version of the C face.
    pub abi: u32,
    /// LoadGen's version, such as `6.0.17`.
    pub loadgen_version: String,
    /// First ten or more digits of the git commit, `NA` where the sources had no history. The log says the same.
    pub git_revision: String,
    /// When that commit was made, RFC 3339; `NA` likewise.
    pub git_commit_date: String,
    /// Whether files differed from the commit. LoadGen then logs an error in every run.
    pub uncommitted_changes: bool,
    /// `checkout` or `pypi`.
    pub source: String,
    /// Whether the sources are a commit, unchanged: without that no round accepts them. Not that one does.
    pub submittable: bool,
    /// SHA-256 of the `mlperf.conf` compiled in, hexadecimal; `None` in LoadGens that have none.
    pub mlperf_conf_sha256: Option<String>,
    /// The compiler, in its own words.
    pub compiler: String,
    /// The release of GCC that its libstdc++ belongs to.
    pub libstdcxx: u32,
    /// Whose distributions and shuffle this gives: `libstdc++-11` (and later) or `libstdc++-10` (and before).
    pub rng_abi: String,
    /// The machine it was built for, as the compiler calls it.
    pub target: String,
}
