//! `CAMPAIGN.toml`: the runs of a campaign, in the terms of `regatta run`, and on which devices.
//!
//! ```toml
//! schema = 1
//! name = "weekend"
//! seed = 7
//! deadline = "60h"
//!
//! [[cells]]
//! labels = ["orin-nx"]
//! placement = "each"
//! benchmark = "resnet50"
//! scenario = ["SingleStream", "Offline"]
//! engine = "tensorrt"
//! state = ["MaxP", "MaxQ"]
//! settings = [
//!     { name = "small", set = { gpu_batch_size = "4" } },
//!     { name = "large", set = { gpu_batch_size = "64" } },
//! ]
//! repeat = 3
//! ```
//!
//! This module does not read devices or benchmarks; [`super::expansion`] does.

use std::{collections::BTreeMap, ops::Range};

use jiff::Timestamp;
use regatta_fsutil::hash::sha256_hex;
use regatta_text::HumanDuration;
use regatta_types::documents::{EngineKind, RunTask};
use serde::Deserialize;
use toml::Spanned;

use crate::{
    runs::{GateWords, NO_SYSTEM, StateWords, Words, spanned_words},
    store::Placement,
};

/// The newest schema number that this program reads.
const SCHEMA: u16 = 1;
/// The longest name of a campaign.
const LONGEST_NAME: usize = 63;

/// A problem in a plan, with its line if it has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", .line.map_or_else(String::new, |line| format!("line {line}: ")))]
pub(crate) struct PlanProblem {
    /// The line, from 1.
    pub(crate) line: Option<usize>,
    /// The problem and its cause.
    pub(crate) what: String,
    /// The remedy.
    pub(crate) hint: Option<String>,
}

impl PlanProblem {
    /// A problem that belongs to no line.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self {
            line: None,
            what: what.into(),
            hint: None,
        }
    }

    /// Adds a remedy.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The time after which no attempt begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deadline {
    /// At this time.
    At(Timestamp),
    /// This long after the start.
    After(HumanDuration),
}

/// The settings of one variant, which are added to those of its cells.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variant {
    /// Its name.
    pub(crate) name: String,
    /// Engine settings.
    #[serde(default)]
    pub(crate) set: BTreeMap<String, String>,
    /// Lines for `user.conf`.
    #[serde(default)]
    pub(crate) conf: BTreeMap<String, String>,
}

/// One `[[cells]]`: a cell for each scenario, mode, state, variant and repetition.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellTable {
    /// Devices by name or id; `all` is every device.
    #[serde(default, deserialize_with = "spanned_words")]
    pub(crate) devices: Vec<Spanned<String>>,
    /// Labels of devices.
    #[serde(default, deserialize_with = "spanned_words")]
    pub(crate) labels: Vec<Spanned<String>>,
    #[serde(default)]
    placement: Option<Spanned<String>>,
    /// What the cells do instead of a measurement.
    #[serde(default)]
    task: Option<Spanned<RunTask>>,
    /// The benchmark's name or alias.
    pub(crate) benchmark: Spanned<String>,
    /// Scenarios.
    #[serde(deserialize_with = "spanned_words")]
    pub(crate) scenario: Vec<Spanned<String>>,
    /// Modes. The default is PerformanceOnly.
    #[serde(default, deserialize_with = "spanned_words")]
    pub(crate) mode: Vec<Spanned<String>>,
    /// Device states. The default leaves the device as it is.
    #[serde(default)]
    pub(crate) state: Vec<StateWords>,
    /// Variants of the settings.
    #[serde(default)]
    pub(crate) settings: Vec<Spanned<Variant>>,
    /// Compliance tests of every VALID performance run.
    #[serde(default, deserialize_with = "spanned_words")]
    pub(crate) audits: Vec<Spanned<String>>,
    /// The meter of a power session after every good performance run.
    #[serde(default)]
    pub(crate) power: Option<Spanned<String>>,
    /// How often each is run.
    #[serde(default)]
    pub(crate) repeat: Option<Spanned<u64>>,
    /// Higher ones come first.
    #[serde(default)]
    pub(crate) priority: i32,
    /// The round; the newest by default.
    #[serde(default)]
    pub(crate) round: Option<String>,
    #[serde(default)]
    engine: Option<String>,
    #[serde(default)]
    loadgen: Option<String>,
    #[serde(default)]
    test_run: bool,
    #[serde(default)]
    duration: Option<String>,
    #[serde(default)]
    stream: Option<String>,
    #[serde(default)]
    system: Option<String>,
    #[serde(default)]
    set: BTreeMap<String, String>,
    #[serde(default)]
    conf: BTreeMap<String, String>,
    #[serde(default)]
    asset: Vec<String>,
    /// What must hold on a device before a run starts, instead of the plan's gate.
    #[serde(default)]
    gate: Option<Spanned<GateWords>>,
    /// How long a device may have a run, instead of the plan's limit.
    #[serde(default)]
    run_limit: Option<Spanned<String>>,
}

