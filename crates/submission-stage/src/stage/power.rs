//! Plans power measurements beside results: sessions of the Power working group's client, which the operator names.
//!
//! A session belongs to the performance run whose detail log it contains, byte for byte; the device signed that log. The round's
//! power checker checks the session first. This module does not measure power.

use regatta_catalogue::round::{Checker, CheckerKind, OfficialCheck};
use regatta_mllog::read::file_name;

use super::{
    Kind, StageError, StagingFinding,
    places::Of,
    power_session::{Faults, Session},
    run::Run,
    staging::Staging,
    tree::{Content, Files},
};
use regatta_submission_check::check::power::{self, PowerOutcome};

/// The files of the client by directory. LoadGen's logs of the measured run come from the result itself.
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
/// Name prefixes of the files in which the operator describes the meter.
const DESCRIPTIONS: [&str; 2] = ["analyzer_table.", "power_settings."];

impl Staging<'_> {
    /// Plans the power session of a performance run, if there is one.
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
        if power::is_simulated(&session.tree, "") {
            faults.push((
                "its PTDaemon is a simulation: nothing was measured".to_owned(),
                "measure with a listed meter",
            ));
        }
        if let Some(rules) = &self.request.round.power {
            for fault in power::overlooked(&session.tree, "", rules) {
                faults.push((fault.to_string(), "repeat the session; see `regatta power check`"));
            }
            for check in power::check(&session.tree, "", rules).checks {
                match check.outcome {
                    PowerOutcome::Passed => {}
                    PowerOutcome::Warned(why) => self.notes.push(format!("{place}: {}: {why}", check.name)),
                    PowerOutcome::Failed(why) => faults.push((
                        format!("{}: {why}", check.name),
                        "measure again with the round's power client and server; see `regatta power check`",
                    )),
                }
            }
        }
        if !asks_for_descriptions(self.request.round.submission.checkers.first()) {
            faults.retain(|(_, fix)| *fix != DESCRIBE);
        }
        self.add_findings(&place, faults);
        Ok(())
    }

    /// Reports sessions that belong to no staged result.
    pub(super) fn report_unused_sessions(&mut self) {
        let left: Vec<_> = self.power.iter().filter(|session| !session.taken).collect();
        let mut faults = Vec::new();
        for session in left {
            let what = match session.log {
                None => format!("has no run_1/{}", file_name::DETAIL),
                Some(_) => "is of no performance run that is staged".to_owned(),
            };
            let fix = "name the session of the newest performance run: both have the same detail log";
            faults.push((session.called(), what, fix));
        }
        for (place, what, fix) in faults {
            self.add_findings(&place, vec![(what, fix)]);
        }
    }

    /// Adds findings to a submission, or notes to a rehearsal.
    fn add_findings(&mut self, place: &str, faults: Faults) {
        for (what, fix) in faults {
            match self.request.kind {
                Kind::Submission => self.findings.push(StagingFinding::new(place, what, fix)),
                Kind::Rehearsal => self.notes.push(format!("{place}: {what}")),
            }
        }
    }
}

/// The fix for a missing description of the meter.
const DESCRIBE: &str = "write it (submission_rules.adoc, \"Power\") and put it into the session's directory";

type SessionOutput<'a> = (&'a mut Files, &'a mut Faults);

fn take_files(session: &Session, results: &str, (files, faults): SessionOutput<'_>) {
    for (directory, names) in FILES {
        for name in names {
            let path = format!("{directory}/{name}");
            if session.tree.is_file(&path) {
                let from = session.directory.join(directory).join(name);
                files.insert(format!("{results}/performance/{path}"), Content::Copy(from));
            } else {
                let fix = "name the directory that the power client wrote, with everything in it";
                faults.push((format!("{path} is missing"), fix));
            }
        }
    }
}

fn take_descriptions(session: &Session, measurements: &str, (files, faults): SessionOutput<'_>) {
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

/// Returns whether the round requires a description of the meter. The checkers since v6.0 require it without checking it.
fn asks_for_descriptions(checker: Option<&Checker>) -> bool {
    checker.is_some_and(|checker| {
        checker.kind == CheckerKind::Package || checker.looks_at(OfficialCheck::PowerMeasurementFiles)
    })
}
