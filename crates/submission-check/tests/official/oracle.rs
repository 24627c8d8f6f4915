//! An official checker as a program.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use regatta_test_requirements::official_tools;

/// A verdict and the lines of the CSV.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) verdict: &'static str,
    pub(crate) rows: BTreeSet<String>,
}

/// Returns the lines of a CSV without its header. The monoliths' error count depends on the order of the file system, so it is
/// left out.
pub(crate) fn rows(csv: &str, round: &str) -> BTreeSet<String> {
    let uncounted = |line: &str| {
        let version = format!(",{round},");
        match line.rsplit_once(&version) {
            Some((before, after)) => match before.rsplit_once(',') {
                Some((before, count)) if count.bytes().all(|byte| byte.is_ascii_digit()) => {
                    format!("{before},#{version}{after}")
                }
                _ => line.to_owned(),
            },
            None => line.to_owned(),
        }
    };
    csv.lines().skip(1).map(uncounted).collect()
}

/// A checker of one revision.
pub(crate) struct Oracle {
    tools: PathBuf,
}

impl Oracle {
    /// Finds the checkout of a revision.
    pub(crate) fn find(revision: &str) -> Option<Self> {
        let tools = official_tools(Path::new(revision).join("tools/submission"))?;
        Some(Self { tools })
    }

    /// Returns its judgement of the submission, and its log.
    pub(crate) fn judge(&self, root: &Path, round: &str, submitter: Option<&str>) -> (Judged, String) {
        let python = env::var_os("REGATTA_PYTHON").unwrap_or_else(|| "python3".into());
        let output = tempfile::tempdir().unwrap();
        let csv = output.path().join("summary.csv");
        let mut command = Command::new(python);
        let old = self.tools.join("submission-checker.py");
        let monolith = self.tools.join("submission_checker.py");
        if old.is_file() {
            command.arg(old);
        } else if monolith.is_file() {
            command.arg(monolith);
        } else {
            command.args(["-m", "submission_checker.main"]);
        }
        command
            .current_dir(&self.tools)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg("--input")
            .arg(root)
            .args(["--version", round])
            .arg("--csv")
            .arg(&csv);
        if let Some(submitter) = submitter {
            command.args(["--submitter", submitter]);
        }
        let done = command.output().unwrap();
        let log = String::from_utf8_lossy(&done.stderr).into_owned();
        let verdict = if log.contains("SUMMARY: submission looks OK") {
            "accept"
        } else if log.contains("SUMMARY: submission has errors") {
            "reject"
        } else {
            "crash"
        };
        // Locations are absolute in the package's, and from the root in the monolith's.
        let text = fs::read_to_string(&csv).unwrap_or_default();
        let text = text.replace(&format!("{}/", root.display()), "");
        let text = if verdict == "crash" { "" } else { &text };
        let rows = rows(text, round);
        (Judged { verdict, rows }, log)
    }
}
