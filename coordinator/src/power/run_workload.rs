//! Ordinary runs as the workload of a session: the official client waits while the device runs one, as for every `regatta run`. So state,
//! evidence, signature and delivery apply to the ranging run and to the testing run alike.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use regatta_fsutil::regular_file::{self, LARGEST_TEXT};
use regatta_power::session::{Part, Workload};
use regatta_types::{
    RunId,
    documents::{Attempt, Document as _, Evidence, RunSpec, document_name},
};

use super::{
    machine::Link,
    session_watch::{Observation, SessionWatch},
};
use crate::{
    store::{RunDraft, Store},
    workspace::Workspace,
};

/// The command of the official client: it ends with the code that it reads.
const GATE: &str = "read -r code && exit \"$code\"";
/// The logs that the official client copies.
const LOGS: [&str; 2] = ["mlperf_log_detail.txt", "mlperf_log_summary.txt"];

/// The longest absence of the device's agent while a run is under way.
const LONGEST_ABSENCE: Duration = Duration::from_secs(30);

/// Gives the official client the logs of a part's run, which are in a directory of this machine.
pub(crate) type HandOver<'a> = Box<dyn Fn(Part, &Path) -> io::Result<()> + 'a>;

/// The inputs of a session's workload.
pub(crate) struct RunOrder<'a> {
    /// The store.
    pub(crate) store: &'a Store,
    /// The workspace.
    pub(crate) workspace: &'a Workspace,
    /// The session.
    pub(crate) session: &'a str,
    /// The run that is made twice.
    pub(crate) draft: RunDraft,
    /// The boot of the machine that is measured.
    pub(crate) boot_id: String,
    /// The destination of the logs.
    pub(crate) hand_over: HandOver<'a>,
    /// The machines, watched.
    pub(crate) watch: SessionWatch<'a>,
    /// Whether the user interrupted it.
    pub(crate) interrupted: Arc<AtomicBool>,
}

/// The workload of a session.
pub(crate) struct RunWorkload<'a> {
    order: RunOrder<'a>,
    running: Option<(Part, RunId)>,
    requested: Vec<(&'static str, RunId)>,
    done: Vec<RunId>,
    offline_since: Option<Instant>,
}

impl<'a> RunWorkload<'a> {
    /// Creates the workload.
    pub(crate) fn new(order: RunOrder<'a>) -> Self {
        Self {
            order,
            running: None,
            requested: Vec::new(),
            done: Vec::new(),
            offline_since: None,
        }
    }

    /// Returns the runs that were requested: `ranging` and `testing`.
    pub(crate) fn runs(&self) -> Vec<(&'static str, RunId)> {
        self.requested.clone()
    }

    /// Returns the observations beside the session.
    pub(crate) fn observations(&self) -> Vec<Observation> {
        self.order.watch.observations()
    }

    /// Ends a run that is still under way, because the session has failed.
    pub(crate) fn abort(&self) -> Result<(), crate::store::StoreError> {
        if let Some((_, run)) = self.running {
            self.order
                .store
                .request_abort(run, "its power session has failed")?;
        }
        Ok(())
    }

    /// Requests a run. The testing run has exactly the settings of the ranging run, also those that were estimated for it.
    fn request(&mut self, part: Part) -> Result<(), String> {
        let mut draft = self.order.draft.clone();
        if let Some(ranging) = self.done.first() {
            let path = self.order.workspace.run(*ranging).spec();
            let unreadable =
                |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", path.display());
            let bytes = fs::read(&path).map_err(|error| unreadable(&error))?;
            let spec = RunSpec::from_json(&bytes).map_err(|error| unreadable(&error))?;
            let lines = spec
                .conf
                .user_conf
                .lines()
                .filter(|line| !line.trim_start().starts_with('#'));
            let pairs = lines.filter_map(|line| line.split_once('='));
            draft.user_settings = pairs
                .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
                .collect();
            draft.guesses.clear();
        }
        draft.spec.run = RunId::now();
        let run = draft.spec.run;
        self.order
            .store
            .add_run(&draft)
            .map_err(|error| error.to_string())?;
        let linked = self
            .order
            .store
            .power_session_has_run(self.order.session, part == Part::Ranging, run);
        linked.map_err(|error| error.to_string())?;
        let name = match part {
            Part::Ranging => "ranging",
            Part::Testing => "testing",
        };
        self.requested.push((name, run));
        self.running = Some((part, run));
        Ok(())
    }

