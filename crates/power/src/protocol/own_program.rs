//! What Regatta's client and server are: name, version and hash of the executable, as each session's description has them.
//!
//! Where the official programs write the hashes of their sources, these write their own. So the official checker never accepts them.

use std::{collections::BTreeMap, path::PathBuf};

use regatta_catalogue::round::OWN_PROGRAM_PREFIX;
use serde::Serialize;

use super::{file_error::FileError, results::sha1_of_file};

/// The sentence in both descriptions.
const NOTE: &str = "not the official power-dev program: this session is not valid for submission";

/// One of the two programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OwnProgram {
    name: String,
    version: &'static str,
    sha1: String,
    note: &'static str,
}

impl OwnProgram {
    /// Identifies this process's executable as the program of a role, `client` or `server`.
    ///
    /// # Errors
    /// When the executable cannot be read.
    pub fn identify(role: &str) -> Result<Self, FileError> {
        let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"));
        let own = match own.is_file() {
            true => own,
            // It was replaced while it runs; the kernel still has it.
            false => PathBuf::from("/proc/self/exe"),
        };
        Ok(Self {
            name: format!("{OWN_PROGRAM_PREFIX}{role}"),
            version: env!("CARGO_PKG_VERSION"),
            sha1: sha1_of_file(&own).map_err(FileError::at("read", &own))?,
            note: NOTE,
        })
    }

    /// The value of `sources`.
    pub(crate) fn sources(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(format!("{} {}", self.name, self.version), self.sha1.clone())])
    }

    /// Name, version and hash in a line.
    pub(crate) fn line(&self) -> String {
        format!(
            "{} {}, SHA-1 {}: {}",
            self.name, self.version, self.sha1, self.note
        )
    }
}
