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

use regatta_fsutil::regular_file::{self, MAX_TEXT};
use regatta_power::session::{Part, Workload};
use regatta_text::ErrorChain;
use regatta_types::{
    RunId,
    documents::{Attempt, Document as _, Evidence, RunSpec, document_name},
};

use super::{
    machine::Link,
    session_watch::{Observation, SessionWatch},
};
use regatta_lab_runs::{RateRetries, least_seconds};
use regatta_lab_store::{RunDraft, RunRow, Store, workspace::Workspace};

/// The command of the official client: it ends with the code that it reads.
const GATE: &str = "read -r code && exit \"$code\"";
/// The logs that the official client copies.
const LOGS: [&str; 2] = ["mlperf_log_detail.txt", "mlperf_log_summary.txt"];

/// The interval of looking for other runs of the device.
const EXAMINATION_INTERVAL: Duration = Duration::from_secs(1);

/// The longest absence of the device's agent while a run is under way.
const MAX_ABSENCE: Duration = Duration::from_secs(30);

/// The multiple of a run's shortest duration, or of the time that the ranging run took, that a run may take.
const LIMIT_TIMES: u64 = 10;
/// The least limit of a ranging run: it may load a network, or build an engine.
const MIN_RANGING_LIMIT_S: u64 = 3600;
/// The least limit of a testing run, which finds everything prepared.
const MIN_TESTING_LIMIT_S: u64 = 300;
/// The time from a run's limit to its record: the device aborts it, or the coordinator gives it up after 120 s.
const MAX_END_TIME: Duration = Duration::from_secs(180);

/// Returns the time after which a run ends that has not ended by itself: a run that hangs would keep meter and device. `ranging_time` is known
/// for a testing run.
fn run_limit(draft: &RunDraft, ranging_time: Option<Duration>) -> Duration {
    let own = match ranging_time {
        Some(time) => (time.as_secs() + 1)
            .saturating_mul(LIMIT_TIMES)
            .max(MIN_TESTING_LIMIT_S),
        None => least_seconds(&draft.spec)
            .unwrap_or(0)
            .saturating_mul(LIMIT_TIMES)
            .max(MIN_RANGING_LIMIT_S),
    };
    Duration::from_secs(draft.limit_s.map_or(own, |limit| limit.min(own)))
}

/// Gives the official client the logs of a part's run, which are in a directory of this machine.
pub type HandOver<'a> = Box<dyn Fn(Part, &Path) -> io::Result<()> + 'a>;

/// The inputs of a session's workload.
pub struct RunOrder<'a> {
    /// The store.
    pub store: &'a Store,
    /// The workspace.
    pub workspace: &'a Workspace,
    /// The session.
    pub session: &'a str,
    /// The run that is made twice.
    pub draft: RunDraft,
    /// The boot of the machine that is measured.
    pub boot_id: String,
    /// The destination of the logs.
    pub hand_over: HandOver<'a>,
    /// The machines, watched.
    pub watch: SessionWatch<'a>,
    /// Whether the user interrupted it.
    pub interrupted: Arc<AtomicBool>,
}

/// The run of the present part.
struct RunningPart {
    part: Part,
    run: RunId,
    requested: Instant,
    /// The time after which the coordinator ends the run.
    limit: Duration,
}

/// The workload of a session.
pub struct RunWorkload<'a> {
    order: RunOrder<'a>,
    running: Option<RunningPart>,
    /// The time that the ranging run took, from its request to its record.
    ranging_time: Option<Duration>,
    requested: Vec<(&'static str, RunId)>,
    done: Vec<RunId>,
    /// Ranging runs that were INVALID by a guessed rate, and were repeated.
    repeated: Vec<RunId>,
    offline_since: Option<Instant>,
    /// When the runs of the device were last examined.
    examined: Instant,
}

impl<'a> RunWorkload<'a> {
    /// Creates the workload.
    pub fn new(order: RunOrder<'a>) -> Self {
        Self {
            order,
            running: None,
            ranging_time: None,
            requested: Vec::new(),
            done: Vec::new(),
            repeated: Vec::new(),
            offline_since: None,
            examined: Instant::now(),
        }
    }

    /// Returns the runs that were requested: `ranging` and `testing`.
    pub fn runs(&self) -> Vec<(&'static str, RunId)> {
        self.requested.clone()
    }

    /// Returns the ranging runs that were repeated.
    pub fn repeated(&self) -> &[RunId] {
        &self.repeated
    }

    /// Returns the observations beside the session.
    pub fn observations(&self) -> Vec<Observation> {
        self.order.watch.observations()
    }

    /// Checks that no other run was on the device since the session began. The lease of the device keeps others away; this notices what
    /// came past it, such as a run that the device had and reported late.
    ///
    /// # Errors
    /// The reason why the session has failed, as a sentence.
    pub fn expect_alone(&self) -> Result<(), String> {
        let beside = self.order.store.runs_beside_session(self.order.session);
        let beside = beside.map_err(|error| ErrorChain(&error).to_string())?;
        match beside.iter().find(|run| !self.repeated.contains(run)) {
            None => Ok(()),
            Some(run) => Err(format!(
                "run {run} was on the device beside the session, so the meter measured both"
            )),
        }
    }

