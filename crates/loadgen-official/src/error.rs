//! Errors of finding and loading a plug-in. Errors of a run are `regatta_loadgen`'s `LoadgenError`.

use std::{fmt::Write as _, io, path::PathBuf};

/// Why a plug-in cannot be found or used.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// There is no plug-in of that revision.
    #[error(
        "no LoadGen plug-in {} was found{}; hint: build one with `crates/loadgen-official/bridge/build.sh --source CHECKOUT --out DIR` \
         from a checkout of mlcommons/inference at a revision that the round accepts, and put it there or name its \
         directory in REGATTA_PLUGINS",
        revision_words(requested.as_deref()),
        searched_words(searched, others)
    )]
    Missing {
        /// The requested revision; `None` for any.
        requested: Option<String>,
        /// The searched directories.
        searched: Vec<PathBuf>,
        /// The plug-ins of other revisions that were found.
        others: Vec<PathBuf>,
    },
    /// More than one plug-in matches.
    #[error("{} plug-ins match revision {requested}: {}; hint: name more of its digits", found.len(), list(found))]
    Ambiguous {
        /// The requested revision.
        requested: String,
        /// The matching plug-ins.
        found: Vec<PathBuf>,
    },
    /// The file cannot be loaded.
    #[error(
        "the LoadGen plug-in {} cannot be loaded; was it built for this processor and for a system as old as this one?",
        path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// The loader's reason.
        #[source]
        source: libloading::Error,
    },
    /// A function of the C interface is missing in the file.
    #[error("{} is not a LoadGen plug-in: it has no `{symbol}`", path.display())]
    NotAPlugin {
        /// The file.
        path: PathBuf,
        /// The missing function.
        symbol: &'static str,
    },
    /// The plug-in has another version of the C interface.
    #[error(
        "the LoadGen plug-in {} has version {found} of the C interface, this program needs version {needed}; \
         hint: build it again with this program's crates/loadgen-official/bridge/build.sh",
        path.display()
    )]
    AbiVersion {
        /// The file.
        path: PathBuf,
        /// The plug-in's version.
        found: u32,
        /// The version of this program.
        needed: u32,
    },
    /// The build information cannot be parsed.
    #[error("the LoadGen plug-in {} has no build information", path.display())]
    BuildInfo {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// A directory on the search path cannot be read.
    #[error("the plug-in directory {} cannot be read", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

fn revision_words(requested: Option<&str>) -> String {
    requested.map_or_else(
        || "(libregatta_loadgen-*.so)".to_owned(),
        |w| format!("of revision {w}"),
    )
}

fn searched_words(searched: &[PathBuf], others: &[PathBuf]) -> String {
    let mut words = format!(" in {}", list(searched));
    if !others.is_empty() {
        let _ = write!(words, " (there are {})", list(others));
    }
    words
}

fn list(paths: &[PathBuf]) -> String {
    paths
        .iter()
        .map(|p| p.display().to_string())
        .collect::<Vec<_>>()
        .join(", ")
}
