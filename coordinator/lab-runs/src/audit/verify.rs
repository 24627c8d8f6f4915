//! Verifies an audit's run against the runs that it audits. A failed verification is a result, not an error. The verdict files are
//! written to `audit/` in the run's directory.

use std::{fs, path::Path};

use anyhow::Context as _;
use regatta_catalogue::catalogue::Catalogue;
use regatta_fsutil::{
    atomic_file::AtomicFile,
    regular_file::{self, MAX_DOCUMENT},
};
use regatta_mllog::read::file_name;
use regatta_submission_stage::{
    audit::{
        self, AuditReport, AuditRequest, Audited, Dtype, Observation, explain,
        part_three::{compare_accuracies, limits},
    },
    proof::{ProofError, SignedEvidence},
};
use regatta_types::{
    RunId,
    documents::{
        AuditOf, AuditResult, AuditedResponses, Document as _, Evidence, Record, RunPhase, RunSpec,
        document_name,
    },
};

use crate as runs;
use regatta_lab_store::{RunOutcome, RunRow, Store, workspace::Workspace};

/// Verifies an audit's run that ended in `phase`, with the spec as it was sent.
pub(crate) fn verify(
    workspace: &Workspace,
    store: &Store,
    phase: RunPhase,
    spec: &RunSpec,
    of: &AuditOf,
) -> AuditResult {
    let verifier = Verifier {
        workspace,
        store,
        spec,
        of,
    };
    let failed = |fault: String| AuditResult {
        of: of.clone(),
        passed: false,
        speeds: Vec::new(),
        scores: None,
        mismatch: None,
        responses: None,
        accuracies: Vec::new(),
        observations: Vec::new(),
        fault: Some(fault),
    };
    if phase != RunPhase::Done {
        return failed(format!("the run is {phase}"));
    }
    verifier
        .result()
        .unwrap_or_else(|error| failed(format!("{error:#}")))
}

/// Replaces Regatta's verification of a recorded audit, for example by one with the reference accuracy script.
///
/// # Errors
/// Returns an error when the record cannot be read or written, or when the store fails.
pub fn keep(
    workspace: &Workspace,
    store: &Store,
    row: &RunRow,
    report: &AuditReport,
    explanation: &str,
) -> anyhow::Result<()> {
    let Some(of) = &row.draft.spec.audit else {
        anyhow::bail!("run {} is not an audit", row.id);
    };
    let verifier = Verifier {
        workspace,
        store,
        spec: &row.draft.spec,
        of,
    };
    let result = verifier.audit_result(report, explanation, None);
    let path = workspace.run(row.id).record();
    let mut record = Record::from_json(&regular_file::read(&path, MAX_DOCUMENT)?)?;
    record.audit = Some(result.clone());
    let mut text = serde_json::to_vec_pretty(&record)?;
    text.push(b'\n');
    AtomicFile::new(&path).write(&text)?;
    let outcome = RunOutcome {
        audit: Some(result),
        ..row.outcome.clone().unwrap_or_default()
    };
    Ok(store.runs().record_unchanged(row, &record, &outcome)?)
}

/// Checks that every log that an audit reads is the one that the device signed.
///
/// # Errors
/// Returns an error that names the run without a signature, or the added, changed or truncated file.
pub fn expect_proven(workspace: &Workspace, store: &Store, run: RunId, of: &AuditOf) -> anyhow::Result<()> {
    for run in [Some(run), Some(of.performance), of.accuracy]
        .into_iter()
        .flatten()
    {
        let dir = workspace.run(run);
        let row = store
            .runs()
            .get(run)?
            .with_context(|| format!("run {run} is missing from the store"))?;
        let key = store.devices().public_key(&row.device)?;
        let signed = SignedEvidence::read(dir.path(), key.as_ref()).with_context(|| format!("run {run}"))?;
        for name in [file_name::SUMMARY, file_name::DETAIL, file_name::ACCURACY] {
            let path = dir.files().join(name);
            if !path.exists() {
                continue;
            }
            signed
                .verify_file(dir.path(), name)
                .map_err(|error| match error {
                    ProofError::Changed(_) => anyhow::anyhow!(
                        "{} has changed since the device delivered it: run audits before truncating",
                        path.display()
                    ),
                    error => anyhow::Error::from(error).context(format!("run {run}")),
                })?;
        }
    }
    Ok(())
}

struct Verifier<'a> {
    workspace: &'a Workspace,
    store: &'a Store,
    spec: &'a RunSpec,
    of: &'a AuditOf,
}

