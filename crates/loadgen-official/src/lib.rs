//! The MLCommons C++ LoadGen behind [`regatta_loadgen::load_gen::LoadGen`], as a plug-in that is opened at run time.
//!
//! Each LoadGen revision is one shared library. `crates/loadgen-official/bridge/build.sh` builds it from sources that the user provides;
//! none of them is part of this repository. The logs are the bytes that LoadGen writes. `docs/loadgen.md` describes how to build
//! and install a plug-in, and the limits of this LoadGen compared with Regatta's own.
//!
//! ```no_run
//! use regatta_loadgen_official::{Plugin, SearchPath};
//!
//! let path = SearchPath::from_environment().find(Some("b66003e10e"))?;
//! let plugin = Plugin::open(&path)?;
//! println!("{} @ {}", plugin.build_info().loadgen_version, plugin.build_info().git_revision);
//! let loadgen = plugin.loadgen();
//! # Ok::<(), regatta_loadgen_official::PluginError>(())
//! ```
//!
//! LoadGen's state is global: a process has one run at a time, and none after a run that had to be abandoned.

mod answers;
mod bridge;
mod build_info;
mod conf;
mod error;
mod ffi;
mod fields;
mod footprint;
mod gate;
mod ignored_audit_keys;
mod outcome;
mod plugin;
mod run;
mod search;
mod sink;

pub use build_info::BuildInfo;
pub use error::PluginError;
pub use plugin::{OfficialLoadGen, Plugin};
pub use search::SearchPath;
