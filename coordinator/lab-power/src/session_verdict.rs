//! The verdict on a complete session: that of the official checker, that of Regatta, and the energy. A session of Regatta's own programs has no
//! official one.

use std::{io, path::Path};

use regatta_catalogue::round::{PowerRules, SIMULATION_MARK};
use regatta_fsutil::regular_file;
use regatta_power::{power_dev::PowerDev, session::arrange_for_submission};
use regatta_submission_check::{
    check::power::{self as check, PowerOutcome},
    tree::{ScanError, Tree},
};
use regatta_types::documents::{MeterSettings, SessionEnergy};

use super::{official_verdict::OfficialVerdict, session_check::checker_copy};

/// The mark of PTDaemon's answer to `Identify` in the server's output. No other line contains it.
const IDENTITY: &str = ",version=";

/// The largest output of the server in which that mark is looked for. A day's output is smaller.
const MAX_OUTPUT: u64 = 64 << 20;

/// A complete session that cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum VerdictError {
    /// A file cannot be moved to where a submission has it.
    #[error("the files of the session cannot be arranged")]
    Arrange(#[source] io::Error),
    /// The official checker gave no verdict.
    #[error("the official checker does not judge the session")]
    Checker(#[source] io::Error),
    /// The session's directory cannot be read.
    #[error(transparent)]
    Scan(#[from] ScanError),
}

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
    pub fn of(
        python: &Path,
        checker: &Path,
        rules: &PowerRules,
        session: &Path,
    ) -> Result<Self, VerdictError> {
        arrange_for_submission(session).map_err(VerdictError::Arrange)?;
        let output = session.with_file_name("check-output.txt");
        let official =
            OfficialVerdict::of(python, checker, session, &output).map_err(VerdictError::Checker)?;
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
    pub fn informative(rules: &PowerRules, session: &Path) -> Result<Self, VerdictError> {
        arrange_for_submission(session).map_err(VerdictError::Arrange)?;
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

/// Judges a complete session of the official programs with both checkers.
///
/// # Errors
/// Returns an error when a checker does not run.
pub fn judge(
    settings: &MeterSettings,
    rules: &PowerRules,
    session: &Path,
) -> Result<SessionVerdict, VerdictError> {
    let python = match settings.director {
        None => settings.python.as_str(),
        Some(_) => "python3",
    };
    let copy = PowerDev::elsewhere(&checker_copy(settings), Default::default(), Vec::new());
    SessionVerdict::of(Path::new(python), &copy.checker(), rules, session)
}

/// Returns the findings of Regatta's check in a session.
fn findings(tree: &Tree, rules: &PowerRules) -> Vec<String> {
    let failed = |check: check::PowerCheck| match check.outcome {
        PowerOutcome::Failed(reason) => Some(format!("{}: {reason}", check.name)),
        PowerOutcome::Passed | PowerOutcome::Warned(_) => None,
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
        .map(|name| regular_file::read(&directory.join(name), MAX_OUTPUT).unwrap_or_default());
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
