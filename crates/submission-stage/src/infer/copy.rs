//! Copies directories into a draft, limited to the parts of a submission.

use std::{fs, io, path::Path};

use crate::{draft::Draft, pack::DIVISIONS};
use regatta_submission_check::files::{At, FileError};

/// Copies the divisions of a submission, and the documents in its root.
pub(super) fn tree(input: &Path, draft: &Draft) -> Result<(), FileError> {
    for division in DIVISIONS {
        if input.join(division).is_dir() {
            directory(&input.join(division), Path::new(division), draft)?;
        }
    }
    for entry in fs::read_dir(input).at("list", input)? {
        let path = entry.at("list", input)?.path();
        if let Some(name) = path.file_name().filter(|_| path.is_file()) {
            draft.copy(&path, Path::new(name))?;
        }
    }
    Ok(())
}

/// Copies a directory.
///
/// A link to a file becomes a file. A link to a directory is refused, because it may be circular. Sockets and pipes are refused,
/// because reading them would block.
pub(super) fn directory(from: &Path, to: &Path, draft: &Draft) -> Result<(), FileError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(from).at("list", from)? {
        names.push(entry.at("list", from)?.file_name());
    }
    names.sort();
    for name in names {
        let (from, to) = (from.join(&name), to.join(&name));
        let metadata = fs::metadata(&from).at("look at", &from)?;
        let refuse = |what: &'static str, why: &'static str| -> Result<(), FileError> {
            Err::<(), _>(io::Error::other(why)).at(what, &from)
        };
        if metadata.is_dir() && from.is_symlink() {
            refuse(
                "copy the directory",
                "it is a link: put the directory itself there",
            )?;
        } else if metadata.is_dir() {
            directory(&from, &to, draft)?;
        } else if metadata.is_file() {
            draft.copy(&from, &to)?;
        } else {
            refuse("copy", "it is neither file nor directory: remove it")?;
        }
    }
    Ok(())
}