impl CellTable {
    /// Returns the words of the cells without scenario, mode, state and variant.
    pub(crate) fn common_words(&self) -> Words {
        Words {
            device: None,
            benchmark: self.benchmark.get_ref().clone(),
            scenario: Vec::new(),
            mode: Vec::new(),
            round: self.round.clone(),
            engine: match self.task() {
                RunTask::EngineBuild => self
                    .engine
                    .clone()
                    .or_else(|| Some(EngineKind::Tensorrt.to_string())),
                RunTask::Measurement | RunTask::AssetFetch | RunTask::Tune => self.engine.clone(),
            },
            loadgen: self.loadgen.clone(),
            test_run: self.test_run,
            duration: self.duration.clone(),
            stream: self.stream.clone(),
            system: match self.task() {
                // The values of a system would stay fixed in the search.
                RunTask::Tune => self.system.clone().or_else(|| Some(NO_SYSTEM.to_owned())),
                _ => self.system.clone(),
            },
            set: self.set.clone(),
            conf: self.conf.clone(),
            state: None,
            asset: self.asset.clone(),
            gate: self.gate.as_ref().map(|gate| gate.get_ref().clone()),
            limit: self.run_limit.as_ref().map(|limit| limit.get_ref().clone()),
            task: self.task(),
        }
    }

    /// What the cells do.
    pub(crate) fn task(&self) -> RunTask {
        self.task
            .as_ref()
            .map_or(RunTask::Measurement, |task| *task.get_ref())
    }

    /// Returns the first key that cells with a task that measures nothing do not have.
    fn superfluous_key(&self) -> Option<&'static str> {
        let keys = [
            ("placement", self.placement.is_some()),
            ("mode", !self.mode.is_empty()),
            ("audits", !self.audits.is_empty()),
            ("power", self.power.is_some()),
            ("repeat", self.repeat.is_some()),
            ("test_run", self.test_run),
            (
                "duration",
                self.duration.is_some() && self.task() != RunTask::Tune,
            ),
            ("conf", !self.conf.is_empty()),
        ];
        keys.into_iter()
            .find(|(_, is_there)| *is_there)
            .map(|(key, _)| key)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: Spanned<u16>,
    name: Spanned<String>,
    #[serde(default)]
    seed: u32,
    #[serde(default)]
    deadline: Option<Spanned<toml::Value>>,
    #[serde(default = "two")]
    retries: u16,
    #[serde(default = "two")]
    rate_retries: u16,
    #[serde(default)]
    lose_device_after: Option<Spanned<String>>,
    #[serde(default)]
    gate: Option<Spanned<GateWords>>,
    #[serde(default)]
    run_limit: Option<Spanned<String>>,
    #[serde(default)]
    software: SoftwareRule,
    #[serde(default)]
    cells: Vec<Spanned<CellTable>>,
}

/// Which software a device may have during a campaign.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SoftwareRule {
    /// The same as when the campaign began.
    #[default]
    Same,
    /// Any.
    Any,
}

const fn two() -> u16 {
    2
}

/// The time after which an absent device counts as lost, unless a plan has another.
const LOSE_AFTER_S: u64 = 600;

/// A plan that has been read.
#[derive(Debug)]
pub(crate) struct CampaignPlan {
    /// The campaign's name.
    pub(crate) name: String,
    /// The file's text.
    pub(crate) text: String,
    /// SHA-256 of the text.
    pub(crate) sha256: String,
    /// The seed of the order.
    pub(crate) seed: u64,
    /// The time after which no attempt begins.
    pub(crate) deadline: Option<Deadline>,
    /// Further attempts after causes of a device or of the infrastructure.
    pub(crate) retries: u64,
    /// Further attempts at a measured rate.
    pub(crate) rate_retries: u64,
    /// The absence in seconds after which a device counts as lost.
    pub(crate) lose_after_s: u64,
    /// Whether devices must keep their software until the campaign ends.
    pub(crate) pins_software: bool,
    /// The tables, with their places in the text.
    pub(crate) cells: Vec<Spanned<CellTable>>,
    deadline_span: Option<Range<usize>>,
}

