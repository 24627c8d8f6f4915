//! Search for plug-ins, and selection among several. It opens none: it uses the file names and the `.json` files beside them.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use regatta_fsutil::plugin_directories::plugin_directories;
use regatta_types::documents::is_same_commit;

use crate::{build_info::BuildInfo, error::PluginError};

const PREFIX: &str = "libregatta_loadgen-";
const SUFFIX: &str = ".so";

/// Directories in the order of the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPath(Vec<PathBuf>);

impl SearchPath {
    /// Returns the directories of `REGATTA_PLUGINS` (separated by colons, like `PATH`), the executable's directory, and
    /// `/usr/lib/regatta`.
    #[must_use]
    pub fn from_environment() -> Self {
        Self(plugin_directories())
    }

    /// Creates a search path of exactly these directories.
    #[must_use]
    pub fn new(directories: Vec<PathBuf>) -> Self {
        Self(directories)
    }

    /// Finds the plug-in of a revision. A revision is the part of the file name between `libregatta_loadgen-` and `.so`. At least seven
    /// digits of the same commit also match. Without a revision, finds the newest by version and date of the commit.
    ///
    /// # Errors
    /// When no plug-in matches, or when several with different file names match.
    pub fn find(&self, revision: Option<&str>) -> Result<PathBuf, PluginError> {
        let all = self.plugins()?;
        let Some(requested) = revision else {
            return all
                .iter()
                .max_by_key(|path| age(path))
                .cloned()
                .ok_or_else(|| self.missing(None, all.clone()));
        };
        let name = |path: &PathBuf| revision_of(path).unwrap_or_default().to_owned();
        if let Some(exact) = all.iter().find(|path| name(path) == requested) {
            return Ok(exact.clone());
        }
        let mut matching: Vec<_> = all
            .iter()
            .filter(|path| is_same_commit(&name(path), requested))
            .cloned()
            .collect();
        // A later directory's plug-in of the same revision is hidden; it does not make the choice ambiguous.
        let mut seen = Vec::new();
        matching.retain(|path| {
            let new = !seen.contains(&name(path));
            seen.push(name(path));
            new
        });
        match matching.as_slice() {
            [] => Err(self.missing(Some(requested), all)),
            [one] => Ok(one.clone()),
            _ => Err(PluginError::Ambiguous {
                requested: requested.to_owned(),
                found: matching,
            }),
        }
    }

    /// Returns every plug-in on the path, in search order and by name within a directory.
    ///
    /// # Errors
    /// When a directory exists but cannot be read.
    pub fn plugins(&self) -> Result<Vec<PathBuf>, PluginError> {
        let mut found = Vec::new();
        for directory in &self.0 {
            let unreadable = |source| PluginError::Directory {
                path: directory.clone(),
                source,
            };
            let entries = match fs::read_dir(directory) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(unreadable(error)),
            };
            let mut here = Vec::new();
            for entry in entries {
                here.push(entry.map_err(unreadable)?.path());
            }
            here.retain(|path| revision_of(path).is_some());
            here.sort();
            found.extend(here);
        }
        Ok(found)
    }

    /// Returns the revision of every plug-in on the path, each once. A directory that cannot be read has none.
    #[must_use]
    pub fn revisions(&self) -> Vec<String> {
        let plugins = self.plugins().unwrap_or_default();
        let revisions = plugins.iter().filter_map(|path| revision_of(path));
        let unique: BTreeSet<&str> = revisions.collect();
        unique.into_iter().map(str::to_owned).collect()
    }

    /// Returns the revision in a plug-in's file name; `None` for another file.
    #[must_use]
    pub fn revision_of(path: &Path) -> Option<&str> {
        revision_of(path)
    }

    fn missing(&self, requested: Option<&str>, others: Vec<PathBuf>) -> PluginError {
        PluginError::Missing {
            requested: requested.map(str::to_owned),
            searched: self.0.clone(),
            others,
        }
    }
}

fn revision_of(path: &Path) -> Option<&str> {
    path.file_name()?
        .to_str()?
        .strip_prefix(PREFIX)?
        .strip_suffix(SUFFIX)
}

