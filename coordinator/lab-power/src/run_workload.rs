//! Ordinary runs as the workload of a session: the official client waits while the device runs one, as for every `regatta run`. So state,
//! evidence, signature and delivery apply to the ranging run and to the testing run alike.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use regatta_fsutil::regular_file::{self, MAX_DOCUMENT, MAX_TEXT};
use regatta_power::session::{Part, Workload, WorkloadError};
use regatta_types::{
    RunId,
    documents::{Attempt, Document, Evidence, RunSpec, SessionObservation, SessionRuns, document_name},
};

use super::{
    cancel::Cancel, machine::Link, session_watch::SessionWatch, workload_error::RunWorkloadError as Error,
};
use regatta_lab_runs::{RateRetries, least_seconds, run_failure};
use regatta_lab_store::{RunDraft, RunRow, Store, StoreError, workspace::Workspace};

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
pub(crate) type HandOver<'a> = Box<dyn Fn(Part, &Path) -> io::Result<()> + 'a>;

/// The inputs of a session's workload.
pub(crate) struct RunOrder<'a> {
    pub store: &'a Store,
    pub workspace: &'a Workspace,
    pub session: &'a str,
    /// The run that is made twice.
    pub draft: RunDraft,
    /// The boot of the machine that is measured.
    pub boot_id: String,
    /// The destination of the logs.
    pub hand_over: HandOver<'a>,
    /// The machines, watched.
    pub watch: SessionWatch<'a>,
    /// The request to end it.
    pub cancel: Cancel,
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
pub(crate) struct RunWorkload<'a> {
    order: RunOrder<'a>,
    running: Option<RunningPart>,
    /// The time that the ranging run took, from its request to its record.
    ranging_time: Option<Duration>,
    requested: SessionRuns,
    done: Vec<RunId>,
    /// Ranging runs that were INVALID by a guessed rate, and were repeated.
    repeated: Vec<RunId>,
    offline_since: Option<Instant>,
    /// When the runs of the device were last examined.
    examined: Instant,
}

impl<'a> RunWorkload<'a> {
    /// Creates the workload.
    pub(crate) fn new(order: RunOrder<'a>) -> Self {
        Self {
            order,
            running: None,
            ranging_time: None,
            requested: SessionRuns::default(),
            done: Vec::new(),
            repeated: Vec::new(),
            offline_since: None,
            examined: Instant::now(),
        }
    }

    /// Returns the runs that were requested.
    pub(crate) const fn runs(&self) -> SessionRuns {
        self.requested
    }

    /// Returns the ranging runs that were repeated.
    pub(crate) fn repeated(&self) -> &[RunId] {
        &self.repeated
    }

    /// Returns the observations beside the session.
    pub(crate) fn observations(&self) -> Vec<SessionObservation> {
        self.order.watch.observations()
    }

    /// Checks that no other run was on the device since the session began. The lease of the device keeps others away; this notices what
    /// came past it, such as a run that the device had and reported late.
    ///
    /// # Errors
    /// Returns an error when there was one, and the session has failed.
    pub(super) fn expect_alone(&self) -> Result<(), Error> {
        let beside = self.order.store.runs().beside_session(self.order.session)?;
        match beside.into_iter().find(|run| !self.repeated.contains(run)) {
            None => Ok(()),
            Some(run) => Err(Error::Beside(run)),
        }
    }