impl CampaignPlan {
    /// Reads a plan.
    ///
    /// # Errors
    /// Returns [`PlanProblem`] for the first problem.
    pub(crate) fn read(text: &str) -> Result<Self, PlanProblem> {
        let mut file: File = toml::from_str(text).map_err(|error| PlanProblem {
            line: error.span().map(|span| line_at(text, span.start)),
            what: error.message().replace('\n', ", "),
            hint: None,
        })?;
        let at = |span: Range<usize>, what: String| PlanProblem {
            line: Some(line_at(text, span.start)),
            what,
            hint: None,
        };
        if *file.schema.get_ref() > SCHEMA {
            let what = format!(
                "the plan has schema {}; this program reads up to {SCHEMA}",
                file.schema.get_ref()
            );
            return Err(at(file.schema.span(), what).hint("use a newer regatta"));
        }
        if !is_name(file.name.get_ref()) {
            let what = format!(
                "`{}` is no name of a campaign: a name has 1 to {LONGEST_NAME} letters, digits, dots, underscores and hyphens, and \
                 begins with a letter or digit",
                file.name.get_ref()
            );
            return Err(at(file.name.span(), what));
        }
        if file.cells.is_empty() {
            return Err(PlanProblem::new("the plan has no [[cells]]"));
        }
        let deadline_span = file.deadline.as_ref().map(Spanned::span);
        let deadline = file.deadline.map(|value| {
            let span = value.span();
            deadline(value.get_ref()).map_err(|what| at(span, what))
        });
        let lose_after_s = match file.lose_device_after {
            None => LOSE_AFTER_S,
            Some(text) => {
                let duration: Result<HumanDuration, _> = text.get_ref().parse();
                let duration = duration.map_err(|error| at(text.span(), error.to_string()))?;
                duration.millis().div_ceil(1_000)
            }
        };
        let gates = file
            .cells
            .iter()
            .filter_map(|table| table.get_ref().gate.as_ref());
        for gate in file.gate.iter().chain(gates) {
            if let Err(error) = gate.get_ref().resolve() {
                return Err(at(gate.span(), error.to_string()));
            }
        }
        let limits = file
            .cells
            .iter()
            .filter_map(|table| table.get_ref().run_limit.as_ref());
        for limit in file.run_limit.iter().chain(limits) {
            if let Err(error) = limit.get_ref().parse::<HumanDuration>() {
                return Err(at(limit.span(), error.to_string()));
            }
        }
        for table in &mut file.cells {
            let own = table.get_mut();
            own.gate = own.gate.take().or_else(|| file.gate.clone());
            own.run_limit = own.run_limit.take().or_else(|| file.run_limit.clone());
        }
        Ok(Self {
            name: file.name.into_inner(),
            text: text.to_owned(),
            sha256: sha256_hex(text.as_bytes()),
            seed: u64::from(file.seed),
            deadline: deadline.transpose()?,
            retries: u64::from(file.retries),
            rate_retries: u64::from(file.rate_retries),
            lose_after_s,
            pins_software: file.software == SoftwareRule::Same,
            cells: file.cells,
            deadline_span,
        })
    }

    /// A problem at a place of the text.
    pub(crate) fn problem(&self, span: &Range<usize>, what: impl Into<String>) -> PlanProblem {
        PlanProblem {
            line: Some(line_at(&self.text, span.start)),
            what: what.into(),
            hint: None,
        }
    }

    /// Returns when attempts cease to begin, for a start at `now`.
    ///
    /// # Errors
    /// Returns [`PlanProblem`] when that time has passed, or is beyond the calendar.
    pub(crate) fn deadline_from(&self, now: Timestamp) -> Result<Option<Timestamp>, PlanProblem> {
        let problem = |what: String| match &self.deadline_span {
            Some(span) => self.problem(span, what),
            None => PlanProblem::new(what),
        };
        match self.deadline {
            None => Ok(None),
            Some(Deadline::At(at)) if at <= now => {
                Err(problem(format!("the deadline {at} has passed; it is {now} now"))
                    .hint("write a later time, or a duration such as \"60h\""))
            }
            Some(Deadline::At(at)) => Ok(Some(at)),
            Some(Deadline::After(duration)) => {
                let millis = i64::try_from(duration.millis()).unwrap_or(i64::MAX);
                let end = now.checked_add(jiff::SignedDuration::from_millis(millis));
                end.map(Some)
                    .map_err(|_| problem(format!("a deadline of {duration} is beyond the calendar")))
            }
        }
    }
}

