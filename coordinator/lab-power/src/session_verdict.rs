//! The verdict on a complete session: that of the official checker, that of Regatta, and the energy. A session of Regatta's own programs has no
//! official one.

use std::path::Path;

use regatta_config::round::{PowerRules, SIMULATION_MARK};
use regatta_power::session::arrange_for_submission;
use regatta_submission_check::{
    check::power::{self as check, Outcome, SessionEnergy},
    tree::Tree,
};

use super::official_verdict::OfficialVerdict;

/// The mark of PTDaemon's answer to `Identify` in the server's output. No other line contains it.
const IDENTITY: &str = ",version=";

/// A verdict.
pub struct SessionVerdict {
    /// The official checker's. `None` for an informative session.
    pub official: Option<OfficialVerdict>,
    /// Regatta's findings: failed checks, and faults that the official checks overlook.
    pub findings: Vec<String>,
    /// The energy of the testing run.
    pub energy: Option<SessionEnergy>,
}

impl SessionVerdict {
    /// Judges the session in `session`. The official checker's output goes to a file beside it.
    ///
    /// # Errors
    /// Returns an error when a checker does not run.
    pub fn of(python: &Path, checker: &Path, rules: &PowerRules, session: &Path) -> anyhow::Result<Self> {
        arrange_for_submission(session)?;
        let output = session.with_file_name("check-output.txt");
        let official = OfficialVerdict::of(python, checker, session, &output)?;
        let tree = Tree::scan(session)?;
        Ok(Self {
            official: Some(official),
            findings: findings(&tree, rules),
            energy: check::energy(&tree, "").ok(),
        })
    }

    /// Judges a session of Regatta's own programs by the round's rules, except which programs, meters and PTDaemons it accepts.
    ///
    /// # Errors
    /// Returns an error when a file cannot be read.
    pub fn informative(rules: &PowerRules, session: &Path) -> anyhow::Result<Self> {
        arrange_for_submission(session)?;
        let tree = Tree::scan(session)?;
        let mut findings = findings(&tree, &check::with_any_meter(&tree, "", rules));
        findings.retain(|finding| !check::SOURCES.iter().any(|name| finding.starts_with(name)));
        Ok(Self {
            official: None,
            findings,
            energy: check::energy(&tree, "").ok(),
        })
    }

    /// Returns whether the checkers accept the session. An informative one must also have an energy.
    pub fn accepts(&self) -> bool {
        let officially = self
            .official
            .as_ref()
            .map_or(self.energy.is_some(), OfficialVerdict::passes);
        officially && self.findings.is_empty()
    }
}

/// Returns the findings of Regatta's check in a session.
fn findings(tree: &Tree, rules: &PowerRules) -> Vec<String> {
    let failed = |check: check::PowerCheck| match check.outcome {
        Outcome::Failed(reason) => Some(format!("{}: {reason}", check.name)),
        Outcome::Passed | Outcome::Warned(_) => None,
    };
    let checks = check::check(tree, "", rules).checks;
    let mut findings: Vec<String> = checks.into_iter().filter_map(failed).collect();
    findings.extend(check::overlooked(tree, "", rules).iter().map(ToString::to_string));
    findings
}

/// Returns whether the PTDaemon of the session in `directory` was a simulated one, also of a session that failed. `None` when it has not
/// reported what it is.
pub(crate) fn is_simulated(directory: &Path) -> Option<bool> {
    let texts = ["session/power/server.json", "server-output.txt"]
        .map(|name| std::fs::read(directory.join(name)).unwrap_or_default());
    let has = |mark: &str| {
        texts
            .iter()
            .any(|text| String::from_utf8_lossy(text).contains(mark))
    };
    match (has(SIMULATION_MARK), has(IDENTITY)) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}
