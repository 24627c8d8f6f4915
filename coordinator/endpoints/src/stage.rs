//! The tree of a submission with a result of the endpoints harness, in the layout that the official checker of v6.1 reads. The harness's own
//! script still writes an older layout, which that checker does not find.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_types::Division;

use crate::{
    EndpointsError, EndpointsSession, SessionEnd,
    documents::{self, REQUIRED},
    session::REPORT,
};

/// The scenario of all prescribed runs.
const SCENARIO: &str = "SingleStream";

/// What to stage.
#[derive(Debug)]
pub struct StageRequest<'a> {
    /// The run's directory.
    pub run: &'a Path,
    pub division: Division,
    pub submitter: &'a str,
    /// The system's name, as in the names of directories.
    pub system: &'a str,
    /// The description of the system, `systems/NAME.json`. `None` for a system that the tree has.
    pub description: Option<&'a Path>,
    /// `measurements.json` of the result.
    pub measurements: &'a Path,
    /// Takes a run that is not a result. The tree is then marked as a rehearsal.
    pub is_rehearsal: bool,
    pub tree: StageTree<'a>,
}

/// The tree of a submission that gets the result.
#[derive(Debug, Clone, Copy)]
pub enum StageTree<'a> {
    /// A new directory.
    New(&'a Path),
    /// A tree with other results.
    Existing(&'a Path),
}

/// Writes the result into the tree, and returns the paths of its files below the tree.
///
/// # Errors
/// [`EndpointsError::NotRun`] when the run is not a result, [`EndpointsError::Exists`] for a file that the tree has. No file of the result remains
/// after an error.
pub fn stage(request: &StageRequest<'_>) -> Result<Vec<PathBuf>, EndpointsError> {
    let session = EndpointsSession::read(request.run)?;
    if let Some(reason) = refusal(request, &session)? {
        return Err(EndpointsError::NotRun {
            path: request.run.to_owned(),
            reason,
        });
    }
    let files = planned(request, &session);
    match request.tree {
        StageTree::New(tree) => {
            if tree.exists() {
                return Err(EndpointsError::Exists(tree.to_owned()));
            }
            let written = write(tree, &files);
            if written.is_err() {
                // The error itself is reported.
                let _ = fs::remove_dir_all(tree);
            }
            written?;
        }
        StageTree::Existing(tree) => add(request, tree, &files)?,
    }
    Ok(files.into_iter().map(|file| file.path).collect())
}

/// Adds the files to a tree of the same submitter and system.
fn add(request: &StageRequest<'_>, tree: &Path, files: &[PlannedFile]) -> Result<(), EndpointsError> {
    let system = system_description(request);
    if request.description.is_none() && !tree.join(&system).is_file() {
        return Err(EndpointsError::NoSystem {
            tree: tree.to_owned(),
            system,
        });
    }
    if let Some(file) = files.iter().find(|file| tree.join(&file.path).exists()) {
        return Err(EndpointsError::Exists(tree.join(&file.path)));
    }
    let written = write(tree, files);
    if written.is_err() {
        for file in files {
            // Those that were not written do not exist. The error itself is reported.
            let _ = fs::remove_file(tree.join(&file.path));
        }
    }
    written
}

/// Returns the names of submitter and system in the tree.
fn names(request: &StageRequest<'_>) -> [String; 2] {
    let mark = if request.is_rehearsal { "REHEARSAL-" } else { "" };
    [request.submitter, request.system].map(|name| format!("{mark}{name}"))
}

/// Returns the place of the system's description in the tree.
fn system_description(request: &StageRequest<'_>) -> PathBuf {
    let [submitter, system] = names(request);
    let place = PathBuf::from(request.division.as_str()).join(submitter);
    place.join("systems").join(format!("{system}.json"))
}

/// Returns the reason why a run cannot be staged.
fn refusal(request: &StageRequest<'_>, session: &EndpointsSession) -> Result<Option<String>, EndpointsError> {
    if !session.is_result() && !request.is_rehearsal {
        return Ok(Some(match session.outcome.problems.first() {
            _ if session.is_rehearsal => "it is a rehearsal".to_owned(),
            Some(problem) => format!("{}: {}", problem.file, problem.text),
            None if session.end == SessionEnd::Completed => "its device's run did not end".to_owned(),
            None => "the client did not complete it".to_owned(),
        }));
    }
    let missing = REQUIRED
        .into_iter()
        .find(|name| !session.documents.contains_key(*name));
    if let Some(name) = missing {
        return Ok(Some(format!("the client did not write {name}")));
    }
    let is_unchanged = documents::hashes(&request.run.join(REPORT))? == session.documents;
    Ok((!is_unchanged).then(|| "its documents were changed after the run".to_owned()))
}

struct PlannedFile {
    /// Below the tree.
    path: PathBuf,
    content: Content,
}

enum Content {
    Copy(PathBuf),
    Text(String),
}

fn planned(request: &StageRequest<'_>, session: &EndpointsSession) -> Vec<PlannedFile> {
    let [submitter, system] = names(request);
    let place = PathBuf::from(request.division.as_str()).join(submitter);
    let result = place
        .join("results")
        .join(&system)
        .join(&session.benchmark)
        .join(SCENARIO);
    let report = request.run.join(REPORT);
    let copy = |path: PathBuf, from: PathBuf| PlannedFile {
        path,
        content: Content::Copy(from),
    };
    let mut files = vec![
        copy(result.join("measurements.json"), request.measurements.to_owned()),
        PlannedFile {
            path: result.join("README.md"),
            content: Content::Text(readme(request, session)),
        },
        PlannedFile {
            path: place.join("src").join(&session.benchmark).join("README.md"),
            content: Content::Text(format!(
                "mlcommons/endpoints at {}, unmodified, ran this benchmark.\n",
                session.client_commit
            )),
        },
    ];
    let description = request.description.map(Path::to_owned);
    files.extend(description.map(|from| copy(system_description(request), from)));
    let documents = session.documents.keys();
    files.extend(documents.map(|name| copy(result.join(name), report.join(name))));
    files
}

fn readme(request: &StageRequest<'_>, session: &EndpointsSession) -> String {
    let rehearsal = if request.is_rehearsal {
        "This is a rehearsal, and not a result.\n\n"
    } else {
        ""
    };
    let device = session.device_run.as_ref();
    let device = device.map_or_else(String::new, |run| {
        format!(
            " Regatta's agent on {} started it for run {}.",
            run.device, run.run
        )
    });
    format!(
        "# {} on {}\n\n{rehearsal}The server at {} served the model `{}`{}.{device} The unmodified client of mlcommons/endpoints at {} measured it from {} to {}, with the configuration in config.yaml:\n\n    python -m inference_endpoint.main benchmark from-config --mode both --config config.yaml\n",
        session.benchmark,
        request.system,
        session.url,
        session.model,
        session
            .server
            .as_ref()
            .map_or_else(String::new, |server| format!(" with {server}")),
        session.client_commit,
        session.started,
        session.ended,
    )
}

fn write(root: &Path, files: &[PlannedFile]) -> Result<(), EndpointsError> {
    for file in files {
        let to = root.join(&file.path);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(EndpointsError::file(parent))?;
        }
        match &file.content {
            Content::Copy(from) => {
                let _ = fs::copy(from, &to).map_err(EndpointsError::file(from))?;
            }
            Content::Text(text) => fs::write(&to, text).map_err(EndpointsError::file(&to))?,
        }
    }
    Ok(())
}
