//! A cut copy of the submission: prepared beside its place and renamed there when it is whole.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use super::{
    Outcome, Report, Request, TruncateError, refuse_inside,
    step::{self, LOG, Originals},
    targets::{self, submitter_directories},
    treat_all,
};
use crate::{
    files::{At, open},
    tree::leads_upwards,
};

/// Says that a directory was made here and may be thrown away.
const MARKER: &str = ".regatta-truncation-in-progress";
/// Deeper than any submission (`open/<submitter>/code/...` is the deepest part).
const DEEPEST: usize = 128;

/// Truncates into `output`.
pub(super) fn truncate_into(request: &Request<'_>, output: &Path) -> Result<Report, TruncateError> {
    if fs::symlink_metadata(output).is_ok() {
        return Err(TruncateError::OutputExists {
            path: output.to_owned(),
        });
    }
    refuse_inside(request.input, output)?;
    let targets = targets::find(request)?;
    let part = prepare(output)?;
    for (_, directory) in submitter_directories(request.input, request.submitter, request.rule)? {
        copy_tree(
            &request.input.join(&directory),
            &part.join(&directory),
            0,
            &|from| {
                !targets
                    .iter()
                    .any(|target| request.input.join(&target.directory).join(LOG) == from)
            },
        )?;
    }
    let report = treat_all(&targets, |target| {
        let from = request.input.join(&target.directory);
        let to = part.join(&target.directory);
        let outcome = step::treat(target, &from, &to, &Originals::Input, request.rule)?;
        copy_uncut(&outcome, &from.join(LOG), &to.join(LOG))?;
        Ok(outcome)
    })?;
    let marker = part.join(MARKER);
    fs::remove_file(&marker).at("remove", &marker)?;
    fs::rename(&part, output).at("create", output)?;
    Ok(report)
}

/// The log itself, where nothing was cut off: it was too short, had been cut before, or has a problem.
fn copy_uncut(outcome: &Outcome, from: &Path, to: &Path) -> Result<(), TruncateError> {
    let missing = matches!(outcome, Outcome::Endpoints | Outcome::Left(step::Problem::NoLog));
    if missing || to.exists() || !from.is_file() {
        return Ok(());
    }
    Ok(copy_file(from, to)?)
}

/// An empty directory beside `output`; what an interrupted call left there is removed.
fn prepare(output: &Path) -> Result<PathBuf, TruncateError> {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let part = output.with_file_name(format!(".{name}.regatta-part"));
    if fs::symlink_metadata(&part).is_ok() {
        if !part.join(MARKER).is_file() {
            return Err(TruncateError::InTheWay { path: part });
        }
        fs::remove_dir_all(&part).at("remove", &part)?;
    }
    fs::create_dir_all(&part).at("create", &part)?;
    let marker = part.join(MARKER);
    File::create(&marker).at("create", &marker)?;
    Ok(part)
}

/// Copies a directory with what links lead to, as the official tool does; only files that are `wanted`.
fn copy_tree(
    from: &Path,
    to: &Path,
    depth: usize,
    wanted: &impl Fn(&Path) -> bool,
) -> Result<(), TruncateError> {
    if depth > DEEPEST {
        return Err(TruncateError::TooDeep {
            path: from.to_owned(),
        });
    }
    fs::create_dir_all(to).at("create", to)?;
    for entry in fs::read_dir(from).at("list", from)? {
        let entry = entry.at("list", from)?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let metadata = fs::metadata(&from).at("look at", &from)?;
        if metadata.is_dir() {
            if entry.file_type().at("look at", &from)?.is_symlink() && leads_upwards(&from) {
                return Err(TruncateError::Circle { path: from });
            }
            copy_tree(&from, &to, depth + 1, wanted)?;
        } else if wanted(&from) {
            copy_file(&from, &to)?;
        }
    }
    Ok(())
}

/// Copies content, permissions and time.
fn copy_file(from: &Path, to: &Path) -> Result<(), crate::files::FileError> {
    // A pipe would be waited for without end.
    open(from).at("copy", from)?;
    fs::copy(from, to).at("copy", from)?;
    let time = fs::metadata(from).and_then(|metadata| metadata.modified());
    let set = time.and_then(|time| File::options().append(true).open(to)?.set_modified(time));
    match set {
        // A file that may not be written, even by its owner, keeps the time of copying.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        set => set.at("set the time of", to),
    }
}
