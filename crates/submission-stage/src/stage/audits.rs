//! Verifies the audits of each result and writes them where the round requires.
//!
//! The audit runs are linked to a result's performance run. They are verified against the logs just staged, which are not yet
//! truncated.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use regatta_catalogue::round::{BenchmarkRules, Round};
use regatta_fsutil::regular_file;
use regatta_mllog::read::file_name;
use regatta_types::{Division, RunId};

use super::{
    Kind, StageError, StagingFinding,
    places::Of,
    planned_audit::PlannedAudit,
    run::Run,
    select::{self, Chosen},
    staging::Staging,
};
use crate::audit::{
    self, Audited, Dtype, Test,
    part_three::{judge, limits},
};
use regatta_submission_check::files::{At, replace, sha256};

/// The accuracy script's output for the same samples of both runs, needed if responses differ (TEST01's part III).
const PART_THREE: [&str; 2] = ["baseline_accuracy.txt", "compliance_accuracy.txt"];

impl<'a> Staging<'a> {
    /// Plans the audits of a result. Reports audits that the division requires and that have no run.
    pub(super) fn audits_of(
        &mut self,
        of: Of<'_>,
        chosen: Chosen<'a>,
        rules: Option<&BenchmarkRules>,
    ) -> BTreeMap<String, RunId> {
        let (performance, kind) = (chosen.performance, self.request.kind);
        let of_this = |run: &&Run| {
            let link = run.spec.audit.as_ref();
            link.is_some_and(|link| link.performance == performance.id())
        };
        let linked: Vec<&'a Run> = self.runs.iter().filter(of_this).collect();
        let is = |run: &Run, test: &str| run.spec.audit.as_ref().is_some_and(|link| link.test == test);
        let required = rules
            .filter(|_| self.request.division != Division::Open && kind == Kind::Submission)
            .into_iter()
            .flat_map(|rules| &rules.tests);
        for test in required {
            if !linked.iter().any(|run| is(run, test)) {
                let fix = format!("regatta audit run {test}, before anything is truncated");
                let what = format!("its audit {test} has no run");
                self.findings
                    .push(StagingFinding::new(performance.called(), what, fix));
            }
        }
        let tests: BTreeSet<&str> = linked
            .iter()
            .filter_map(|run| Some(run.spec.audit.as_ref()?.test.as_str()))
            .collect();
        let mut taken = BTreeMap::new();
        for name in tests {
            let runs = linked.iter().copied().filter(|run| is(run, name));
            let Some(run) = select::newest(runs, self.request) else {
                continue;
            };
            let Ok(test) = name.parse::<Test>() else {
                self.notes
                    .push(format!("{}: unknown audit {name}; skipped", run.called()));
                continue;
            };
            self.judge(run);
            self.recorded_failure(run, test);
            taken.insert(name.to_owned(), run.id());
            self.audits.push(PlannedAudit {
                test,
                run,
                results: self.places.results(of),
                place: self.places.audits(of),
            });
        }
        taken
    }

    /// Reports an audit that failed when the coordinator verified it, so that it is known before everything else is in order. Where part
    /// III has its files, [`write`] decides.
    fn recorded_failure(&mut self, run: &Run, test: Test) {
        let failed = run.record.audit.as_ref().filter(|audit| !audit.passed);
        let (Some(failed), false) = (failed, has_part_three(run)) else {
            return;
        };
        if self.request.kind == Kind::Rehearsal {
            // `write` notes it.
            return;
        }
        let reason = failed.fault.as_ref().or(failed.mismatch.as_ref());
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        let what = format!("the audit {} fails{reason}", test.name());
        let fix = format!(
            "repeat it with `regatta audit run {}`; `regatta runs show {}` shows why it fails",
            test.name(),
            run.id()
        );
        self.findings.push(StagingFinding::new(run.called(), what, fix));
    }
}

