//! Draws random settings: conf texts as users and rounds write them, and a library.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use regatta_catalogue::round::{Round, render_conf_lines};
use regatta_loadgen::{
    effective::{EffectiveSettings, LibraryCounts},
    request::{ConfText, RunRequest},
    rng::{Mt19937, RngAbi},
};
use regatta_types::{Mode, Scenario, benchmark::Benchmark};

/// Settings for both LoadGens.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) model: String,
    pub(crate) scenario: Scenario,
    pub(crate) mode: Mode,
    pub(crate) mlperf_conf: String,
    pub(crate) user_conf: String,
    pub(crate) audit_config: Option<String>,
    pub(crate) total: u64,
    pub(crate) performance: u64,
    /// Server: issuing threads besides LoadGen's own; 0 for none.
    pub(crate) issue_threads: u64,
    /// FindPeakPerformance: decimals at which the search ends.
    pub(crate) find_peak_decimals: Option<i32>,
    /// Queries of a series that the SUT answers at once; 0 for all.
    pub(crate) capacity: u64,
    /// How long after the flush it answers the others.
    pub(crate) late_ms: u64,
}

/// Returns the effective settings of a case, before `audit.config`.
pub(crate) fn effective(case: &Case) -> EffectiveSettings {
    let mut request = case.request(Path::new("."));
    request.audit_config = None;
    EffectiveSettings::new(&request.resolve().unwrap().settings, case.library()).0
}

impl Case {
    /// Returns a case without settings.
    pub(crate) fn plain(scenario: Scenario, mode: Mode, total: u64) -> Self {
        Self {
            model: "m".to_owned(),
            scenario,
            mode,
            mlperf_conf: newest_round().render_mlperf_conf(&BTreeMap::new()),
            user_conf: String::new(),
            audit_config: None,
            total,
            performance: total,
            issue_threads: 0,
            find_peak_decimals: None,
            capacity: 0,
            late_ms: 0,
        }
    }

    /// Returns the counts of the library.
    pub(crate) fn library(&self) -> LibraryCounts {
        LibraryCounts {
            total: self.total,
            performance: self.performance,
        }
    }

    /// Removes lines with these keys from `user.conf`.
    pub(crate) fn drop_user_keys(&mut self, keys: &[&str]) {
        let stays = |line: &&str| !keys.iter().any(|key| line.contains(&format!(".{key} = ")));
        self.user_conf = self.user_conf.split_inclusive('\n').filter(stays).collect();
    }

    /// LoadGen's number of the mode.
    pub(crate) fn mode_number(&self) -> usize {
        Mode::ALL.iter().position(|&mode| mode == self.mode).unwrap()
    }

    /// The bundled benchmark as its file describes it, with the newest round's conf.
    pub(crate) fn digits(scenario: Scenario, mode: Mode) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/benchmarks/digits.toml");
        let digits = Benchmark::from_toml(&fs::read_to_string(file).unwrap()).unwrap();
        let mut user_conf = String::new();
        render_conf_lines(&mut user_conf, &digits.user_conf);
        user_conf.push_str("*.*.min_duration = 300\n");
        Self {
            model: digits.loadgen_model,
            mlperf_conf: newest_round().render_mlperf_conf(&digits.mlperf_conf),
            user_conf,
            performance: digits.dataset.performance_samples as u64,
            ..Self::plain(scenario, mode, digits.dataset.total_samples as u64)
        }
    }

    /// Returns the request for our LoadGen.
    pub(crate) fn request(&self, log_dir: &Path) -> RunRequest {
        let text = |name: &str, text: &String| Some(ConfText::new(name, text));
        let mut request = RunRequest::new(&self.model, self.scenario, self.mode, log_dir);
        request.mlperf_conf = text("mlperf.conf", &self.mlperf_conf);
        request.user_conf = text("user.conf", &self.user_conf);
        request.audit_config = self
            .audit_config
            .as_ref()
            .and_then(|audit| text("audit.config", audit));
        request.overrides.server_issue_threads = (self.issue_threads != 0).then_some(self.issue_threads);
        request.overrides.find_peak_decimals = self.find_peak_decimals;
        request
    }
}

