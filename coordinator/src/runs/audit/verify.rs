//! An audit's run held against the runs that it audits. Whatever comes of it is an answer, also that it cannot be
//! verified; the verdict files go to `audit/` of the run's directory.

use std::{fs, path::Path};

use regatta_mllog::read::file_name;
use regatta_rules::{
    RunId,
    documents::{AuditOf, AuditResult, AuditedResponses, Document as _, Evidence, Record, RunPhase, RunSpec},
};
use regatta_submission::audit::{
    self, Audited, Dtype, Observation, Report, Request, explain,
    part_three::{compare_accuracies, limits},
};

use crate::{
    hex::{hex, sha256_of_file},
    runs::{self, Catalogue, Outcome},
    store::{RunRow, Store},
    workspace::{Workspace, write_durably},
};

/// Verifies the audit that `row` is, by its spec as it was sent.
pub(in crate::runs) fn verify(
    workspace: &Workspace,
    store: &Store,
    row: &RunRow,
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
        responses: None,
        accuracies: Vec::new(),
        observations: Vec::new(),
        fault: Some(fault),
    };
    if row.state.phase != RunPhase::Done {
        return failed(format!("the run is {}", row.state.phase));
    }
    verifier
        .result()
        .unwrap_or_else(|error| failed(format!("{error:#}")))
}

/// Puts a verification of a recorded audit, such as one by the reference accuracy script, in the place of ours.
///
/// # Errors
/// When the record cannot be read or written, or the store fails.
pub(crate) fn keep(
    workspace: &Workspace,
    store: &Store,
    row: &RunRow,
    report: &Report,
    explanation: &str,
) -> anyhow::Result<()> {
    let Some(of) = &row.draft.spec.audit else {
        anyhow::bail!("run {} is no audit", row.id);
    };
    let verifier = Verifier {
        workspace,
        store,
        spec: &row.draft.spec,
        of,
    };
    let result = verifier.told(report, explanation, None);
    let path = workspace.run(row.id).record();
    let mut record = Record::from_json(&fs::read(&path)?)?;
    record.audit = Some(result.clone());
    let mut text = serde_json::to_vec_pretty(&record)?;
    text.push(b'\n');
    write_durably(&path, &text)?;
    let outcome = Outcome {
        audit: Some(result),
        ..row.outcome.clone().unwrap_or_default()
    };
    store.run_is_recorded(row.id, &record.written, &outcome)?;
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
        self.expect_delivered(accuracy)?;
        let catalogue = Catalogue::read(Some(self.workspace))?;
        let audited = Audited {
            performance: self.workspace.run(self.of.performance).files(),
            accuracy: self.workspace.run(accuracy).files(),
        };
        let own = self.workspace.run(self.spec.run);
        let request = Request {
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
        Ok(self.told(&report, &explanation, fault))
    }

    /// TEST01's part III by our own reckoning of accuracies. The rules want the reference script's, so that it decides
    /// only for benchmarks that can never be submitted; for the others it tells beforehand what the script will say.
    fn take_accuracies(&self, request: &Request<'_>, report: &mut Report) -> Option<String> {
        if !report.needs_accuracies() {
            return None;
        }
        let benchmark = &self.spec.benchmark;
        let decides = benchmark.not_submittable.is_some();
        let ours = self.workspace.run(self.spec.run).audit().join("by-our-reckoning");
        let request = Request {
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
                    "responses differ, and the rules want accuracies by the reference script: `regatta audit verify \
                     TEST01 --run ... --accuracy-script ...`"
                        .to_owned()
                })
            }
            Err(error) => Some(format!(
                "responses differ, and accuracies cannot be compared: {error:#}"
            )),
        }
    }

    fn told(&self, report: &Report, explanation: &str, fault: Option<String>) -> AuditResult {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let mut observations: Vec<String> = report.observations.iter().map(said).collect();
        observations.extend(self.other_loadgens());
        let mut speeds = lines(&report.performance.printed);
        speeds.extend(report.performance.refusal.clone());
        AuditResult {
            of: self.of.clone(),
            passed: report.passed() && fault.is_none(),
            speeds,
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

    /// The accuracy log is still the one that the device delivered: not truncated, not touched.
    fn expect_delivered(&self, run: RunId) -> anyhow::Result<()> {
        let path = self.workspace.run(run).files().join(file_name::ACCURACY);
        let streams = self.store.streams(run)?;
        let stated = streams
            .iter()
            .find(|stream| stream.name.as_str() == file_name::ACCURACY)
            .and_then(|stream| stream.stated_sha256.as_deref());
        let (_, found) = sha256_of_file(&path)?;
        if stated != Some(hex(&found).as_str()) {
            anyhow::bail!(
                "{} is no longer what the device delivered: audits come before truncation",
                path.display()
            );
        }
        Ok(())
    }

    /// The devices' own word on which LoadGen and engine ran, where it is not the same for all three runs.
    fn other_loadgens(&self) -> Vec<String> {
        let Some(own) = self.ran(self.spec.run) else {
            return vec!["the audit's evidence does not tell which LoadGen and engine ran".to_owned()];
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
                        "the {name} run's evidence does not tell which LoadGen and engine ran"
                    ));
                };
                (other != own).then(|| format!("the audit was run by {own}, the {name} run by {other}"))
            })
            .collect()
    }

    /// What computed the responses of both runs, units and all, as the devices tell it.
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
        let bytes = fs::read(self.workspace.run(run).files().join("evidence.json")).ok()?;
        Evidence::from_json(&bytes).ok()
    }

    /// LoadGen and engine of a run, by its evidence.
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

fn said(seen: &Observation) -> String {
    let line = seen.line.map_or_else(String::new, |line| format!(" line {line}"));
    let name = seen.path.file_name().unwrap_or_default().to_string_lossy();
    format!("{name}{line}: {}", seen.message)
}
