//! The quickstart's rehearsal of a submission in its own directory: stage, truncate, check, pack. `regatta_submission_stage` does the work.
//! This module knows which findings to expect.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use regatta_catalogue::round::Round;
use regatta_submission_check::{check, tree::Tree};
use regatta_submission_stage::{
    pack::{self, PackError, Password},
    stage::{self, Answers, Kind},
    truncate::{self, Destination, Proof},
};
use regatta_text::HumanDuration;
use regatta_types::{Division, RunId};
use serde::Serialize;

use crate::{exit::Failure, tables::UnmetRule};
use regatta_lab_store::workspace::Workspace;

/// The package's password. It protects nothing of value.
const PASSWORD: &str = "rehearsal";

/// The numbers of logs that truncation handled.
#[derive(Debug, Clone, Copy, Default)]
struct TruncatedLogs {
    truncated: usize,
    /// Those whose original has the recorded hash.
    verified: usize,
}

/// The result of the rehearsal.
#[derive(Debug, Serialize)]
pub(crate) struct Rehearsal {
    /// The staged tree with truncated logs.
    pub(crate) tree: PathBuf,
    pub(crate) results: usize,
    /// The notes of staging.
    pub(crate) notes: Vec<String>,
    /// The directory of the complete logs.
    pub(crate) originals: PathBuf,
    /// The number of truncated logs.
    pub(crate) cut: usize,
    /// The number of truncated logs that were verified against their originals.
    pub(crate) proven: usize,
    /// The rules that the tree does not meet, by name.
    pub(crate) rules: Vec<UnmetRule>,
    /// The round's official checker, and its verdict on the tree.
    pub(crate) official: OfficialVerdict,
    /// The encrypted package.
    pub(crate) package: Option<PathBuf>,
    /// The reason why there is no package.
    pub(crate) no_package: Option<String>,
    /// The package's password.
    pub(crate) password: &'static str,
}

/// The verdict of the official checker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct OfficialVerdict {
    /// The checker's revision.
    pub(crate) revision: String,
    /// `accept`, `reject`, or its crash.
    pub(crate) verdict: String,
}

impl Rehearsal {
    /// Returns whether the rehearsal went as well as one can.
    pub(crate) fn is_good(&self) -> bool {
        let crashed = self.official.verdict.starts_with("crash");
        self.rules.iter().all(|unmet| unmet.expected.is_some())
            && self.cut == self.proven
            && self.results > 0
            && !crashed
    }
}

/// The input of the rehearsal.
pub(super) struct Script<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) round: &'a Round,
    /// The runs to stage, including audits.
    pub(super) runs: Vec<RunId>,
    /// The directory for tree, originals and package. The content of an earlier rehearsal is deleted.
    pub(super) directory: PathBuf,
    /// The length of the runs, as the user gave it.
    pub(super) duration: HumanDuration,
}

impl Script<'_> {
    /// Stages, truncates, checks and packs.
    pub(super) fn play(&self) -> Result<Rehearsal, Failure> {
        if self.directory.exists() {
            fs::remove_dir_all(&self.directory)?;
        }
        fs::create_dir_all(&self.directory)?;
        let tree = self.directory.join("tree");
        let originals = self.directory.join("originals");
        let runs: Vec<PathBuf> = self
            .runs
            .iter()
            .map(|&run| self.workspace.run(run).path().to_owned())
            .collect();
        let staged = stage::stage(&stage::StagingRequest {
            round: self.round,
            division: Division::Open,
            kind: Kind::Rehearsal,
            answers: &Answers::default(),
            runs: &runs,
            // Each run's directory has its device's key.
            keys: &BTreeMap::new(),
            power: &[],
            output: &tree,
        })?;
        let logs = self.truncate(&tree, &staged.submitter, &originals)?;
        let scanned = Tree::scan(&tree)?;
        let (package, no_package) = self.pack(&tree, &staged.submitter)?;
        Ok(Rehearsal {
            results: staged.results.len(),
            notes: staged.notes,
            cut: logs.truncated,
            proven: logs.verified,
            rules: self.unmet(&scanned),
            official: self.official(&scanned)?,
            package,
            no_package,
            password: PASSWORD,
            tree,
            originals,
        })
    }

    /// Truncates the logs.
    fn truncate(&self, tree: &Path, submitter: &str, originals: &Path) -> Result<TruncatedLogs, Failure> {
        let Some(rule) = &self.round.truncation else {
            return Ok(TruncatedLogs::default());
        };
        let request = truncate::TruncationRequest {
            input: tree,
            submitter,
            destination: Destination::Backup(originals.to_owned()),
            skip_scenarios: &[],
            rule,
        };
        let report = truncate::truncate(&request)?;
        let proofs = truncate::verify(&request, originals)?;
        Ok(TruncatedLogs {
            truncated: report.cut(),
            verified: proofs.iter().filter(|proof| Proof::holds(proof)).count(),
        })
    }

    /// Returns the rules with findings, by name.
    fn unmet(&self, tree: &Tree) -> Vec<UnmetRule> {
        let mut unmet = BTreeMap::new();
        for finding in check::strict(tree, self.round).findings {
            let name = finding.rule.split(':').next().unwrap_or_default();
            let entry = unmet.entry(name.to_owned()).or_insert_with(|| UnmetRule {
                rule: name.to_owned(),
                findings: 0,
                expected: self.why(name),
                first: format!("{}: {}", finding.path, finding.message),
            });
            entry.findings += 1;
        }
        unmet.into_values().collect()
    }

    /// Explains why no rehearsal of digits can meet a rule.
    fn why(&self, rule: &str) -> Option<String> {
        match rule {
            "min-duration" => Some(format!("runs of {} are not of full length", self.duration)),
            "conf-files" | "dataset" | "performance-samples" | "offline-samples" => {
                Some("digits has fewer samples than the benchmark that it replaces".to_owned())
            }
            "loadgen" => Some("the runs used Regatta's own LoadGen".to_owned()),
            _ => None,
        }
    }

    fn official(&self, tree: &Tree) -> Result<OfficialVerdict, Failure> {
        let official = check::as_official(tree, self.round, None)?;
        Ok(OfficialVerdict {
            verdict: match official.verdict {
                check::Verdict::Accept => "accept".to_owned(),
                check::Verdict::Reject => "reject".to_owned(),
                check::Verdict::Crash(why) => format!("crash: {why}"),
            },
            revision: official.checker.revision,
        })
    }

    fn pack(&self, tree: &Path, submitter: &str) -> Result<(Option<PathBuf>, Option<String>), Failure> {
        let password = Password::Text(PASSWORD.to_owned());
        match pack::pack(tree, submitter, &self.directory.join("package"), &password) {
            Ok(package) => Ok((Some(package.tarball), None)),
            // openssl is the only required tool that Regatta does not include.
            Err(error @ PackError::NoOpenssl { .. }) => Ok((None, Some(error.to_string()))),
            Err(error) => Err(error.into()),
        }
    }
}