/// Draws cases from a seed.
pub(crate) struct Draw {
    generator: Mt19937,
    rounds: Vec<String>,
}

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            generator: Mt19937::new(seed),
            rounds: rounds()
                .iter()
                .map(|round| round.render_mlperf_conf(&BTreeMap::new()))
                .collect(),
        }
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        RngAbi::default().uniform_below(&mut self.generator, bound)
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let index = usize::try_from(self.below(items.len() as u64)).unwrap();
        &items[index]
    }

    fn seed(&mut self) -> u64 {
        self.below(1 << 32) << 32 | self.below(1 << 32)
    }

    /// Draws a case. `longest_ms` bounds the length of a run, so that a test can also execute it.
    pub(crate) fn case(&mut self, longest_ms: u64) -> Case {
        const MODELS: [&str; 10] = [
            "digits",
            "resnet50",
            "bert",
            "3d-unet",
            "gptj",
            "llama3_1-8b-edge",
            "retinanet",
            "whisper",
            "pointpainting",
            "rnnt",
        ];
        let scenario = *self.pick(&Scenario::ALL);
        let model = (*self.pick(&MODELS)).to_owned();
        let mode = *self.pick(&[Mode::AccuracyOnly, Mode::PerformanceOnly, Mode::PerformanceOnly]);
        let total = self.between(1, 3000);
        let performance = if self.one_in(8) {
            self.between(total, 4000)
        } else {
            self.between(1, total)
        };
        let mlperf_conf = self.mlperf_conf();
        let user_conf = self.user_conf(&model, scenario, longest_ms, performance);
        let audit_config = self.one_in(4).then(|| self.audit());
        Case {
            model,
            scenario,
            mode,
            mlperf_conf,
            user_conf,
            audit_config,
            performance,
            ..Case::plain(scenario, mode, total)
        }
    }

    /// Draws a Server case with issuing threads. Nothing ends it early, so every thread issues its whole share. Only the limit on
    /// outstanding queries may, because another thread's answers count before its queries.
    pub(crate) fn threaded_case(&mut self) -> Case {
        let mut case = loop {
            let case = self.case(30);
            if case.scenario == Scenario::Server {
                break case;
            }
        };
        case.drop_user_keys(&[
            "max_query_count",
            "max_duration",
            "max_async_queries",
            "coalesce_queries",
        ]);
        case.issue_threads = self.between(1, 5);
        case
    }

    fn mlperf_conf(&mut self) -> String {
        let rounds = self.rounds.clone();
        let mut text = self.pick(&rounds).clone();
        if self.one_in(2) {
            for key in ["qsl_rng_seed", "sample_index_rng_seed", "schedule_rng_seed"] {
                let seed = self.seed();
                writeln!(text, "*.*.{key} = {seed}").unwrap();
            }
        }
        if self.one_in(6) {
            writeln!(text, "*.*.accuracy_log_probability = {}", self.below(101)).unwrap();
        }
        text
    }

    fn user_conf(&mut self, model: &str, scenario: Scenario, longest_ms: u64, performance: u64) -> String {
        let mut text = String::new();
        let mut set =
            |key: &str, value: String| writeln!(text, "{model}.{scenario}.{key} = {value}").unwrap();
        set("min_duration", self.between(0, longest_ms).to_string());
        set("min_query_count", self.between(1, 600).to_string());
        if self.one_in(4) {
            set("max_query_count", self.between(1, 600).to_string());
        }
        if self.one_in(8) {
            set("max_duration", self.between(0, 2 * longest_ms).to_string());
        }
        if self.one_in(4) {
            set("accuracy_log_rng_seed", self.seed().to_string());
        }
        if self.one_in(6) {
            set("accuracy_log_sampling_target", self.between(1, 4096).to_string());
        }
        if self.one_in(8) {
            set("use_token_latencies", self.below(2).to_string());
        }
        if self.one_in(12) {
            set("infer_token_latencies", "1".to_owned());
            set("token_latency_scaling_factor", self.between(1, 9).to_string());
        }
        match scenario {
            Scenario::SingleStream => set("target_latency", format!("0.{:02}", self.between(5, 99))),
            Scenario::MultiStream => {
                set("target_latency", format!("{}.5", self.below(4)));
                set("samples_per_query", self.between(1, 12).to_string());
            }
            Scenario::Server => {
                set(
                    "target_qps",
                    format!(
                        "{}.25",
                        self.between(if longest_ms < 100 { 2000 } else { 50 }, 20_000)
                    ),
                );
                set("coalesce_queries", self.below(2).to_string());
                if self.one_in(3) {
                    set("max_async_queries", self.below(9).to_string());
                }
                if self.one_in(3) {
                    set("ttft_latency", self.between(1, 5000).to_string());
                    set("tpot_latency", self.between(1, 500).to_string());
                }
            }
            Scenario::Offline => set("target_qps", self.between(1, 20_000).to_string()),
        }
        if self.one_in(2) {
            set(
                "performance_sample_count_override",
                self.between(1, performance).to_string(),
            );
        }
        if self.one_in(4) {
            set(
                "accuracy_sample_count_override",
                self.between(1, 3000).to_string(),
            );
        }
        if self.one_in(3) {
            set("sample_concatenate_permutation", self.below(2).to_string());
        }
        match self.below(8) {
            0 => set("performance_issue_unique", "1".to_owned()),
            1 => {
                set("performance_issue_same", "1".to_owned());
                set(
                    "performance_issue_same_index",
                    self.below(performance.min(40)).to_string(),
                );
            }
            _ => {}
        }
        text
    }

    fn audit(&mut self) -> String {
        let sampling = format!("*.*.accuracy_log_sampling_target = {}", self.between(1, 4096));
        match self.below(3) {
            0 => format!(
                "*.*.mode = 2\n*.*.accuracy_log_rng_seed = {}\n{sampling}\n",
                self.seed()
            ),
            1 => "*.*.mode = 2\n*.*.performance_issue_unique = 0\n*.*.performance_issue_same = 1\n\
                  *.*.performance_issue_same_index = 3\n"
                .to_owned(),
            _ => "*.*.mode = 2\n*.*.test05 = 1\n".to_owned(),
        }
    }
}

fn newest_round() -> Round {
    rounds().pop().unwrap()
}

/// Every round that Regatta knows, the newest last.
fn rounds() -> Vec<Round> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/rounds");
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| Round::from_toml(&fs::read_to_string(file).unwrap()).unwrap())
        .collect()
}
