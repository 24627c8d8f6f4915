//! Power measurements beside results: sessions as the Power working group's client leaves them, given by the operator.
//!
//! A session belongs to the performance run whose detail log it holds, to the byte: that log is the one that the device
//! signed. It is judged by the round's power checker before anything of it is taken. Measuring power is not here.

use std::{
    io,
    path::{Path, PathBuf},
};

use regatta_config::round::{Checker, Engine, OfficialCheck};
use regatta_mllog::read::file_name;

use super::{
    Kind, Lack, StageError,
    places::Of,
    result::Staging,
    run::Run,
    tree::{Content, Files},
};
use crate::{
    check::power::{self, Outcome},
    files::{At as _, FileError, sha256},
    tree::Tree,
};

/// What the client leaves, by directory; LoadGen's logs of the measured run are the result's own.
const FILES: [(&str, &[&str]); 3] = [
    (
        "power",
        &[
            "client.json",
            "client.log",
            "ptd_logs.txt",
            "server.json",
            "server.log",
        ],
    ),
    ("ranging", &[file_name::SUMMARY, file_name::DETAIL, "spl.txt"]),
    ("run_1", &["spl.txt"]),
];
/// What the operator writes about the meter; names begin so.
const DESCRIPTIONS: [&str; 2] = ["analyzer_table.", "power_settings."];

/// A measured session: holds `power/`, `ranging/` and `run_1/`.
#[derive(Debug)]
pub(super) struct Session {
    directory: PathBuf,
    tree: Tree,
    /// The SHA-256 of the measured run's detail log; `None` without that log.
    log: Option<String>,
    /// Whether a result has taken it.
    taken: bool,
}

impl Session {
    /// Reads what the session is of.
    pub(super) fn read(directory: &Path) -> Result<Self, FileError> {
        let tree = Tree::scan(directory)
            .map_err(io::Error::other)
            .at("list", directory)?;
        let log = format!("run_1/{}", file_name::DETAIL);
        let log = match tree.is_file(&log) {
            true => Some(sha256(&directory.join(log))?.0),
            false => None,
        };
        Ok(Self {
            directory: directory.to_owned(),
            tree,
            log,
            taken: false,
        })
    }

    /// The session's checks cover the run's summary too, and the one that is staged is the device's.
    fn other_summary(&self, performance: &Run) -> Result<Faults, FileError> {
        let path = format!("run_1/{}", file_name::SUMMARY);
        let Some(proof) = performance.proof(file_name::SUMMARY) else {
            return Ok(Faults::new());
        };
        if self.tree.is_file(&path) && sha256(&self.directory.join(&path))?.0 == proof.sha256 {
            return Ok(Faults::new());
        }
        let mend = "name the session as the power client left it";
        Ok(vec![(format!("{path} is not the performance run's"), mend)])
    }

    fn called(&self) -> String {
        format!("power session {}", self.directory.display())
    }
}

impl Staging<'_> {
    /// Takes the session of a performance run along, where there is one.
    pub(super) fn power_of(&mut self, of: Of<'_>, performance: &Run) -> Result<(), StageError> {
        let Some(proof) = performance.proof(file_name::DETAIL) else {
            return Ok(());
        };
        let is_of = |session: &&mut Session| !session.taken && session.log.as_ref() == Some(&proof.sha256);
        let Some(session) = self.power.iter_mut().find(is_of) else {
            return Ok(());
        };
        session.taken = true;
        let place = session.called();
        let mut faults = session.other_summary(performance)?;
        let results = self.places.results(of);
        let measurements = self.places.measurements(of);
        take_files(session, &results, (&mut self.files, &mut faults));
        take_descriptions(session, &measurements, (&mut self.files, &mut faults));
        if let Some(rules) = &self.request.round.power {
            for check in power::check(&session.tree, "", rules).checks {
                match check.outcome {
                    Outcome::Passed => {}
                    Outcome::Warned(why) => self.notes.push(format!("{place}: {}: {why}", check.name)),
                    Outcome::Failed(why) => faults.push((
                        format!("{}: {why}", check.name),
                        "measure anew with the round's power client and server; `regatta power check` says more",
                    )),
                }
            }
        }
        if !asks_for_descriptions(self.request.round.submission.checkers.first()) {
            faults.retain(|(_, mend)| *mend != DESCRIBE);
        }
        self.lacking(&place, faults);
        Ok(())
    }

    /// Tells of sessions that no staged result has.
    pub(super) fn power_left(&mut self) {
        let left: Vec<_> = self.power.iter().filter(|session| !session.taken).collect();
        let mut faults = Vec::new();
        for session in left {
            let what = match session.log {
                None => format!("holds no run_1/{}", file_name::DETAIL),
                Some(_) => "is of no performance run that is staged".to_owned(),
            };
            let mend = "name the session of the newest performance run: both hold the same detail log";
            faults.push((session.called(), what, mend));
        }
        for (place, what, mend) in faults {
            self.lacking(&place, vec![(what, mend)]);
        }
    }

    /// Lacks of a submission, notes of a rehearsal.
    fn lacking(&mut self, place: &str, faults: Faults) {
        for (what, mend) in faults {
            match self.request.kind {
                Kind::Submission => self.lacks.push(Lack::new(place, what, mend)),
                Kind::Rehearsal => self.notes.push(format!("{place}: {what}")),
            }
        }
    }
}

/// The way out where a description of the meter is missing.
const DESCRIBE: &str = "write it (submission_rules.adoc, \"Power\") and put it into the session's directory";

/// What is wrong, and the way out.
type Faults = Vec<(String, &'static str)>;
type Taken<'a> = (&'a mut Files, &'a mut Faults);

fn take_files(session: &Session, results: &str, (files, faults): Taken<'_>) {
    for (directory, names) in FILES {
        for name in names {
            let path = format!("{directory}/{name}");
            if session.tree.is_file(&path) {
                let from = session.directory.join(directory).join(name);
                files.insert(format!("{results}/performance/{path}"), Content::Copy(from));
            } else {
                let mend = "name the directory that the power client left, with all that it holds";
                faults.push((format!("{path} is missing"), mend));
            }
        }
    }
}

fn take_descriptions(session: &Session, measurements: &str, (files, faults): Taken<'_>) {
    let names = session.tree.files("").unwrap_or_default();
    for start in DESCRIPTIONS {
        match names.iter().find(|name| name.starts_with(start)) {
            Some(name) => {
                let from = session.directory.join(name);
                files.insert(format!("{measurements}/{name}"), Content::Copy(from));
            }
            None => faults.push((format!("{start}* is missing"), DESCRIBE)),
        }
    }
}

/// Whether the round wants the meter described; the checkers since v6.0 do not look.
fn asks_for_descriptions(checker: Option<&Checker>) -> bool {
    checker.is_some_and(|checker| {
        checker.engine == Engine::Package || checker.looks_at(OfficialCheck::PowerMeasurementFiles)
    })
}

/// Reads the sessions that the operator names.
pub(super) fn read(directories: &[PathBuf]) -> Result<Vec<Session>, StageError> {
    let sessions: Result<Vec<_>, _> = directories.iter().map(|path| Session::read(path)).collect();
    Ok(sessions?)
}
