//! The request for one LoadGen run, which both LoadGens honour: conf texts and the few settings that no conf key sets.

use std::{path::PathBuf, time::Duration};

use regatta_loadgen_conf::{Conf, ConfError, ConfKind, ConfWarning, SettingSources, TestSettings};
use regatta_types::{Mode, Scenario};

use crate::{rng::RngAbi, timing::TimingRequest};

/// One run of LoadGen.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRequest {
    /// The model's name in conf files, for example `resnet50`.
    pub model: String,
    /// The scenario.
    pub scenario: Scenario,
    /// The mode; `audit_config` may change it.
    pub mode: Mode,
    /// Replaces the official conf that is compiled into LoadGen. The official LoadGen uses its own, and refuses a run whose text here
    /// has other values. An official LoadGen without a compiled-in conf reads this text.
    pub mlperf_conf: Option<ConfText>,
    /// The user's settings.
    pub user_conf: Option<ConfText>,
    /// A compliance test's settings. The working directory is never searched for one.
    pub audit_config: Option<ConfText>,
    /// Settings that replace values of the conf files, as a harness sets fields after `FromConfig`.
    pub overrides: Overrides,
    /// Where the logs go.
    pub logs: LogSettings,
    /// The C++ library whose random numbers the native LoadGen draws. The official one ignores it and uses the numbers of its build.
    pub rng_abi: RngAbi,
    /// How queries are issued. The official LoadGen always sleeps while it waits.
    pub issue: IssueSettings,
}

impl RunRequest {
    /// Creates a request with LoadGen's defaults whose logs go to `log_dir`.
    #[must_use]
    pub fn new(model: &str, scenario: Scenario, mode: Mode, log_dir: impl Into<PathBuf>) -> Self {
        Self {
            model: model.to_owned(),
            scenario,
            mode,
            mlperf_conf: None,
            user_conf: None,
            audit_config: None,
            overrides: Overrides::default(),
            logs: LogSettings::in_dir(log_dir),
            rng_abi: RngAbi::default(),
            issue: IssueSettings::default(),
        }
    }

    /// Resolves the settings in LoadGen's order: defaults, `mlperf.conf`, `user.conf`, overrides, `audit.config`, and the TEST05 seeds
    /// last.
    ///
    /// # Errors
    /// When a conf text cannot be parsed.
    pub fn resolve(&self) -> Result<ResolvedSettings, ConfError> {
        let mut resolved = ResolvedSettings {
            settings: TestSettings::new(self.scenario, self.mode),
            logs_tokens: false,
            audited: self.audit_config.is_some(),
            warnings: Vec::new(),
            sources: SettingSources::default(),
        };
        resolved.apply(self, self.mlperf_conf.as_ref(), ConfKind::Mlperf)?;
        resolved.apply(self, self.user_conf.as_ref(), ConfKind::User)?;
        self.overrides.apply(&mut resolved.settings);
        for key in self.overrides.keys() {
            resolved.sources.remove(key);
        }
        let before_audit = resolved.settings.clone();
        resolved.logs_tokens = before_audit.use_token_latencies;
        resolved.apply(self, self.audit_config.as_ref(), ConfKind::Audit)?;
        let settings = &mut resolved.settings;
        if settings.test05 {
            settings.mode = Mode::PerformanceOnly;
            settings.qsl_rng_seed = before_audit.test05_qsl_rng_seed;
            settings.sample_index_rng_seed = before_audit.test05_sample_index_rng_seed;
            settings.schedule_rng_seed = before_audit.test05_schedule_rng_seed;
        }
        Ok(resolved)
    }
}

/// The resolved settings of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedSettings {
    /// The settings that the log lists under `requested_`.
    pub settings: TestSettings,
    /// Whether token counts go to the accuracy log. LoadGen decides this before it reads `audit.config`.
    pub logs_tokens: bool,
    /// Whether the request has an `audit.config`.
    pub audited: bool,
    /// Conf entries without effect.
    pub warnings: Vec<ConfWarning>,
    /// The lines that set the settings.
    pub sources: SettingSources,
}

impl ResolvedSettings {
    fn apply(
        &mut self,
        request: &RunRequest,
        text: Option<&ConfText>,
        kind: ConfKind,
    ) -> Result<(), ConfError> {
        let Some(text) = text else { return Ok(()) };
        let conf = text.parse()?;
        self.sources.add(&conf, kind, &request.model, request.scenario);
        self.warnings
            .extend(self.settings.apply(&conf, kind, &request.model)?);
        Ok(())
    }

    /// Returns the warnings for the user: conf entries without effect, and settings that prove little.
    #[must_use]
    pub fn all_warnings(&self) -> Vec<String> {
        let entries = self.warnings.iter().map(ToString::to_string);
        entries.chain(self.settings.warnings()).collect()
    }
}

