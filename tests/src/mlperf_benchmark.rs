//! An MLPerf benchmark in a lab: the shipped file resized to a made-up dataset, its runs and their responses, and the verdict of the round's
//! official checker on the staged tree. Making the dataset and the network is not done here.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use regatta_test_requirements::official_tools;
use serde_json::Value;

use crate::{Lab, printed, succeed_output};

/// Replaces parts of a text, each of which must be in it.
///
/// # Panics
/// Panics when the text lacks one of them.
#[must_use]
pub fn replaced(mut text: String, parts: &[(&str, &str)]) -> String {
    for (from, to) in parts {
        assert!(text.contains(from), "the text has no {from}");
        text = text.replace(from, to);
    }
    text
}

/// Returns the response to each sample in an accuracy log, in hexadecimal.
///
/// # Panics
/// Panics when the log is not one.
#[must_use]
pub fn responses(log: &Path) -> BTreeMap<u64, String> {
    let text = fs::read_to_string(log).expect("an accuracy log");
    let entries: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    let of = |entry: &Value| Some((entry["qsl_idx"].as_u64()?, entry["data"].as_str()?.to_owned()));
    entries
        .iter()
        .map(|entry| of(entry).expect("a response"))
        .collect()
}

impl Lab {
    /// Writes a shipped benchmark file into the workspace with a change, such as the size of the test's dataset.
    ///
    /// # Panics
    /// Panics when there is no such benchmark.
    pub fn write_benchmark(&self, name: &str, change: impl FnOnce(String) -> String) {
        let file = format!("{name}.toml");
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../configs/benchmarks")
            .join(&file);
        let text = fs::read_to_string(shipped).expect("a shipped benchmark");
        let directory = self.workspace().join("configs/benchmarks");
        fs::create_dir_all(&directory).expect("the workspace's directory");
        fs::write(directory.join(file), change(text)).expect("the workspace's benchmark");
    }

    /// Returns the state of each of a benchmark's files, as `benchmark show` prints them.
    ///
    /// # Panics
    /// Panics when there is no such benchmark.
    #[must_use]
    pub fn benchmark_files(&self, name: &str) -> Vec<String> {
        let document = self.json(&["benchmark", "show", name]);
        let files = document["files"].as_array().expect("files").iter();
        files
            .map(|file| file["state"].as_str().expect("a state").to_owned())
            .collect()
    }

    /// Runs a command that judges something and parses its JSON output. A bad verdict, with exit code 1, is no failure.
    ///
    /// # Panics
    /// Panics when the command fails or prints no JSON.
    #[must_use]
    pub fn judged(&self, words: &[&str]) -> Value {
        let output = self.regatta().args(words).args(["--format", "json"]).output();
        let output = output.expect("regatta starts");
        let text = printed(&output);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{words:?}: {text}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Makes one run with the CPU engine and returns it. It may be INVALID, because the machine may be busy.
    ///
    /// # Panics
    /// Panics when the run does not end.
    #[must_use]
    pub fn measure(&self, benchmark: &str, what: [&str; 2], further: &[&str]) -> Value {
        self.measure_with("tract", benchmark, what, further)
    }

    /// Makes one run with an engine, as [`measure`](Self::measure) does.
    ///
    /// # Panics
    /// Panics when the run does not end.
    #[must_use]
    pub fn measure_with(
        &self,
        engine: &str,
        benchmark: &str,
        [scenario, mode]: [&str; 2],
        further: &[&str],
    ) -> Value {
        let what = [
            "run",
            "--benchmark",
            benchmark,
            "--scenario",
            scenario,
            "--mode",
            mode,
        ];
        let how = ["--engine", engine, "--duration", "300ms"];
        let document = self.judged(&[&what[..], &how, further].concat());
        let run = document["runs"][0].clone();
        assert_eq!(run["phase"], "done", "{run:#}");
        run
    }

    /// Returns the coordinator's directory of a run.
    ///
    /// # Panics
    /// Panics when the document is not a run's.
    #[must_use]
    pub fn run_directory(&self, run: &Value) -> PathBuf {
        self.workspace()
            .join("runs")
            .join(run["run"].as_str().expect("an id"))
    }

    /// Truncates a staged tree, and has the round's official checker read it where that is at hand. Returns what it prints.
    ///
    /// # Panics
    /// Panics when the tree cannot be truncated, or when the checker reports more than that the runs are short.
    #[must_use]
    pub fn officially_checked(&self, tree: &Path, round: &str) -> Option<String> {
        let truncated = tree.with_extension("truncated");
        let mut truncate = self.regatta();
        truncate
            .args(["submission", "truncate", "--round", round])
            .args(["--submitter", "REHEARSAL-nobody", "--input"])
            .arg(tree);
        let _ = succeed_output(truncate.arg("--output").arg(&truncated));
        official_checker(&truncated, round)
    }

    /// Returns the path of a run's accuracy log.
    ///
    /// # Panics
    /// Panics when the document is not a run's.
    #[must_use]
    pub fn accuracy_log(&self, run: &Value) -> PathBuf {
        self.run_directory(run).join("files/mlperf_log_accuracy.json")
    }
}

/// The findings of all rounds' official checkers about short runs on a small dataset. `accurcy` is theirs.
const OF_SHORT_RUNS: [&str; 12] = [
    "accurcy run does not cover all dataset",
    "accuracy run does not cover all dataset",
    "dataset size",
    "performance_sample_count",
    "Early stopping condition was not met",
    "Required minimum",
    "Test duration",
    // Two audits of v2.0, which accepts results without them.
    "Missing TEST04-",
    "has issues",
    "Checks failed for",
    "NoResults",
    "SUMMARY",
];

/// Runs the first official submission checker of a round on a tree, where the official tools are at hand
/// (`tests/oracles/inference/checkouts.sh`), and returns what it prints. It may reject the runs for being short, and nothing else.
///
/// # Panics
/// Panics when the checker reports anything else.
#[must_use]
pub fn official_checker(tree: &Path, round: &str) -> Option<String> {
    let (revision, program): (_, &[&str]) = match round {
        "v2.0" => ("v2.0", &["submission-checker.py"]),
        "v4.0" | "v4.1" => (round, &["submission_checker.py"]),
        "v5.1" => ("v5.1.1", &["submission_checker.py"]),
        "v6.0" | "v6.1" => ("head-b66003e1", &["-m", "submission_checker.main"]),
        other => panic!("name the official checker of {other} here"),
    };
    let checked = Command::new(env::var_os("REGATTA_PYTHON").unwrap_or_else(|| "python3".into()))
        .current_dir(official_tools(Path::new(revision).join("tools/submission"))?)
        .args(program)
        .args(["--version", round, "--input"])
        .arg(tree)
        .arg("--csv")
        .arg(tree.with_extension("csv"))
        .output()
        .expect("python starts");
    let words = printed(&checked);
    assert!(words.contains("SUMMARY"), "{words}");
    for error in words.lines().filter(|line| line.contains(" ERROR]")) {
        let is_expected = OF_SHORT_RUNS.iter().any(|part| error.contains(part));
        assert!(is_expected, "{error}");
    }
    Some(words)
}