    /// Checks in a run's evidence that LoadGen ran on the machine whose energy the meter measures.
    fn expect_measured_machine(&self, part: Part, run: RunId) -> Result<(), String> {
        let path = self.files(run).join(document_name::EVIDENCE);
        let unreadable =
            |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", path.display());
        let bytes = regular_file::read(&path, LARGEST_TEXT).map_err(|error| unreadable(&error))?;
        let evidence = Evidence::from_json(&bytes).map_err(|error| unreadable(&error))?;
        let is_there = |attempt: &Attempt| {
            let clocks = [&attempt.started, &attempt.ended];
            clocks.iter().all(|clock| {
                clock
                    .as_ref()
                    .is_some_and(|clock| clock.boot_id == self.order.boot_id)
            })
        };
        match !evidence.attempts.is_empty() && evidence.attempts.iter().all(is_there) {
            true => Ok(()),
            false => Err(format!(
                "the evidence of the {part} run {run} does not name the boot of the client's machine: the meter measured another \
                 machine, or the device was restarted"
            )),
        }
    }

    fn files(&self, run: RunId) -> PathBuf {
        self.order.workspace.run(run).files()
    }

    /// Checks that the run can still end: the coordinator serves, and the device is online.
    fn expect_progress(&mut self, part: Part, run: RunId) -> Result<(), String> {
        if !self.order.workspace.is_served() {
            return Err("the coordinator has ended; start `regatta serve` again".to_owned());
        }
        let device = self.order.store.device(&self.order.draft.spec.device);
        let device = device.map_err(|error| error.to_string())?;
        if device.is_some_and(|device| device.online) {
            self.offline_since = None;
            return Ok(());
        }
        match self.offline_since.get_or_insert_with(Instant::now).elapsed() > LONGEST_ABSENCE {
            false => Ok(()),
            true => Err(format!(
                "the device's agent was offline for {} s during the {part} run {run}",
                LONGEST_ABSENCE.as_secs()
            )),
        }
    }
}

/// Copies the logs of a run, as they were delivered, into a directory of this machine.
///
/// # Errors
/// Returns the system's error.
pub(crate) fn copy_logs(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for name in LOGS {
        fs::copy(from.join(name), to.join(name))?;
    }
    Ok(())
}

/// Copies the logs of a run to another machine.
///
/// # Errors
/// Returns the error of either side.
pub(crate) fn upload_logs(link: &Link, from: &Path, to: &str) -> io::Result<()> {
    link.files().make_directories(to)?;
    for name in LOGS {
        link.files()
            .copy_from(&from.join(name), &format!("{to}/{name}"))?;
    }
    Ok(())
}

impl Workload for RunWorkload<'_> {
    fn command(&self) -> String {
        GATE.to_owned()
    }

    fn is_interrupted(&self) -> bool {
        self.order.interrupted.load(Ordering::Relaxed)
    }

    fn watch(&mut self) -> Result<(), String> {
        self.order.watch.look()
    }

    fn follow(&mut self, part: Part) -> Result<Option<String>, String> {
        let run = match self.running {
            Some((running, run)) if running == part => run,
            _ => {
                self.request(part)?;
                return Ok(None);
            }
        };
        if self.done.contains(&run) {
            return Ok(None);
        }
        let row = self.order.store.run(run).map_err(|error| error.to_string())?;
        let row = row.ok_or_else(|| format!("run {run} is gone from the store"))?;
        if !row.is_over() {
            self.expect_progress(part, run)?;
            return Ok(None);
        }
        self.done.push(run);
        if !row.is_good() {
            return Err(format!(
                "the {part} run {run} has no good result: `regatta runs show {run}` says why"
            ));
        }
        self.expect_measured_machine(part, run)?;
        let handed = (self.order.hand_over)(part, &self.files(run));
        handed.map_err(|error| format!("the logs of run {run} cannot be given to the client: {error}"))?;
        Ok(Some("0".to_owned()))
    }
}
