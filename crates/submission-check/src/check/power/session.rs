//! A session's descriptions, `client.json` and `server.json`, and the result types of its checks.

use std::{
    cell::{OnceCell, RefCell},
    collections::BTreeMap,
};

use regatta_catalogue::round::PowerRules;
use serde_json::{Map, Value};

use super::{check_failure::CheckFailure, ptd_log, samples::RunWindow};
use crate::{check::run_log::RunLog, tree::Tree};

/// The largest description that is read, in bytes. Those of the client and server are shorter.
pub(super) const MAX: u64 = 64 << 20;
/// The fields that both descriptions must have.
const FIELDS: [&str; 9] = [
    "version",
    "timezone",
    "modules",
    "sources",
    "messages",
    "uuid",
    "session_name",
    "results",
    "phases",
];

/// A finding of one check.
#[derive(Debug)]
pub(super) enum SessionFinding {
    /// The check passes with this warning.
    Warning(String),
    /// The check fails for this reason.
    Fault(String),
}

impl From<CheckFailure> for SessionFinding {
    fn from(CheckFailure(reason): CheckFailure) -> Self {
        Self::Fault(reason)
    }
}

impl From<String> for SessionFinding {
    fn from(reason: String) -> Self {
        Self::Fault(reason)
    }
}

impl From<&str> for SessionFinding {
    fn from(reason: &str) -> Self {
        Self::Fault(reason.to_owned())
    }
}

/// The verdict of a check.
pub(super) type CheckResult = Result<(), SessionFinding>;

/// Logs of a session that the caller has already read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SessionLogs<'a> {
    /// The ranging run's detail log.
    pub(crate) ranging: Option<&'a RunLog>,
    /// The testing run's detail log.
    pub(crate) run: Option<&'a RunLog>,
    /// The SHA-1 of the testing run's `spl.txt`.
    pub(crate) samples_sha1: Option<&'a str>,
}

/// A measured session.
pub(super) struct Session<'a> {
    pub(super) tree: &'a Tree,
    directory: &'a str,
    pub(super) rules: &'a PowerRules,
    pub(super) client: Map<String, Value>,
    pub(super) server: Map<String, Value>,
    ranging: Window,
    run: Window,
    /// PTDaemon's log, read on first use.
    ptd_log: OnceCell<Result<ptd_log::Log<'a>, CheckFailure>>,
    /// Hashes of files that were read completely.
    sha1: RefCell<BTreeMap<String, String>>,
    /// The findings in PTDaemon's log that the official program overlooks, by line, if the caller requests them.
    pub(super) overlooked: Option<RefCell<Vec<(u64, String)>>>,
}

/// LoadGen's timestamps of a run's begin and end.
#[derive(Debug, Clone)]
pub(super) struct LoadGenWindow {
    pub(super) begin: String,
    pub(super) end: String,
}

impl LoadGenWindow {
    pub(super) fn as_run_window(&self) -> RunWindow<'_> {
        RunWindow {
            begin: &self.begin,
            end: &self.end,
        }
    }
}

/// The window of a run, or the reason why it is missing.
type Window = Result<LoadGenWindow, CheckFailure>;

impl<'a> Session<'a> {
    /// Reads both descriptions, and the runs' logs that the caller has not read.
    pub(super) fn read(
        tree: &'a Tree,
        directory: &'a str,
        rules: &'a PowerRules,
        known: SessionLogs<'_>,
    ) -> Result<Self, CheckFailure> {
        let mut session = Self {
            tree,
            directory,
            rules,
            client: Map::new(),
            server: Map::new(),
            ranging: Err(CheckFailure::from("")),
            run: Err(CheckFailure::from("")),
            ptd_log: OnceCell::new(),
            sha1: RefCell::default(),
            overlooked: None,
        };
        session.client = session.description("power/client.json")?;
        session.server = session.description("power/server.json")?;
        session.ranging = session.stamps("ranging", known.ranging);
        session.run = session.stamps("run_1", known.run);
        if let Some(sha1) = known.samples_sha1 {
            session.keep_sha1("run_1/spl.txt", sha1);
        }
        Ok(session)
    }

    fn description(&self, name: &str) -> Result<Map<String, Value>, CheckFailure> {
        let bytes = self
            .tree
            .read(&self.at(name), MAX)
            .map_err(|error| format!("{name} cannot be read: {error}"))?;
        let description: Map<String, Value> = serde_json::from_slice(&bytes)
            .map_err(|error| format!("{name} is not a JSON object: {error}"))?;
        let missing: Vec<_> = FIELDS
            .into_iter()
            .filter(|field| !description.contains_key(*field))
            .collect();
        if missing.is_empty() {
            Ok(description)
        } else {
            Err(format!("{name} has no {}", missing.join(", ")).into())
        }
    }

    /// Returns PTDaemon's log, or the reason why it cannot be used.
    pub(super) fn ptd_log(&self) -> Result<&ptd_log::Log<'a>, CheckFailure> {
        let log = self.ptd_log.get_or_init(|| ptd_log::Log::read(self));
        log.as_ref().map_err(Clone::clone)
    }

    /// Stores the hash of a file that was read completely.
    pub(super) fn keep_sha1(&self, name: &str, sha1: &str) {
        let mut known = self.sha1.borrow_mut();
        known.insert(name.to_owned(), sha1.to_owned());
    }

    /// Returns the hash of a file that was read completely.
    pub(super) fn known_sha1(&self, name: &str) -> Option<String> {
        self.sha1.borrow().get(name).cloned()
    }

    /// Returns the path in the tree of a file of the session.
    pub(super) fn at(&self, name: &str) -> String {
        if self.directory.is_empty() {
            name.to_owned()
        } else {
            format!("{}/{name}", self.directory)
        }
    }

    /// Returns LoadGen's timestamps of the begin and end of the ranging or the testing run.
    pub(super) fn window(&self, run: &str) -> Window {
        match run {
            "ranging" => self.ranging.clone(),
            _ => self.run.clone(),
        }
    }

    fn stamps(&self, run: &str, log: Option<&RunLog>) -> Window {
        let name = format!("{run}/mlperf_log_detail.txt");
        let own;
        let log = if let Some(log) = log {
            log
        } else {
            let read = RunLog::read_hashed(self.tree, &self.at(&name));
            own = read.map_err(|error| format!("{name}: {}", error.0))?;
            &own
        };
        if let Some(sha1) = &log.sha1 {
            self.keep_sha1(&name, sha1);
        }
        let stamp = |key: &str| {
            let text = log.text(key).map(str::to_owned);
            text.ok_or_else(|| format!("{name} has no {key}"))
        };
        Ok(LoadGenWindow {
            begin: stamp("power_begin")?,
            end: stamp("power_end")?,
        })
    }
}

pub(super) fn list<'a>(
    description: &'a Map<String, Value>,
    field: &str,
) -> Result<&'a [Value], CheckFailure> {
    match description.get(field) {
        Some(Value::Array(list)) => Ok(list),
        _ => Err(format!("{field} is not a list").into()),
    }
}

pub(super) fn text<'a>(object: &'a Value, field: &str) -> Result<&'a str, CheckFailure> {
    let text = object.get(field).and_then(Value::as_str);
    text.ok_or_else(|| format!("{field} is missing, or no text").into())
}