impl Verifier<'_> {
    fn result(&self) -> anyhow::Result<AuditResult> {
        let accuracy = self.of.accuracy.unwrap_or(self.of.performance);
        expect_proven(self.workspace, self.store, self.spec.run, self.of)?;
        let catalogue = Catalogue::read(Some(&self.workspace.configs()))?;
        let audited = Audited {
            performance: self.workspace.run(self.of.performance).files(),
            accuracy: self.workspace.run(accuracy).files(),
        };
        let own = self.workspace.run(self.spec.run);
        let request = AuditRequest {
            test: self.of.test.parse()?,
            audited: &audited,
            compliance: &own.files(),
            output: &own.audit(),
            dtype: Dtype::of(self.spec.benchmark.model.response),
            round: catalogue.round(Some(&self.spec.round))?,
        };
        let mut report = audit::verify(&request)?;
        let explanation = match report.accuracy.as_ref().filter(|_| report.needs_accuracies()) {
            Some(comparison) => {
                explain::explain(comparison, &request.accuracy_log(), &request.compliance_log())?.to_string()
            }
            None => String::new(),
        };
        let fault = self.take_accuracies(&request, &mut report);
        Ok(self.audit_result(&report, &explanation, fault))
    }

    /// Performs TEST01 part III with Regatta's own accuracy metric. The rules require the reference script. Regatta's result therefore
    /// decides only for benchmarks that cannot be submitted. For others it predicts the script's result.
    fn take_accuracies(&self, request: &AuditRequest<'_>, report: &mut AuditReport) -> Option<String> {
        if !report.needs_accuracies() {
            return None;
        }
        let benchmark = &self.spec.benchmark;
        let decides = benchmark.not_submittable.is_some();
        let ours = self.workspace.run(self.spec.run).audit().join("by-our-reckoning");
        let request = AuditRequest {
            output: if decides { request.output } else { &ours },
            ..*request
        };
        let limits = limits(request.round, benchmark);
        let scratch = self.workspace.scratch();
        let mut script = |log: &Path| Ok(runs::accuracy_line(benchmark, None, &scratch, log)?);
        let baseline = request.output.join("mlperf_log_accuracy_baseline.json");
        let compared = fs::create_dir_all(request.output)
            .map_err(anyhow::Error::from)
            .and_then(|()| Ok(compare_accuracies(&request, &limits, &baseline, &mut script)?));
        match compared {
            Ok(accuracies) => {
                report.accuracies = accuracies;
                (!decides).then(|| {
                    "responses differ, and the rules require accuracies by the reference script; hint: `regatta audit verify \
                     TEST01 --run RUN --accuracy-script SCRIPT`"
                        .to_owned()
                })
            }
            Err(error) => Some(format!(
                "responses differ, and accuracies cannot be compared: {error:#}"
            )),
        }
    }

    fn audit_result(&self, report: &AuditReport, explanation: &str, fault: Option<String>) -> AuditResult {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let mut observations: Vec<String> = report.observations.iter().map(observation_line).collect();
        observations.extend(self.other_loadgens());
        let mut speeds = lines(&report.performance.printed);
        speeds.extend(report.performance.refusal.clone());
        AuditResult {
            of: self.of.clone(),
            passed: report.passed() && fault.is_none(),
            speeds,
            scores: report.performance.scores.clone(),
            mismatch: report.performance.mismatch.clone(),
            responses: report.accuracy.as_ref().map(|accuracy| AuditedResponses {
                compared: accuracy.counts.matches,
                differing: accuracy.counts.mismatches,
                passed: accuracy.counts.passed,
                explanation: lines(explanation)
                    .into_iter()
                    .chain(self.computed_by().filter(|_| !accuracy.counts.passed))
                    .collect(),
            }),
            accuracies: report.accuracies.clone(),
            observations,
            fault,
        }
    }

    /// Returns the LoadGen and engine of the three runs, as the devices report them, if they differ.
    fn other_loadgens(&self) -> Vec<String> {
        let Some(own) = self.ran(self.spec.run) else {
            return vec!["the audit's evidence does not name the LoadGen and engine that ran".to_owned()];
        };
        let others = [
            ("performance", Some(self.of.performance)),
            ("accuracy", self.of.accuracy),
        ];
        others
            .into_iter()
            .filter_map(|(name, run)| {
                let Some(other) = self.ran(run?) else {
                    return Some(format!(
                        "the evidence of the {name} run does not name the LoadGen and engine that ran"
                    ));
                };
                (other != own).then(|| format!("the audit was run by {own}, the {name} run by {other}"))
            })
            .collect()
    }

    /// Returns the engines that computed the responses of both runs, as the devices report them.
    fn computed_by(&self) -> Option<String> {
        let engine = |run: RunId| Some(self.evidence(run)?.attempts.pop()?.engine);
        let (audit, accuracy) = (engine(self.spec.run)?, engine(self.of.accuracy?)?);
        Some(if audit == accuracy {
            format!("both runs were computed by {audit}")
        } else {
            format!("the audit was computed by {audit}, the accuracy run by {accuracy}")
        })
    }

    fn evidence(&self, run: RunId) -> Option<Evidence> {
        let bytes = regular_file::read(
            &self.workspace.run(run).files().join(document_name::EVIDENCE),
            MAX_DOCUMENT,
        )
        .ok()?;
        Evidence::from_json(&bytes).ok()
    }

    /// Returns the LoadGen and engine of a run, from its evidence.
    fn ran(&self, run: RunId) -> Option<String> {
        let evidence = self.evidence(run)?;
        let attempt = evidence.attempts.last()?;
        let loadgen = attempt.loadgen.as_ref()?;
        Some(format!(
            "{} {} ({}) with {}, agent {}",
            loadgen.implementation, loadgen.version, loadgen.revision, attempt.engine, evidence.agent
        ))
    }
}

fn observation_line(seen: &Observation) -> String {
    let line = seen.line.map_or_else(String::new, |line| format!(" line {line}"));
    let name = seen.path.file_name().unwrap_or_default().to_string_lossy();
    format!("{name}{line}: {}", seen.message)
}