/// Returns the placement of a table's cells. Tasks that measure nothing are for every device.
///
/// # Errors
/// Returns [`PlanProblem`] for an unknown word, and for a key that means nothing to such a task.
pub(crate) fn placement(plan: &CampaignPlan, table: &CellTable) -> Result<Placement, PlanProblem> {
    if let Some(task) = table
        .task
        .as_ref()
        .filter(|task| !task.get_ref().is_measurement())
    {
        let name = task.get_ref().as_str();
        return match table.superfluous_key() {
            None => Ok(Placement::Each),
            Some(key) => Err(plan
                .problem(
                    &task.span(),
                    format!("cells with the task `{name}` have no `{key}`"),
                )
                .hint("they are done once on each device, and measure nothing")),
        };
    }
    match &table.placement {
        None => Ok(Placement::Any),
        Some(word) => word
            .get_ref()
            .parse()
            .map_err(|error: regatta_types::UnknownWord| plan.problem(&word.span(), error.to_string())),
    }
}

fn deadline(value: &toml::Value) -> Result<Deadline, String> {
    let text = match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Datetime(time) => time.to_string(),
        other => other.to_string(),
    };
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(Deadline::At(at));
    }
    text.parse().map(Deadline::After).map_err(|_| {
        format!(
            "the deadline `{text}` is neither a time such as \"2026-11-30T08:00:00Z\" nor a duration such as \"60h\""
        )
    })
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=LONGEST_NAME).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_part)
}

