//! Ordinary runs as the workload of a session: the official client waits while the device runs one, as for every `regatta run`. So state,
//! evidence, signature and delivery apply to the ranging run and to the testing run alike.

use std::{
    fs, io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use regatta_fsutil::regular_file::{self, LARGEST_TEXT};
use regatta_power::session::{Part, Workload};
use regatta_types::{
    RunId,
    documents::{Attempt, Document as _, Evidence, RunSpec, document_name},
};

use crate::{
    boot_id,
    store::{RunDraft, Store},
    workspace::Workspace,
};

/// The command of the official client: it ends when it is told to, with the code that it is told.
const GATE: &str = "read -r code && exit \"$code\"";
/// The logs that the official client copies.
const LOGS: [&str; 2] = ["mlperf_log_detail.txt", "mlperf_log_summary.txt"];

/// The workload of a session.
pub(crate) struct RunWorkload<'a> {
    store: &'a Store,
    workspace: &'a Workspace,
    session: String,
    logs: PathBuf,
    draft: RunDraft,
    running: Option<(Part, RunId)>,
    requested: Vec<(&'static str, RunId)>,
    done: Vec<RunId>,
    interrupted: Arc<AtomicBool>,
}

impl<'a> RunWorkload<'a> {
    /// Creates the workload of `session`: two runs of this draft, whose logs the client gets in the directory `logs`.
    pub(crate) fn new(
        store: &'a Store,
        workspace: &'a Workspace,
        session: &str,
        logs: PathBuf,
        draft: RunDraft,
        interrupted: Arc<AtomicBool>,
    ) -> Self {
        Self {
            store,
            workspace,
            session: session.to_owned(),
            logs,
            draft,
            running: None,
            requested: Vec::new(),
            done: Vec::new(),
            interrupted,
        }
    }

    /// The runs that were requested: `ranging` and `testing`.
    pub(crate) fn runs(&self) -> Vec<(&'static str, RunId)> {
        self.requested.clone()
    }

    /// Ends a run that is still under way, because the session has failed.
    pub(crate) fn abort(&self) -> Result<(), crate::store::StoreError> {
        if let Some((_, run)) = self.running {
            self.store.request_abort(run, "its power session has failed")?;
        }
        Ok(())
    }

    /// Requests a run. The testing run has exactly the settings of the ranging run, also those that were estimated for it.
    fn request(&mut self, part: Part) -> Result<(), String> {
        let mut draft = self.draft.clone();
        if let Some(ranging) = self.done.first() {
            let path = self.workspace.run(*ranging).spec();
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
        self.store.add_run(&draft).map_err(|error| error.to_string())?;
        let linked = self
            .store
            .power_session_has_run(&self.session, part == Part::Ranging, run);
        linked.map_err(|error| error.to_string())?;
        let name = match part {
            Part::Ranging => "ranging",
            Part::Testing => "testing",
        };
        self.requested.push((name, run));
        self.running = Some((part, run));
        Ok(())
    }

    /// Checks in a run's evidence that LoadGen ran on this machine, whose energy the meter measures.
    fn expect_own_machine(&self, part: Part, run: RunId) -> Result<(), String> {
        let path = self.workspace.run(run).files().join(document_name::EVIDENCE);
        let unreadable =
            |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", path.display());
        let bytes = regular_file::read(&path, LARGEST_TEXT).map_err(|error| unreadable(&error))?;
        let evidence = Evidence::from_json(&bytes).map_err(|error| unreadable(&error))?;
        let own = boot_id::of_this_machine();
        let is_here = |attempt: &Attempt| {
            let boots =
                [&attempt.started, &attempt.ended].map(|clock| clock.as_ref().map(|clock| &clock.boot_id));
            boots
                .into_iter()
                .all(|boot| boot.is_some() && boot == own.as_ref())
        };
        match !evidence.attempts.is_empty() && evidence.attempts.iter().all(is_here) {
            true => Ok(()),
            false => Err(format!(
                "the evidence of the {part} run {run} does not name this machine's boot: the meter measured another machine, \
                 or the device was restarted"
            )),
        }
    }

    /// Gives the client the logs of a run as they were delivered.
    fn hand_over(&self, part: Part, run: RunId) -> io::Result<()> {
        let directory = self.logs.join(part.to_string());
        fs::create_dir_all(&directory)?;
        for name in LOGS {
            fs::copy(self.workspace.run(run).files().join(name), directory.join(name))?;
        }
        Ok(())
    }
}

impl Workload for RunWorkload<'_> {
    fn command(&self) -> String {
        GATE.to_owned()
    }

    fn logs(&self) -> PathBuf {
        self.logs.clone()
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
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
        let row = self.store.run(run).map_err(|error| error.to_string())?;
        let row = row.ok_or_else(|| format!("run {run} is gone from the store"))?;
        if !row.is_over() {
            return match self.workspace.is_served() {
                true => Ok(None),
                false => Err("the coordinator has ended; start `regatta serve` again".to_owned()),
            };
        }
        self.done.push(run);
        if !row.is_good() {
            return Err(format!(
                "the {part} run {run} has no good result: `regatta runs show {run}` says why"
            ));
        }
        self.expect_own_machine(part, run)?;
        let handed = self.hand_over(part, run);
        handed.map_err(|error| format!("the logs of run {run} cannot be copied: {error}"))?;
        Ok(Some("0".to_owned()))
    }
}