/// A conf file's text, with its name for errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfText {
    /// The file's name, for errors.
    pub name: String,
    /// Its text.
    pub text: String,
}

impl ConfText {
    /// Creates a conf text.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
        }
    }

    fn parse(&self) -> Result<Conf, ConfError> {
        Conf::parse(&self.name, &self.text)
    }
}

/// Settings that replace values of conf files. `None` leaves a setting unchanged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    /// Minimum duration.
    pub min_duration: Option<Duration>,
    /// Duration after which the run ends early.
    pub max_duration: Option<Duration>,
    /// Minimum number of queries (Offline: samples).
    pub min_query_count: Option<u64>,
    /// Number of queries after which the run ends early.
    pub max_query_count: Option<u64>,
    /// Server: number of issuing threads. No conf key sets this.
    pub server_issue_threads: Option<u64>,
    /// FindPeakPerformance: decimals of precision at which the search ends. No conf key sets this.
    pub find_peak_decimals: Option<i32>,
    /// FindPeakPerformance: growth of the upper bound per step. No conf key sets this.
    pub find_peak_step: Option<f64>,
}

impl Overrides {
    /// Returns the conf keys of the replaced settings.
    fn keys(&self) -> impl Iterator<Item = &'static str> {
        [
            ("min_duration", self.min_duration.is_some()),
            ("max_duration", self.max_duration.is_some()),
            ("min_query_count", self.min_query_count.is_some()),
            ("max_query_count", self.max_query_count.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, is_replaced)| is_replaced.then_some(key))
    }

    /// Writes the overrides into `settings`. Durations are truncated to whole milliseconds, LoadGen's unit.
    pub fn apply(&self, settings: &mut TestSettings) {
        fn set<T: Copy>(setting: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *setting = value;
            }
        }
        let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        set(&mut settings.min_duration_ms, self.min_duration.map(millis));
        set(&mut settings.max_duration_ms, self.max_duration.map(millis));
        set(&mut settings.min_query_count, self.min_query_count);
        set(&mut settings.max_query_count, self.max_query_count);
        set(
            &mut settings.server_num_issue_query_threads,
            self.server_issue_threads,
        );
        set(
            &mut settings.server_find_peak_qps_decimals_of_precision,
            self.find_peak_decimals,
        );
        set(
            &mut settings.server_find_peak_qps_boundary_step_size,
            self.find_peak_step,
        );
    }
}

/// Where and how logs are written (LoadGen `LogSettings`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// The directory; it must exist.
    pub dir: PathBuf,
    /// File name part before `summary.txt`, `detail.txt` and the others.
    pub prefix: String,
    /// File name part between `summary` and `.txt`.
    pub suffix: String,
    /// Whether `mlperf_log_trace.json` is written. It costs memory for every sample.
    pub trace: bool,
    /// When responses are written to the accuracy log of a performance run.
    pub timing: LogTiming,
}

impl LogSettings {
    /// Returns the official file names in `dir`, without a trace and without writing in the timed window.
    #[must_use]
    pub fn in_dir(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            prefix: "mlperf_log_".to_owned(),
            suffix: String::new(),
            trace: false,
            timing: LogTiming::AfterWindow,
        }
    }

    /// Returns the path of a log file. `kind` is `summary`, `detail`, `accuracy` or `trace`.
    #[must_use]
    pub fn path(&self, kind: &str) -> PathBuf {
        let extension = if matches!(kind, "accuracy" | "trace") {
            "json"
        } else {
            "txt"
        };
        self.dir
            .join(format!("{}{kind}{}.{extension}", self.prefix, self.suffix))
    }
}

/// When a performance run writes the responses that it logs. An accuracy run always writes them at once, as its responses may not fit into
/// memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogTiming {
    /// In memory until the timed window ends, then written.
    AfterWindow,
    /// Written as they arrive.
    AtOnce,
}

/// How queries are issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueSettings {
    /// What the issuing thread does while it waits.
    pub wait: Wait,
    /// The run ends and is invalid when responses are due and none arrives for this long. `None` waits for ever, as the official
    /// LoadGen does.
    pub stall_timeout: Option<Duration>,
    /// How each issuing thread runs during the timed window.
    pub timing: TimingRequest,
}

impl Default for IssueSettings {
    fn default() -> Self {
        Self {
            wait: Wait::Block,
            stall_timeout: Some(Duration::from_secs(1800)),
            timing: TimingRequest::default(),
        }
    }
}

/// What a thread does while it waits for responses or for a query's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Sleeps, as the official LoadGen does.
    Block,
    /// Spins on its processor. It reacts one wake-up sooner and occupies one processor.
    Spin,
}