/// Verifies the planned audits against the tree in `root` and writes their directories.
///
/// A failed audit is a finding in a submission and a note in a rehearsal.
pub(super) fn write(staging: &mut Staging<'_>, root: &Path) -> Result<(), StageError> {
    for planned in std::mem::take(&mut staging.audits) {
        let run = planned.run;
        proven(run)?;
        let wrap = |source| StageError::Audit {
            run: run.directory.clone(),
            source,
        };
        let audited = Audited::in_results(&root.join(&planned.results));
        let report = audit::verify(&audit::AuditRequest {
            test: planned.test,
            audited: &audited,
            compliance: &run.directory.join("files"),
            output: &root.join(&planned.place),
            dtype: Dtype::of(run.spec.benchmark.model.response),
            round: staging.request.round,
        })
        .map_err(wrap)?;
        let by_accuracy =
            report.needs_accuracies() && part_three(staging.request.round, run, &report.directory)?;
        text_for_the_hash(staging, planned.test, &report.directory)?;
        let passed = report.passed() || (report.performance.passed && by_accuracy);
        for seen in &report.observations {
            staging.notes.push(format!("{}: {}", run.called(), seen.message));
        }
        if !passed {
            let what = format!("the audit {} fails", planned.test.name());
            if staging.request.kind == Kind::Rehearsal {
                staging.notes.push(format!("{}: {what}", run.called()));
            } else {
                let fix = "`regatta audit verify` shows why; if responses differ but accuracy does not, use its part III";
                staging
                    .findings
                    .push(StagingFinding::new(run.called(), what, fix));
            }
        }
    }
    Ok(())
}

/// Compares the audit's logs with the device's proof. The verification copies them.
fn proven(run: &Run) -> Result<(), StageError> {
    for name in [file_name::SUMMARY, file_name::DETAIL, file_name::ACCURACY] {
        let path = run.file(name);
        let Some(proof) = run.proof(name) else {
            if path.exists() {
                return Err(StageError::NotListed { path });
            }
            continue;
        };
        let (found, _) = sha256(&path)?;
        if found != proof.sha256 {
            return Err(StageError::NotProven {
                path,
                found,
                proven: proof.sha256.clone(),
            });
        }
    }
    Ok(())
}

/// Returns the path of one of part III's files of a run.
fn part_three_file(run: &Run, name: &str) -> PathBuf {
    let verified = run.directory.join("audit").join(Test::Test01.name());
    verified.join("accuracy").join(name)
}

/// Returns whether a run has part III's files.
fn has_part_three(run: &Run) -> bool {
    PART_THREE.iter().all(|name| part_three_file(run, name).is_file())
}

/// Copies part III's files if the run has them. Returns whether the two accuracies are close enough.
fn part_three(round: &Round, run: &Run, directory: &Path) -> Result<bool, StageError> {
    if !has_part_three(run) {
        return Ok(false);
    }
    let mut texts = PART_THREE.map(|_| String::new());
    for (name, text) in PART_THREE.iter().zip(&mut texts) {
        let (from, to) = (part_three_file(run, name), directory.join("accuracy").join(name));
        *text = regular_file::read_text(&from).at("read", &from)?;
        replace(&to, text.as_bytes())?;
    }
    let [baseline, audited] = &texts;
    let deltas = judge(round, &limits(round, &run.spec.benchmark), baseline, audited);
    Ok(!deltas.is_empty() && deltas.iter().all(|delta| delta.passed))
}

/// Writes an empty `accuracy.txt` where a round truncates an audit's log within the results. Its tool appends the hash to that
/// file.
fn text_for_the_hash(staging: &Staging<'_>, test: Test, directory: &Path) -> Result<(), StageError> {
    let rule = staging.request.round.truncation.as_ref();
    let has_text = rule.is_some_and(|rule| rule.audits_in_results.iter().any(|audit| audit == test.name()));
    let path = directory.join("accuracy").join("accuracy.txt");
    if has_text && directory.join("accuracy").is_dir() && !path.exists() {
        fs::write(&path, "").at("write", &path)?;
    }
    Ok(())
}
