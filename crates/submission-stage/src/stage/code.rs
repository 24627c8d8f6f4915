//! Plans directories of the operator that are copied: code and images. Forbidden contents are reported before anything is
//! written.

use std::{fs, path::Path};

use super::{Kind, StageError, StagingFinding, places, staging::Staging, texts, tree::Content};
use regatta_submission_check::files::At;

/// Python's cache directory, which a submission may not contain.
const CACHE: &str = "__pycache__";

/// Plans an implementation's code.
pub(super) fn plan(
    staging: &mut Staging<'_>,
    benchmark: &str,
    code: Option<&Path>,
    place: &str,
) -> Result<(), StageError> {
    let key = format!("answers: benchmark {benchmark}");
    match code {
        Some(path) => {
            let from = staging.request.answers.path(path);
            directory(staging, &format!("{key}: code"), &from, place)
        }
        None if staging.request.kind == Kind::Rehearsal => {
            let text = Content::Text(texts::NO_CODE.to_owned());
            staging.files.insert(format!("{place}/README.md"), text);
            Ok(())
        }
        None => {
            let fix = "set `code` to a directory with it, or with a README that names the public revision";
            staging
                .findings
                .push(StagingFinding::new(key, "there is no code", fix));
            Ok(())
        }
    }
}

/// Plans the files of a directory.
///
/// Hidden files and Python caches are left out, with a note. Entries that the checkers refuse become findings.
pub(super) fn directory(
    staging: &mut Staging<'_>,
    key: &str,
    from: &Path,
    place: &str,
) -> Result<(), StageError> {
    if !from.is_dir() {
        let what = format!("{} is not a directory", from.display());
        let fix = "name a directory; paths are relative to the directory of the answers";
        staging.findings.push(StagingFinding::new(key, what, fix));
        return Ok(());
    }
    let mut walk = CodeWalk {
        staging,
        key,
        files: 0,
        left: 0,
    };
    walk.directory(from, place)?;
    let CodeWalk { files, left, .. } = walk;
    if files == 0 {
        let what = format!("{} contains no file", from.display());
        staging
            .findings
            .push(StagingFinding::new(key, what, "put the files there"));
    }
    if left > 0 {
        staging.notes.push(format!(
            "{key}: {left} hidden entries and Python caches were skipped, because no submission may contain them"
        ));
    }
    Ok(())
}

struct CodeWalk<'a, 'b> {
    staging: &'a mut Staging<'b>,
    key: &'a str,
    files: usize,
    left: usize,
}

impl CodeWalk<'_, '_> {
    fn directory(&mut self, from: &Path, place: &str) -> Result<(), StageError> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(from).at("list", from)? {
            entries.push(entry.at("list", from)?.file_name());
        }
        entries.sort();
        for name in entries {
            let path = from.join(&name);
            let name = name.to_string_lossy();
            if name.starts_with('.') || name == CACHE {
                self.left += 1;
                continue;
            }
            let metadata = fs::symlink_metadata(&path).at("look at", &path)?;
            let limit = self.staging.request.round.submission.max_file_bytes;
            if metadata.is_symlink() {
                self.refuse(&path, "is a link", "put the file itself there");
            } else if !places::is_plain(&name) {
                self.refuse(&path, "has a name with spaces or control characters", "rename it");
            } else if metadata.is_dir() {
                self.directory(&path, &format!("{place}/{name}"))?;
            } else if !metadata.is_file() {
                self.refuse(&path, "is neither file nor directory", "remove it");
            } else if metadata.len() > limit {
                self.refuse(&path, "is larger than the round allows", "split or leave it out");
            } else {
                self.files += 1;
                let place = format!("{place}/{name}");
                self.staging.files.insert(place, Content::Copy(path));
            }
        }
        Ok(())
    }

    fn refuse(&mut self, path: &Path, what: &str, fix: &str) {
        let what = format!("{} {what}", path.display());
        self.staging
            .findings
            .push(StagingFinding::new(self.key, what, fix));
    }
}