/// The number of the line with a byte.
fn line_at(text: &str, byte: usize) -> usize {
    let before = text.as_bytes().iter().take(byte);
    before.filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CELLS: &str = "[[cells]]\nbenchmark = 'digits'\nscenario = ['Offline']\n";

    fn problem(head: &str) -> String {
        CampaignPlan::read(&format!("schema = 1\n{head}{CELLS}"))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_plan_has_defaults_and_a_hash() {
        let plan = CampaignPlan::read(&format!("schema = 1\nname = 'weekend'\n{CELLS}")).unwrap();
        assert_eq!((plan.retries, plan.rate_retries, plan.lose_after_s), (2, 2, 600));
        assert_eq!(plan.sha256.len(), 64);
        assert_eq!(placement(&plan, plan.cells[0].get_ref()).unwrap(), Placement::Any);
        assert_eq!(plan.deadline_from(Timestamp::UNIX_EPOCH).unwrap(), None);
    }

    #[test]
    fn the_example_is_a_plan() {
        let plan = CampaignPlan::read(include_str!("../../../configs/examples/campaign.toml")).unwrap();
        assert_eq!((plan.name.as_str(), plan.cells.len()), ("weekend", 1));
    }

    #[test]
    fn problems_have_their_line() {
        for (head, expected) in [
            (
                "name = 'a b'\n",
                "line 2: `a b` is no name of a campaign: a name has",
            ),
            ("name = 'a'\nseed = -1\n", "line 3: "),
            ("name = 'a'\nsed = 1\n", "line 3: unknown field `sed`"),
            (
                "name = 'a'\ndeadline = 'soon'\n",
                "line 3: the deadline `soon` is neither",
            ),
            (
                "name = 'a'\n\nlose_device_after = '10'\n",
                "line 4: `10` is not a duration",
            ),
            (
                "name = 'a'\n[gate]\nmax_temperature = 'hot'\n",
                "line 3: `hot` is not a temperature",
            ),
            ("name = 'a'\nrun_limit = '1'\n", "line 3: `1` is not a duration"),
            (
                "name = 'a'\nsoftware = 'old'\n",
                "line 3: unknown variant `old`, expected `same` or `any`",
            ),
            ("name = 'a'\ngate = { wait = '5m' }\n", "line 3: the gate has no"),
        ] {
            let found = problem(head);
            assert!(found.starts_with(expected), "{found}");
        }
        let newer = CampaignPlan::read("schema = 9\nname = 'a'").unwrap_err();
        assert!(newer.to_string().starts_with("line 1: the plan has schema 9"));
        let empty = CampaignPlan::read("schema = 1\nname = 'a'").unwrap_err();
        assert_eq!(empty.to_string(), "the plan has no [[cells]]");
    }

    #[test]
    fn other_tasks_are_for_each_device_and_have_no_keys_of_measurements() {
        let read = |keys: &str| {
            let plan = CampaignPlan::read(&format!("schema = 1\nname = 'a'\n{CELLS}{keys}")).unwrap();
            let placed = placement(&plan, plan.cells[0].get_ref()).map_err(|problem| problem.to_string());
            (placed, plan.cells[0].get_ref().common_words())
        };
        let (placed, words) = read("task = 'engine-build'\n");
        assert_eq!(placed, Ok(Placement::Each));
        assert_eq!(
            (words.task, words.engine.as_deref()),
            (RunTask::EngineBuild, Some("tensorrt"))
        );
        let (placed, words) = read("task = 'tune'\nduration = '30m'\n");
        assert_eq!(placed, Ok(Placement::Each));
        assert_eq!(
            (words.system.as_deref(), words.duration.as_deref()),
            (Some("none"), Some("30m"))
        );
        for (key, value) in [
            ("mode", "'AccuracyOnly'"),
            ("repeat", "2"),
            ("placement", "'any'"),
            ("audits", "'TEST01'"),
            ("power", "'wt310'"),
            ("duration", "'3s'"),
        ] {
            let (refused, _) = read(&format!("task = 'asset-fetch'\n{key} = {value}\n"));
            let expected = format!("line 6: cells with the task `asset-fetch` have no `{key}`");
            assert_eq!(refused, Err(expected));
        }
        let unknown = problem("name = 'a'\n[[cells]]\nbenchmark = 'a'\nscenario = 'a'\ntask = 'sleep'\n");
        assert!(
            unknown.starts_with("line 6: unknown variant `sleep`"),
            "{unknown}"
        );
    }

    #[test]
    fn a_deadline_is_a_time_or_a_duration() {
        let now: Timestamp = "2026-11-27T18:00:00Z".parse().unwrap();
        let end = |deadline: &str| {
            let text = format!("schema = 1\nname = 'a'\ndeadline = {deadline}\n{CELLS}");
            CampaignPlan::read(&text).unwrap().deadline_from(now)
        };
        let monday: Timestamp = "2026-11-30T06:00:00Z".parse().unwrap();
        assert_eq!(end("'60h'").unwrap(), Some(monday));
        assert_eq!(end("2026-11-30T06:00:00Z").unwrap(), Some(monday));
        assert_eq!(end("'2026-11-30T06:00:00Z'").unwrap(), Some(monday));
        let passed = end("'2026-11-01T00:00:00Z'").unwrap_err();
        assert!(
            passed
                .to_string()
                .starts_with("line 3: the deadline 2026-11-01T00:00:00Z has passed")
        );
        let beyond = end("'99999999d'").unwrap_err().to_string();
        assert!(beyond.ends_with("is beyond the calendar"), "{beyond}");
    }

    #[test]
    fn one_word_needs_no_brackets_and_has_its_line() {
        let read = |scenario: &str| {
            CampaignPlan::read(&format!(
                "schema = 1\nname = 'a'\n[[cells]]\nbenchmark = 'digits'\nlabels = 'rack-3'\nscenario = {scenario}\n"
            ))
        };
        let plan = read("'Offline'").unwrap();
        let table = plan.cells[0].get_ref();
        assert_eq!(table.labels[0].get_ref(), "rack-3");
        let [scenario] = table.scenario.as_slice() else {
            panic!("{:?}", table.scenario);
        };
        assert_eq!(scenario.get_ref(), "Offline");
        assert_eq!(plan.problem(&scenario.span(), "").line, Some(6));
        let refused = read("7").unwrap_err().to_string();
        assert_eq!(
            refused,
            "line 6: invalid type: integer `7`, expected a word or a list of words"
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(schema = 1\n)?(name = '[a-z]{0,3}'\n)?(deadline = [0-9TZ:'h-]{0,12}\n)?(\\[\\[cells\\]\\]\n)?.{0,40}") {
            drop(CampaignPlan::read(&text));
        }
    }
}
