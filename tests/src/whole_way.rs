//! The steps of a test that takes an MLPerf benchmark the whole way: network and samples, runs on the CPU with the official LoadGen, accuracy
//! by Regatta and by a script, TEST01, and a staged tree. Making the dataset and the network, and what is particular to a metric, is not
//! done here.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_test_support::{oracle, tree};
use serde_json::{Value, json};

use crate::{Broker, Lab, printed};

/// The differences between benchmarks.
#[derive(Debug)]
pub struct WholeWayCase {
    /// The benchmark's name.
    pub benchmark: &'static str,
    /// The round's name for it, which the staged directories have.
    pub model: &'static str,
    /// The round whose rules apply.
    pub round: &'static str,
    /// The scenarios. The first one has the first run, and the audits.
    pub scenarios: &'static [&'static str],
    /// The samples of the made-up dataset.
    pub samples: usize,
    /// The queries of a short run, and of a valid one, which an audit repeats.
    pub queries: [&'static str; 2],
    /// An engine setting, so that samples share batches.
    pub setting: &'static str,
    /// The metric's name in documents.
    pub metric: &'static str,
    /// The script that repeats the reference's: directory and name below `tests/oracles`.
    pub script: [&'static str; 2],
}

/// A benchmark on its way in a lab.
pub struct WholeWay {
    /// The lab, whose coordinator runs after [`start`](Self::start).
    pub lab: Lab,
    case: WholeWayCase,
    /// The Python that has the script's libraries.
    python: PathBuf,
    /// The LoadGen's name on the command line.
    loadgen: &'static str,
    /// The number of files of the model.
    networks: usize,
    engine: &'static str,
    /// The engine's settings beside the case's.
    settings: Vec<String>,
    /// The number of audits that compared responses.
    compared: usize,
}

impl WholeWay {
    /// Makes a lab with the benchmark's file, changed by `resized`, and with its network. `None` where no lab can be made.
    ///
    /// # Panics
    /// Panics when the benchmark is unknown or a file cannot be written.
    #[must_use]
    pub fn new(
        case: WholeWayCase,
        python: PathBuf,
        resized: impl FnOnce(String) -> String,
        network: (&str, Vec<u8>),
    ) -> Option<Self> {
        let lab = Lab::new(Broker::Embedded)?;
        lab.write_benchmark(case.benchmark, resized);
        let mut way = Self {
            lab,
            case,
            python,
            loadgen: "official",
            networks: 0,
            engine: "tract",
            settings: Vec::new(),
            compared: 0,
        };
        way.add_network(network);
        Some(way)
    }

    /// Sets the engine of the runs and further settings of it. Without this, they use `tract`.
    pub fn use_engine(&mut self, engine: &'static str, settings: Vec<String>) {
        self.engine = engine;
        self.settings = settings;
    }

    /// Adds a file of the model.
    ///
    /// # Panics
    /// Panics when it cannot be written.
    pub fn add_network(&mut self, (file, content): (&str, Vec<u8>)) {
        let file = self.lab.scratch().join(file);
        fs::create_dir_all(file.parent().expect("a directory")).expect("the model's directory");
        fs::write(file, content).expect("the network");
        self.networks += 1;
    }

    /// Makes the samples from the dataset in `data`, and again, which changes nothing.
    ///
    /// # Panics
    /// Panics when the benchmark's files are not missing before, or not present afterwards.
    pub fn prepare(&self, data: &Path) {
        let states = || self.lab.benchmark_files(self.case.benchmark);
        let before = states();
        let (networks, made) = before.split_at(self.networks);
        assert!(networks.iter().all(|state| state == "present"), "{before:?}");
        assert!(made.iter().all(|state| state == "missing"), "{before:?}");
        let made = self.prep(data);
        assert_eq!(made["samples"], self.case.samples, "{made:#}");
        self.prepare_again(data);
        let after = states();
        assert!(after.iter().all(|state| state == "present"), "{after:?}");
    }

    /// Runs `prep` again, for example after a change of the annotations. No sample changes.
    ///
    /// # Panics
    /// Panics when a sample changes.
    pub fn prepare_again(&self, data: &Path) {
        let made = self.prep(data);
        assert_eq!(made["unchanged"], self.case.samples, "{made:#}");
    }

    /// Runs `prep`, and returns what it prints.
    ///
    /// # Panics
    /// Panics when it fails.
    #[must_use]
    pub fn prep(&self, data: &Path) -> Value {
        let data = data.to_str().expect("a path");
        self.lab.json(&["prep", self.case.benchmark, "--data", data])
    }

    /// Starts coordinator and device with this plug-in alone. Beside newer plug-ins, the newest would be taken. Without one, runs use Regatta's
    /// own LoadGen.
    ///
    /// # Panics
    /// Panics when one of them does not start.
    pub fn start(&mut self, plugin: Option<&Path>) {
        let plugins = self.lab.workspace().join("plugins");
        fs::create_dir(&plugins).expect("the plug-ins' directory");
        if let Some(plugin) = plugin {
            copy_plugin(plugin, &plugins);
        } else {
            self.loadgen = "native";
        }
        self.lab.device_prefix = vec!["env".to_owned(), format!("REGATTA_PLUGINS={}", plugins.display())];
        self.lab.start_coordinator();
        self.lab.start_device();
        self.lab.wait_for_device();
    }

    /// Makes a short accuracy run in the first scenario, whose accuracy is below the target, and returns it.
    ///
    /// # Panics
    /// Panics when the network reaches the target by chance.
    #[must_use]
    pub fn first_run(&self) -> Value {
        let first = self.measure([self.case.scenarios[0], "AccuracyOnly"], false);
        let judged = self.judge(&first);
        assert!(
            judged["value"].as_f64() < judged["target"].as_f64(),
            "by chance: {judged:#}"
        );
        first
    }

    fn measure(&self, what: [&str; 2], is_valid: bool) -> Value {
        let mut further = vec![
            "--loadgen",
            self.loadgen,
            "--round",
            self.case.round,
            "--conf",
            self.case.queries[usize::from(is_valid)],
            "--set",
            self.case.setting,
        ];
        further.extend(self.settings.iter().flat_map(|setting| ["--set", setting]));
        self.lab
            .measure_with(self.engine, self.case.benchmark, what, &further)
    }

    /// Returns the accuracy of a run, on which Regatta and the script agree.
    fn judge(&self, run: &Value) -> Value {
        let [directory, script] = self.case.script;
        let (log, script) = (
            self.lab.accuracy_log(run),
            oracle::directory(directory).join(script),
        );
        let judged = self.lab.judged(&[
            "accuracy",
            self.case.benchmark,
            "--log",
            log.to_str().expect("a path"),
            "--official",
            script.to_str().expect("a path"),
            "--python",
            self.python.to_str().expect("a path"),
        ]);
        let judged = &judged["accuracy"][0];
        assert_eq!(judged["official"]["agrees"], true, "{judged:#}");
        assert_eq!(
            (&judged["metric"], &judged["total"]),
            (&json!(self.case.metric), &json!(self.case.samples))
        );
        judged.clone()
    }

    /// Makes the accuracy run and the performance run of a scenario. `line` checks what Regatta says of the accuracy, and returns the line that
    /// the script prints. The first scenario is long enough for an audit. Returns the accuracy run and the line.
    ///
    /// # Panics
    /// Panics when the accuracy is below the target, or when the script does not print the line.
    pub fn measure_scenario(&self, scenario: &str, line: impl Fn(&Value) -> String) -> (Value, String) {
        let accuracy = self.measure([scenario, "AccuracyOnly"], false);
        let judged = self.judge(&accuracy);
        assert!(
            judged["value"].as_f64() >= judged["target"].as_f64(),
            "{judged:#}"
        );
        let line = line(&judged);
        let output = judged["official"]["output"].as_str().expect("a text");
        assert!(output.contains(&line), "{output}");
        let _ = self.measure([scenario, "PerformanceOnly"], scenario == self.case.scenarios[0]);
        (accuracy, line)
    }

    /// Runs the round's audits of the first scenario: in TEST01 no response differs.
    ///
    /// # Panics
    /// Panics when there are other audits than `expected`, or when TEST01 has a fault.
    pub fn audit(&mut self, expected: &[&str]) {
        let what = ["audit", "run", "--benchmark", self.case.benchmark];
        let audits = self
            .lab
            .judged(&[&what[..], &["--scenario", self.case.scenarios[0]]].concat());
        let audits = audits["runs"].as_array().expect("runs");
        let tests: Vec<&Value> = audits.iter().map(|run| &run["test"]).collect();
        assert_eq!(tests, expected, "{audits:#?}");
        let audit = &audits[0];
        assert_eq!(
            (&audit["test"], &audit["audit"]["fault"]),
            (&json!("TEST01"), &Value::Null),
            "{audit:#}"
        );
        let responses = &audit["audit"]["responses"];
        let is_compared = responses["compared"].as_u64() > Some(0);
        assert!(is_compared && responses["differing"] == 0, "{responses}");
        self.compared += 1;
    }

    /// Stages a tree, which has an accuracy text with the script's line for each scenario and a verdict on responses for each audit, and has the round's official checker
    /// read it.
    ///
    /// # Panics
    /// Panics when the tree lacks one of them, or when the checker reports more than that the runs are short.
    pub fn stage(&self, line: &str) {
        let tree = self.lab.workspace().join("tree");
        let words = ["submission", "stage", "--rehearsal", "--round", self.case.round];
        let mut stage = self.lab.regatta();
        let staged = stage.args(words).arg("--output").arg(&tree).output();
        let staged = staged.expect("regatta starts");
        assert!(staged.status.success(), "{}", printed(&staged));
        let files = tree::files(&tree);
        let is_text = |path: &str| path.ends_with("/accuracy/accuracy.txt") && !path.contains("/TEST");
        let texts: Vec<_> = files.iter().filter(|(path, _)| is_text(path)).collect();
        assert_eq!(texts.len(), self.case.scenarios.len(), "{:?}", files.keys());
        for (path, text) in texts {
            assert!(path.contains(&format!("/{}/", self.case.model)), "{path}");
            let text = String::from_utf8_lossy(text);
            assert!(text.contains(line), "{path}: {text}");
        }
        let verdicts = files.keys().filter(|path| path.ends_with("/verify_accuracy.txt"));
        assert_eq!(verdicts.count(), self.compared, "{:?}", files.keys());
        let _ = self.lab.officially_checked(&tree, self.case.round);
    }
}

/// Copies a plug-in and its description.
fn copy_plugin(plugin: &Path, directory: &Path) {
    for extension in ["so", "json"] {
        let file = plugin.with_extension(extension);
        let name = file.file_name().expect("a name");
        let _ = fs::copy(&file, directory.join(name)).expect("the plug-in");
    }
}
