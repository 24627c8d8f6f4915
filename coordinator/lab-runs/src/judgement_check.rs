//! Compares the judgement in a run's record, which nobody signs, with the logs that the device signed.

use std::{
    fs::File,
    io::{self, BufReader},
    path::Path,
};

use regatta_catalogue::known;
use regatta_fsutil::regular_file;
use regatta_mllog::read::{Summary, file_name};
use regatta_types::documents::{Evidence, Judgement, RunSpec};

use super::{
    detail_figures::{DetailFigures, judged_key},
    figures::figures,
};

/// Returns the parts of the judgement that differ from the logs in `files`, in words for the user. The figure of a round that this program
/// does not know is not compared.
///
/// # Errors
/// Returns an error when an existing log cannot be read.
pub(super) fn differences(
    judgement: &Judgement,
    spec: &RunSpec,
    evidence: &Evidence,
    files: &Path,
) -> io::Result<Vec<String>> {
    let summary = open(&files.join(file_name::SUMMARY))?;
    // A summary that does not parse gave no figure when the run was judged, either.
    let summary = summary.and_then(|file| Summary::read(BufReader::new(file)).ok());
    let logged = figures(spec, summary.as_ref(), Some(evidence));
    let mut differences = Vec::new();
    if judgement.valid != logged.valid || judgement.reasons != logged.reasons {
        let verdict = |valid| match valid {
            Some(true) => "VALID",
            Some(false) => "INVALID",
            None => "no verdict",
        };
        let (recorded, logged) = (verdict(judgement.valid), verdict(logged.valid));
        differences.push(format!(
            "its verdict ({recorded}) or the reasons differ from those of LoadGen's logs ({logged})"
        ));
    }
    if judgement.metric != logged.metric {
        differences.push("its metric differs from that of LoadGen's summary".to_owned());
    }
    if let Ok(Some(round)) = known::round(&spec.round)
        && let Some(detail) = open(&files.join(file_name::DETAIL))?
    {
        let detail = DetailFigures::read(BufReader::new(detail), judged_key(round, spec));
        if judgement.figure != detail.judged {
            differences.push("its figure differs from that of LoadGen's detail log".to_owned());
        }
    }
    Ok(differences)
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match regular_file::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