    /// Returns whether both runs have ended.
    pub fn has_ended(&self) -> bool {
        self.done.len() == 2
    }

    /// Ends a run that is still under way, because the session has failed.
    pub fn abort(&self) -> Result<(), regatta_lab_store::StoreError> {
        if let Some(running) = &self.running {
            self.order
                .store
                .request_abort(running.run, "its power session has failed")?;
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
        let limit = run_limit(&draft, self.ranging_time);
        draft.limit_s = Some(limit.as_secs());
        draft.spec.run = RunId::now();
        let run = draft.spec.run;
        let is_ranging = part == Part::Ranging;
        self.order
            .store
            .request_session_run(self.order.session, is_ranging, &draft)
            .map_err(|error| ErrorChain(&error).to_string())?;
        let name = match part {
            Part::Ranging => "ranging",
            Part::Testing => "testing",
        };
        self.requested.push((name, run));
        self.running = Some(RunningPart {
            part,
            run,
            requested: Instant::now(),
            limit,
        });
        Ok(())
    }

    /// Returns whether an INVALID run would be sent with another rate now that the device's speed is known.
    fn has_guessed_rate(&self, row: &RunRow) -> Result<bool, String> {
        let earlier = self.repeated.len() as u64;
        let next = RateRetries::default().next(row, earlier, self.order.workspace, self.order.store);
        next.map(|draft| draft.is_some())
            .map_err(|error| format!("{error:#}"))
    }

    /// Makes the ranging run again, which the meter ranges as well: it is longer than it had to be, and the session is not lost.
    fn repeat_ranging(&mut self, run: RunId) -> Result<(), String> {
        let text = format!(
            "ranging run {run} was INVALID because its rate was a guess; it is repeated with the measured one"
        );
        self.order.watch.observe(text);
        self.repeated.push(run);
        self.requested.clear();
        self.request(Part::Ranging)
    }

    /// Checks in a run's evidence that LoadGen ran on the machine whose energy the meter measures.
    fn expect_measured_machine(&self, part: Part, run: RunId) -> Result<(), String> {
        let path = self.files(run).join(document_name::EVIDENCE);
        let unreadable =
            |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", path.display());
        let bytes = regular_file::read(&path, MAX_TEXT).map_err(|error| unreadable(&error))?;
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
        match self.offline_since.get_or_insert_with(Instant::now).elapsed() > MAX_ABSENCE {
            false => Ok(()),
            true => Err(format!(
                "the device's agent was offline for {} s during the {part} run {run}",
                MAX_ABSENCE.as_secs()
            )),
        }
    }
}

/// Copies the logs of a run, as they were delivered, into a directory of this machine.
///
/// # Errors
/// Returns the system's error.
pub fn copy_logs(from: &Path, to: &Path) -> io::Result<()> {
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
pub fn upload_logs(link: &Link, from: &Path, to: &str) -> io::Result<()> {
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
        if self.examined.elapsed() >= EXAMINATION_INTERVAL {
            self.examined = Instant::now();
            self.expect_alone()?;
        }
        self.order.watch.look()
    }

    fn follow(&mut self, part: Part) -> Result<Option<String>, String> {
        let (run, requested, limit) = match &self.running {
            Some(running) if running.part == part => (running.run, running.requested, running.limit),
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
            if requested.elapsed() > limit + MAX_END_TIME {
                return Err(format!(
                    "the {part} run {run} has not ended {} s after its limit of {} s",
                    MAX_END_TIME.as_secs(),
                    limit.as_secs()
                ));
            }
            self.expect_progress(part, run)?;
            return Ok(None);
        }
        if part == Part::Ranging && self.has_guessed_rate(&row)? {
            self.repeat_ranging(run)?;
            return Ok(None);
        }
        self.done.push(run);
        self.ranging_time.get_or_insert(requested.elapsed());
        if !row.is_good() {
            let why = row
                .state
                .reason
                .map_or_else(String::new, |reason| format!(" ({reason})"));
            return Err(format!(
                "the {part} run {run} has no good result{why}: `regatta runs show {run}` says more"
            ));
        }
        self.expect_measured_machine(part, run)?;
        let handed = (self.order.hand_over)(part, &self.files(run));
        handed.map_err(|error| format!("the logs of run {run} cannot be given to the client: {error}"))?;
        Ok(Some("0".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_lab_store::examples::example_draft;

    #[test]
    fn every_run_of_a_session_has_a_limit() {
        let mut draft = example_draft("ab".repeat(16).parse().unwrap());
        // The shortest duration of the rules is ten minutes.
        assert_eq!(run_limit(&draft, None), Duration::from_secs(6000));
        let took = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(run_limit(&draft, took(700)), Duration::from_secs(7010));
        assert_eq!(
            run_limit(&draft, took(5)),
            Duration::from_secs(MIN_TESTING_LIMIT_S)
        );
        draft.limit_s = Some(20);
        assert_eq!(run_limit(&draft, None), Duration::from_secs(20));
        assert_eq!(run_limit(&draft, took(5)), Duration::from_secs(20));
    }
}
