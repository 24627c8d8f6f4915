//! Writes a cut copy of the submission, which appears completely or not at all.

use std::{
    fs::{self, File},
    path::Path,
};

use super::{
    Outcome, TruncateError, TruncationReport, TruncationRequest, refuse_inside,
    step::{self, LOG, Originals},
    targets::{self, Target, submitter_directories},
    treat_all,
};
use crate::draft_directory::DraftDirectory;
use regatta_submission_check::{
    files::{At, copy},
    tree::leads_upwards,
};

/// The file that marks a directory as created here, so that it may be removed.
const MARKER: &str = ".regatta-truncation-in-progress";
/// The greatest depth that is copied. The deepest part of a submission is `open/<submitter>/code/...`.
const MAX_DEPTH: usize = 128;

/// Truncates into `output`.
pub(super) fn truncate_into(
    request: &TruncationRequest<'_>,
    output: &Path,
) -> Result<TruncationReport, TruncateError> {
    if fs::symlink_metadata(output).is_ok() {
        return Err(TruncateError::OutputExists {
            path: output.to_owned(),
        });
    }
    refuse_inside(request.input, output)?;
    let targets = targets::find(request)?;
    let draft = prepare(output)?;
    let report = fill(request, &targets, draft.path())?;
    draft.flush()?;
    draft.place()?;
    Ok(report)
}

/// Creates the cut copy in `part`.
fn fill(
    request: &TruncationRequest<'_>,
    targets: &[Target],
    part: &Path,
) -> Result<TruncationReport, TruncateError> {
    for (_, directory) in submitter_directories(request.input, request.submitter, request.rule)? {
        let is_copied = |from: &Path| {
            !targets
                .iter()
                .any(|target| request.input.join(&target.directory).join(LOG) == from)
        };
        let (from, to) = (request.input.join(&directory), part.join(&directory));
        copy_tree(&from, &to, Place::default(), &is_copied)?;
    }
    let report = treat_all(targets, |target| {
        let from = request.input.join(&target.directory);
        let to = part.join(&target.directory);
        let outcome = step::treat(target, &from, &to, &Originals::Input, request.rule)?;
        copy_uncut(&outcome, &from.join(LOG), &to.join(LOG))?;
        Ok(outcome)
    })?;
    let marker = part.join(MARKER);
    fs::remove_file(&marker).at("remove", &marker)?;
    Ok(report)
}

/// Copies a log from which nothing was cut: it was too short, was cut before or has a problem.
fn copy_uncut(outcome: &Outcome, from: &Path, to: &Path) -> Result<(), TruncateError> {
    let missing = matches!(outcome, Outcome::Endpoints | Outcome::Left(step::Problem::NoLog));
    if missing || to.exists() || !from.is_file() {
        return Ok(());
    }
    Ok(copy_file(from, to)?)
}

/// Creates an empty directory for `output`. It only removes the rest of an interrupted truncation.
fn prepare(output: &Path) -> Result<DraftDirectory, TruncateError> {
    let draft = DraftDirectory::begin(output)?;
    let marker = draft.path().join(MARKER);
    if !draft.is_empty()? && !marker.is_file() {
        return Err(TruncateError::InTheWay { path: draft.leave() });
    }
    draft.clear()?;
    File::create(&marker).at("create", &marker)?;
    Ok(draft)
}

/// The depth of a directory, and whether a link leads to it or to one above it.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    depth: usize,
    is_linked: bool,
}

/// Copies a directory and the targets of links, as the official tool does. Only copies files for which `is_copied` returns true.
///
/// Links to directories below other such links are refused, because a few of them can expand to a full disk.
fn copy_tree(
    from: &Path,
    to: &Path,
    place: Place,
    is_copied: &impl Fn(&Path) -> bool,
) -> Result<(), TruncateError> {
    if place.depth > MAX_DEPTH {
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
            let is_link = entry.file_type().at("look at", &from)?.is_symlink();
            if is_link && leads_upwards(&from) {
                return Err(TruncateError::Circle { path: from });
            }
            if is_link && place.is_linked {
                return Err(TruncateError::LinkedTwice { path: from });
            }
            let place = Place {
                depth: place.depth + 1,
                is_linked: place.is_linked || is_link,
            };
            copy_tree(&from, &to, place, is_copied)?;
        } else if is_copied(&from) {
            copy_file(&from, &to)?;
        }
    }
    Ok(())
}

/// Copies content, permissions and modification time.
fn copy_file(from: &Path, to: &Path) -> Result<(), regatta_submission_check::files::FileError> {
    copy(from, to).at("copy", from)?;
    let time = fs::metadata(from).and_then(|metadata| metadata.modified());
    let set = time.and_then(|time| File::options().append(true).open(to)?.set_modified(time));
    match set {
        // A file without write permission gets the current time.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        set => set.at("set the time of", to),
    }
}
