//! The tree of a submission with a result of the endpoints harness, in the layout that the official checker of v6.1 reads. The harness's own
//! script still writes an older layout, which that checker does not find.

use std::{
    fs, io,
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
/// [`EndpointsError::NotRun`] when the run is not a result, [`EndpointsError::Exists`] for a tree that is not new, [`EndpointsError::ResultExists`] for a result that the
/// tree has. No file of the result remains
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
    let own = || files.iter().filter(|file| !file.is_shared());
    if let Some(file) = own().find(|file| tree.join(&file.path).exists()) {
        return Err(EndpointsError::ResultExists(tree.join(&file.path)));
    }
    let written = write(tree, files);
    if written.is_err() {
        for file in own() {
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
            None if session.device_failure().is_some() => {
                format!(
                    "its device failed: {}",
                    session.device_failure().unwrap_or_default()
                )
            }
            None if session.end == SessionEnd::Completed => {
                "its device has not delivered its part: regatta endpoints collect".to_owned()
            }
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
    /// A line of a file that results of several systems share.
    Line(String),
}

impl PlannedFile {
    const fn is_shared(&self) -> bool {
        matches!(self.content, Content::Line(_))
    }
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
            content: Content::Line(format!(
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
            Content::Line(line) => add_line(&to, line).map_err(EndpointsError::file(&to))?,
        }
    }
    Ok(())
}

/// Adds a line to a file that does not have it.
fn add_line(path: &Path, line: &str) -> io::Result<()> {
    let mut text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    if !text.contains(line) {
        text.push_str(line);
    }
    fs::write(path, text)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{DeviceRun, EndpointsOutcome};

    /// Writes a complete run, and returns its directory.
    fn run(place: &Path, name: &str, commit: &str, device_run: Option<DeviceRun>) -> PathBuf {
        let directory = place.join(name);
        let report = directory.join(REPORT);
        for document in REQUIRED {
            let path = report.join(document);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let session = EndpointsSession {
            schema: 1,
            round: "v6.1".to_owned(),
            benchmark: "qwen3.6-27b".to_owned(),
            is_rehearsal: false,
            url: "http://board:8080".to_owned(),
            model: "base".to_owned(),
            server: None,
            device_run,
            client_commit: commit.to_owned(),
            started: Timestamp::UNIX_EPOCH,
            ended: Timestamp::UNIX_EPOCH,
            end: SessionEnd::Completed,
            outcome: EndpointsOutcome::default(),
            documents: documents::hashes(&report).unwrap(),
        };
        fs::write(
            directory.join("session.json"),
            serde_json::to_vec(&session).unwrap(),
        )
        .unwrap();
        fs::write(directory.join("extra.json"), "{}").unwrap();
        directory
    }

    fn request<'a>(run: &'a Path, extra: &'a Path, system: &'a str, tree: StageTree<'a>) -> StageRequest<'a> {
        StageRequest {
            run,
            division: Division::Closed,
            submitter: "Team",
            system,
            description: Some(extra),
            measurements: extra,
            is_rehearsal: false,
            tree,
        }
    }

    #[test]
    fn results_of_two_systems_share_a_tree_and_the_note_on_the_client() {
        let place = tempfile::tempdir().unwrap();
        let tree = place.path().join("tree");
        let runs = [("thor", "aaaa"), ("orin", "aaaa"), ("nano", "bbbb")];
        let runs = runs.map(|(name, commit)| (name, run(place.path(), name, commit, None)));
        for (number, (name, run)) in runs.iter().enumerate() {
            let extra = run.join("extra.json");
            let target = match number {
                0 => StageTree::New(&tree),
                _ => StageTree::Existing(&tree),
            };
            stage(&request(run, &extra, name, target)).unwrap();
        }
        let note = fs::read_to_string(tree.join("closed/Team/src/qwen3.6-27b/README.md")).unwrap();
        assert_eq!(note.matches("aaaa").count(), 1, "{note}");
        assert_eq!(note.matches("bbbb").count(), 1, "{note}");

        // The result is there already, and stays as it is.
        let (_, thor) = &runs[0];
        let extra = thor.join("extra.json");
        let again = stage(&request(thor, &extra, "thor", StageTree::Existing(&tree)));
        assert!(matches!(again, Err(EndpointsError::ResultExists(_))), "{again:?}");
        let result = tree.join("closed/Team/results/thor/qwen3.6-27b/SingleStream");
        assert_eq!(fs::read_to_string(result.join("config.yaml")).unwrap(), "thor");
    }

    #[test]
    fn a_run_whose_device_failed_or_has_not_delivered_is_not_staged() {
        let place = tempfile::tempdir().unwrap();
        let tree = place.path().join("tree");
        let device_run = DeviceRun {
            device: "thor-1".to_owned(),
            run: "id".to_owned(),
            evidence_sha256: Some("00".to_owned()),
            failure: None,
        };
        let failed = DeviceRun {
            failure: Some("out of memory".to_owned()),
            ..device_run.clone()
        };
        let undelivered = DeviceRun {
            evidence_sha256: None,
            ..device_run.clone()
        };
        for (name, device_run, expected) in [
            ("failed", failed, "its device failed: out of memory"),
            ("undelivered", undelivered, "regatta endpoints collect"),
        ] {
            let run = run(place.path(), name, "aaaa", Some(device_run));
            let extra = run.join("extra.json");
            let refused = stage(&request(&run, &extra, "thor", StageTree::New(&tree))).unwrap_err();
            assert!(refused.to_string().contains(expected), "{refused}");
        }
        let run = run(place.path(), "good", "aaaa", Some(device_run));
        let extra = run.join("extra.json");
        stage(&request(&run, &extra, "thor", StageTree::New(&tree))).unwrap();
    }
}