    /// Returns whether both runs have ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.done.len() == 2
    }

    /// Ends a run that is still under way, because the session has failed.
    pub(crate) fn abort(&self) -> Result<(), StoreError> {
        if let Some(running) = &self.running {
            self.order
                .store
                .runs()
                .request_abort(running.run, "its power session has failed")?;
        }
        Ok(())
    }

    /// Requests a run. The testing run has exactly the conf files of the ranging run, with the rates that were estimated for it.
    fn request(&mut self, part: Part) -> Result<(), Error> {
        let mut draft = self.order.draft.clone();
        if let Some(ranging) = self.done.first() {
            let spec: RunSpec = read_document(&self.order.workspace.run(*ranging).spec(), MAX_DOCUMENT)?;
            draft.spec.conf = spec.conf;
            draft.is_conf_fixed = true;
        }
        let limit = run_limit(&draft, self.ranging_time);
        draft.limit_s = Some(limit.as_secs());
        draft.spec.run = RunId::now();
        let run = draft.spec.run;
        let is_ranging = part == Part::Ranging;
        self.order
            .store
            .runs()
            .request_of_session(self.order.session, is_ranging, &draft)?;
        match part {
            Part::Ranging => self.requested.ranging = Some(run),
            Part::Testing => self.requested.testing = Some(run),
        }
        self.running = Some(RunningPart {
            part,
            run,
            requested: Instant::now(),
            limit,
        });
        Ok(())
    }

    /// Returns whether an INVALID run would be sent with another rate now that the device's speed is known.
    fn has_guessed_rate(&self, row: &RunRow) -> Result<bool, Error> {
        let earlier = self.repeated.len() as u64;
        let next = RateRetries::default().next(row, earlier, self.order.workspace, self.order.store);
        next.map(|draft| draft.is_some()).map_err(|error| Error::Rate {
            run: row.id,
            source: error.into(),
        })
    }

    /// Makes the ranging run again, which the meter ranges as well: it is longer than it had to be, and the session is not lost.
    fn repeat_ranging(&mut self, run: RunId) -> Result<(), Error> {
        let text = format!(
            "ranging run {run} was INVALID because its rate was a guess; it is repeated with the measured one"
        );
        self.order.watch.observe(text);
        self.repeated.push(run);
        self.request(Part::Ranging)
    }

    /// Checks in a run's evidence that LoadGen ran on the machine whose energy the meter measures.
    fn expect_measured_machine(&self, part: Part, run: RunId) -> Result<(), Error> {
        let evidence: Evidence = read_document(&self.files(run).join(document_name::EVIDENCE), MAX_TEXT)?;
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
            false => Err(Error::AnotherMachine { part, run }),
        }
    }

    fn files(&self, run: RunId) -> PathBuf {
        self.order.workspace.run(run).files()
    }

    /// Checks that the run can still end: the coordinator serves, and the device is online.
    fn expect_progress(&mut self, part: Part, run: RunId) -> Result<(), Error> {
        if !self.order.workspace.is_served() {
            return Err(Error::NotServed);
        }
        let device = self.order.store.devices().get(&self.order.draft.spec.device)?;
        if device.is_some_and(|device| device.online) {
            self.offline_since = None;
            return Ok(());
        }
        match self.offline_since.get_or_insert_with(Instant::now).elapsed() > MAX_ABSENCE {
            false => Ok(()),
            true => Err(Error::Offline {
                part,
                run,
                time: MAX_ABSENCE,
            }),
        }
    }

    /// Follows the run of a part. Returns `true` once it has ended well and the client has its logs.
    fn follow_run(&mut self, part: Part) -> Result<bool, Error> {
        let (run, requested, limit) = match &self.running {
            Some(running) if running.part == part => (running.run, running.requested, running.limit),
            _ => {
                self.request(part)?;
                return Ok(false);
            }
        };
        if self.done.contains(&run) {
            return Ok(false);
        }
        let row = self.order.store.runs().get(run)?.ok_or(Error::Gone(run))?;
        if !row.is_over() {
            if requested.elapsed() > limit + MAX_END_TIME {
                return Err(Error::Limit {
                    part,
                    run,
                    limit,
                    waited: MAX_END_TIME,
                });
            }
            self.expect_progress(part, run)?;
            return Ok(false);
        }
        if part == Part::Ranging && self.has_guessed_rate(&row)? {
            self.repeat_ranging(run)?;
            return Ok(false);
        }
        self.done.push(run);
        self.ranging_time.get_or_insert(requested.elapsed());
        if let Some((cause, reason)) = run_failure(&row) {
            return Err(Error::NotGood {
                part,
                run,
                cause,
                reason,
            });
        }
        self.expect_measured_machine(part, run)?;
        let handed = (self.order.hand_over)(part, &self.files(run));
        handed.map_err(|source| Error::HandOver { run, source })?;
        Ok(true)
    }
}

/// Reads a document of a run.
fn read_document<T: Document>(path: &Path, limit: u64) -> Result<T, Error> {
    let bytes = regular_file::read(path, limit).map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })?;
    T::from_json(&bytes).map_err(|source| Error::Document {
        path: path.to_owned(),
        source,
    })
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

    fn watch(&mut self) -> Result<(), WorkloadError> {
        if let Some(reason) = self.order.cancel.requested() {
            return Err(Error::Cancelled(reason).into());
        }
        if self.examined.elapsed() >= EXAMINATION_INTERVAL {
            self.examined = Instant::now();
            self.expect_alone()?;
        }
        Ok(self.order.watch.look().map_err(Error::Clock)?)
    }

    fn follow(&mut self, part: Part) -> Result<Option<String>, WorkloadError> {
        let has_ended = self.follow_run(part)?;
        Ok(has_ended.then(|| "0".to_owned()))
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
