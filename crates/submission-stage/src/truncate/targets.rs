//! Finds the places in which the round's tool searches for accuracy logs. It only reads directories.

use std::{
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

use regatta_catalogue::procedures::Truncation as Rule;

use super::{TruncateError, TruncationRequest};
use regatta_submission_check::files::directories;

/// The place of the hash of an accuracy log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// The hash is in `accuracy.txt`, which must exist.
    Required,
    /// The hash is in `accuracy.txt`, which is created if it does not exist.
    Created,
    /// The hash is in an `accuracy.txt` that contains nothing else.
    Alone,
}

/// A place of an accuracy log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The directory of the log, relative to the root.
    pub(super) directory: PathBuf,
    pub(super) mark: Mark,
}

/// Returns all places, in name order.
pub(super) fn find(request: &TruncationRequest<'_>) -> Result<Vec<Target>, TruncateError> {
    let roots = submitter_directories(request.input, request.submitter, request.rule)?;
    let mut targets = Vec::new();
    for (division, root) in roots {
        let below = |name: &str| ScenarioTree {
            input: request.input,
            root: root.join(name),
            skip_scenarios: request.skip_scenarios,
        };
        below("results").each_scenario(|scenario, children| {
            if children.iter().any(|child| !is_audit(child)) {
                targets.push(Target {
                    directory: scenario.join("accuracy"),
                    mark: Mark::Required,
                });
            }
            for audit in &request.rule.audits_in_results {
                if children.iter().any(|child| child == audit.as_str()) {
                    let alone = request.rule.hash_only_audits.contains(audit);
                    targets.push(Target {
                        directory: scenario.join(audit).join("accuracy"),
                        mark: if alone { Mark::Alone } else { Mark::Required },
                    });
                }
            }
        })?;
        if !request.rule.compliance_divisions.contains(&division) {
            continue;
        }
        below("compliance").each_scenario(|scenario, children| {
            for audit in &request.rule.audits_in_compliance {
                if children.iter().any(|child| child == audit.as_str()) {
                    targets.push(Target {
                        directory: scenario.join(audit).join("accuracy"),
                        mark: Mark::Created,
                    });
                }
            }
        })?;
    }
    Ok(targets)
}

/// Returns the existing directories `<division>/<submitter>`, relative to the root.
pub(super) fn submitter_directories(
    input: &Path,
    submitter: &str,
    rule: &Rule,
) -> Result<Vec<(regatta_types::Division, PathBuf)>, TruncateError> {
    let mut parts = Path::new(submitter).components();
    if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
        return Err(TruncateError::NoName {
            submitter: submitter.to_owned(),
        });
    }
    let all = rule
        .divisions
        .iter()
        .map(|&division| (division, Path::new(division.as_str()).join(submitter)));
    let found: Vec<_> = all
        .clone()
        .filter(|(_, directory)| input.join(directory).is_dir())
        .collect();
    if found.is_empty() {
        let looked_for: Vec<_> = all
            .map(|(_, directory)| directory.display().to_string())
            .collect();
        return Err(TruncateError::NoSubmission {
            input: input.to_owned(),
            submitter: submitter.to_owned(),
            looked_for: looked_for.join(", "),
        });
    }
    Ok(found)
}

/// The tree `<root>/<system>/<model>/<scenario>/`.
struct ScenarioTree<'a> {
    input: &'a Path,
    root: PathBuf,
    skip_scenarios: &'a [String],
}

impl ScenarioTree<'_> {
    /// Calls `take` with each scenario's directory, relative to the submission's root, and the directories in it.
    fn each_scenario(&self, mut take: impl FnMut(&Path, &[std::ffi::OsString])) -> Result<(), TruncateError> {
        let list = |below: &Path| directories(&self.input.join(below));
        for system in list(&self.root)? {
            let system = self.root.join(system);
            for model in list(&system)? {
                let model = system.join(model);
                for scenario in list(&model)? {
                    if self
                        .skip_scenarios
                        .iter()
                        .any(|skipped| scenario == skipped.as_str())
                    {
                        continue;
                    }
                    let scenario = model.join(scenario);
                    take(&scenario, &list(&scenario)?);
                }
            }
        }
        Ok(())
    }
}

fn is_audit(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"TEST")
}