/// Returns version and commit date, for selecting the newest. A plug-in without its `.json` counts as oldest.
fn age(path: &Path) -> (Vec<u64>, String) {
    BuildInfo::beside(path).map_or_else(Default::default, |info| {
        let numbers = info
            .loadgen_version
            .split('.')
            .map(|n| n.parse().unwrap_or(0))
            .collect();
        // `NA` would sort after every date. A plug-in with a commit date is preferred to one without.
        let date = if info.git_commit_date == "NA" {
            String::new()
        } else {
            info.git_commit_date
        };
        (numbers, date)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(names: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            fs::write(directory.path().join(format!("{PREFIX}{name}{SUFFIX}")), "").unwrap();
        }
        directory
    }

    fn found(path: &SearchPath, revision: Option<&str>) -> Result<String, String> {
        let name = |p: PathBuf| revision_of(&p).unwrap().to_owned();
        path.find(revision).map(name).map_err(|e| e.to_string())
    }

    #[test]
    fn digits_of_a_commit_fit_in_either_length() {
        let plugins = directory(&["b66003e10e", "75f297d44c", "6.0.17-NA"]);
        fs::write(plugins.path().join("libother.so"), "").unwrap();
        let path = SearchPath::new(vec![plugins.path().to_owned(), PathBuf::from("/nowhere")]);
        for requested in [
            "b66003e",
            "b66003e10e",
            "B66003E10E00000000000000000000000000abcd",
        ] {
            assert_eq!(
                found(&path, Some(requested)),
                Ok("b66003e10e".to_owned()),
                "{requested}"
            );
        }
        assert_eq!(found(&path, Some("6.0.17-NA")), Ok("6.0.17-NA".to_owned()));
        for requested in ["b66003", "6.0.17", "deadbeef00"] {
            let error = found(&path, Some(requested)).unwrap_err();
            assert!(error.contains(requested) && error.contains("/nowhere"), "{error}");
            assert!(
                error.contains("75f297d44c") && error.contains("build.sh"),
                "{error}"
            );
        }
    }

    #[test]
    fn two_commits_that_begin_alike_are_not_guessed_between() {
        let plugins = directory(&["b66003e10e", "b66003e20e"]);
        let error = found(&SearchPath::new(vec![plugins.path().to_owned()]), Some("b66003e")).unwrap_err();
        assert!(error.starts_with("2 plug-ins match revision b66003e:"), "{error}");
    }

    #[test]
    fn an_earlier_directory_hides_a_later_one() {
        let (first, second) = (directory(&["b66003e10e"]), directory(&["b66003e10e"]));
        let path = SearchPath::new(vec![first.path().to_owned(), second.path().to_owned()]);
        assert!(path.find(Some("b66003e")).unwrap().starts_with(first.path()));
    }

    #[test]
    fn the_newest_is_taken_by_version_and_then_by_date() {
        let plugins = directory(&["aaaaaaaaaa", "bbbbbbbbbb", "6.0.17-NA", "cccccccccc"]);
        let describe = |name: &str, version: &str, date: &str| {
            let text = format!(
                r#"{{"abi":1,"loadgen_version":"{version}","git_revision":"x","git_commit_date":"{date}",
                "uncommitted_changes":false,"source":"checkout","submittable":true,"mlperf_conf_sha256":null,
                "compiler":"g++","libstdcxx":12,"rng_abi":"libstdc++-11","target":"x86_64-linux-gnu"}}"#
            );
            fs::write(plugins.path().join(format!("{PREFIX}{name}.json")), text).unwrap();
        };
        describe("aaaaaaaaaa", "6.0.9", "2026-09-01T00:00:00Z");
        describe("bbbbbbbbbb", "6.0.17", "2026-08-01T00:00:00Z");
        describe("6.0.17-NA", "6.0.17", "NA");
        let path = SearchPath::new(vec![plugins.path().to_owned()]);
        assert_eq!(found(&path, None), Ok("bbbbbbbbbb".to_owned()));
    }
}
