//! A copy of mlcommons/power-dev on this machine: where its programs are, and whether a round's checker accepts them.
//!
//! Regatta does not contain power-dev and does not change it. The checker compares the SHA-1 of every Python file, tests included.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use regatta_catalogue::round::PowerRules;
use regatta_fsutil::regular_file::{self, MAX_TEXT};
use sha1::{Digest as _, Sha1};

/// The directory of client and server.
const PROGRAMS: &str = "ptd_client_server";
/// Directories that the official programs skip.
const SKIPPED: [&str; 3] = ["__pycache__", ".mypy_cache", ".pytest_cache"];

/// A directory that is not a copy of power-dev.
#[derive(Debug, thiserror::Error)]
pub enum PowerDevError {
    /// The programs are missing.
    #[error(
        "{} is not a copy of power-dev: it has no {PROGRAMS}/client.py and server.py; \
         hint: git clone https://github.com/mlcommons/power-dev", .0.display()
    )]
    Missing(PathBuf),
    /// Its files cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}

/// A copy of power-dev.
#[derive(Debug, Clone)]
pub struct PowerDev {
    root: PathBuf,
    /// SHA-1 of each Python file, by its path below the programs' directory.
    sources: BTreeMap<String, String>,
    /// Files with carriage returns, which the official programs refuse to start with.
    with_carriage_returns: Vec<String>,
}

impl PowerDev {
    /// Reads the sources of a copy.
    ///
    /// # Errors
    /// [`PowerDevError`].
    pub fn open(root: &Path) -> Result<Self, PowerDevError> {
        let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
        let mut copy = Self {
            sources: BTreeMap::new(),
            with_carriage_returns: Vec::new(),
            root,
        };
        if !copy.client().is_file() || !copy.server().is_file() {
            return Err(PowerDevError::Missing(copy.root));
        }
        let programs = copy.root.join(PROGRAMS);
        copy.add(&programs, "").map_err(|source| PowerDevError::Read {
            path: programs.clone(),
            source,
        })?;
        Ok(copy)
    }

    /// Takes the sources of a copy on another machine: SHA-1 of each Python file by its path below `ptd_client_server`, and the files with
    /// carriage returns.
    #[must_use]
    pub fn elsewhere(
        root: &Path,
        sources: BTreeMap<String, String>,
        with_carriage_returns: Vec<String>,
    ) -> Self {
        Self {
            root: root.to_owned(),
            sources,
            with_carriage_returns,
        }
    }

    /// Adds the Python files of a directory.
    fn add(&mut self, directory: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            if entry.path().is_dir() {
                if !SKIPPED.contains(&name.as_str()) {
                    self.add(&entry.path(), &format!("{path}/"))?;
                }
            } else if name.ends_with(".py") {
                let bytes = regular_file::read(&entry.path(), MAX_TEXT)?;
                if bytes.contains(&b'\r') {
                    self.with_carriage_returns.push(path.clone());
                }
                let digest = Sha1::digest(&bytes);
                let hex = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                self.sources.insert(path, hex);
            }
        }
        Ok(())
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The official client.
    #[must_use]
    pub fn client(&self) -> PathBuf {
        self.root.join(PROGRAMS).join("client.py")
    }

    /// The official server.
    #[must_use]
    pub fn server(&self) -> PathBuf {
        self.root.join(PROGRAMS).join("server.py")
    }

    /// The official checker.
    #[must_use]
    pub fn checker(&self) -> PathBuf {
        self.root.join("compliance").join("check.py")
    }

    /// Returns why the round's checker refuses sessions of this copy, in one sentence; `None` when it accepts them.
    #[must_use]
    pub fn refusal(&self, rules: &PowerRules) -> Option<String> {
        if let Some(file) = self.with_carriage_returns.first() {
            return Some(format!(
                "{PROGRAMS}/{file} has Windows line ends, with which client and server do not start; \
                 hint: git clone -c core.autocrlf=false https://github.com/mlcommons/power-dev"
            ));
        }
        if rules.sources.contains(&self.sources) {
            return None;
        }
        let differences = |accepted: &BTreeMap<String, String>| {
            let changed = accepted
                .iter()
                .filter(|(path, hash)| self.sources.get(*path) != Some(*hash))
                .map(|(path, _)| path.clone());
            let added = self
                .sources
                .keys()
                .filter(|path| !accepted.contains_key(*path))
                .cloned();
            changed.chain(added).collect::<Vec<_>>()
        };
        let nearest = rules.sources.iter().map(differences).min_by_key(Vec::len);
        let files = nearest.unwrap_or_default();
        let more = match files.len() {
            0..=3 => String::new(),
            count => format!(" and {} more", count - 3),
        };
        Some(format!(
            "the checker refuses this power-dev: {}{more} differ from every release that the round accepts; \
             hint: use an unchanged copy of the round's release",
            files.iter().take(3).cloned().collect::<Vec<_>>().join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(files: &[(&str, &str)]) -> (tempfile::TempDir, PowerDev) {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(PROGRAMS).join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let opened = PowerDev::open(directory.path()).unwrap();
        (directory, opened)
    }

    #[test]
    fn the_copy_must_be_a_release_of_the_round() {
        let files = [
            ("client.py", "a\n"),
            ("server.py", "b\n"),
            ("lib/common.py", "c\n"),
            ("README.md", "x"),
            ("__pycache__/client.py", "x"),
        ];
        let (_kept, good) = copy(&files);
        let rounds = regatta_catalogue::known::rounds().unwrap();
        let mut rules = rounds.last().unwrap().power.clone().unwrap();
        assert!(good.refusal(&rules).is_some(), "no release has these files");
        rules.sources = vec![good.sources.clone()];
        assert_eq!(good.refusal(&rules), None);

        let mut more = files.to_vec();
        more.extend([("stray.py", ""), ("lib/common.py", "changed\n")]);
        let refusal = copy(&more).1.refusal(&rules).unwrap();
        assert!(refusal.contains("lib/common.py, stray.py differ"), "{refusal}");
        more.push(("server.py", "b\r\n"));
        let refusal = copy(&more).1.refusal(&rules).unwrap();
        assert!(refusal.contains("server.py has Windows line ends"), "{refusal}");
    }

    #[test]
    fn another_directory_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let error = PowerDev::open(directory.path()).unwrap_err();
        assert!(error.to_string().contains("not a copy of power-dev"), "{error}");
    }
}
