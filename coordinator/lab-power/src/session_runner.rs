//! Makes power sessions: leases meter and device, checks, measures two ordinary runs with the power programs, judges, and records each
//! session that began in any case. The command line and campaigns call it; it prints nothing.

mod before;
mod hosts;
mod record;

use std::{
    cell::{Cell, RefCell},
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use regatta_catalogue::round::PowerRules;
use regatta_power::session::{SessionError, SessionFailure, SessionHosts, SessionPlan};
use regatta_types::{
    RunId,
    documents::{PowerSessionRecord, SessionObservation, SessionRuns},
};

use super::{
    cancel::Cancel,
    machine::{Machine, Programs},
    meter_conf::server_conf,
    meter_lease::MeterLease,
    preflight::PreflightResult,
    run_workload::{RunOrder, RunWorkload},
    session_check::run_length,
    session_error::PowerSessionError,
    session_machines::SessionMachines,
    session_progress::{SessionNews, SessionProgress, SessionTracker},
    session_times::SessionTimes,
    session_watch::SessionWatch,
};
use regatta_lab_store::{
    MeterRow, NewPowerSession, PowerSessionChange, RunDraft, Store, workspace::Workspace,
};

/// The longest time for failures that may end by themselves, such as a port of a session whose programs are ending.
const MAX_TRANSIENT_TIME: Duration = Duration::from_secs(20);
/// The pause before the checks are repeated.
const TRANSIENT_PAUSE: Duration = Duration::from_secs(1);

/// A session to make.
#[derive(Debug, Clone, Copy)]
pub struct PowerSessionJob<'a> {
    /// Its id, which no other session has.
    pub session: &'a str,
    /// The run that is made twice.
    pub draft: &'a RunDraft,
}

/// Makes the sessions of one meter, one after the other.
pub struct PowerSessionRunner<'a> {
    workspace: &'a Workspace,
    store: &'a Store,
    rules: &'a PowerRules,
    meter: &'a MeterRow,
    machines: SessionMachines,
    /// Whether PTDaemon has read the meter for an earlier session.
    meter_was_read: Cell<bool>,
}

/// What the machines and programs of a session left.
struct Measured {
    /// The directory of a complete session.
    session: Result<PathBuf, SessionError>,
    runs: SessionRuns,
    repeated: Vec<RunId>,
    observations: Vec<SessionObservation>,
    unfetched: Option<String>,
    times: SessionTimes,
}

impl<'a> PowerSessionRunner<'a> {
    /// Creates a runner with machines that are connected.
    pub const fn new(
        workspace: &'a Workspace,
        store: &'a Store,
        rules: &'a PowerRules,
        meter: &'a MeterRow,
        machines: SessionMachines,
    ) -> Self {
        Self {
            workspace,
            store,
            rules,
            meter,
            machines,
            meter_was_read: Cell::new(false),
        }
    }

    /// Takes new connections: one of an earlier session may be lost.
    pub fn reconnect(&mut self, machines: SessionMachines) {
        self.machines = machines;
    }

    /// Checks whether a session can succeed, again while all that fails may end by itself.
    fn lasting_preflight(
        &self,
        job: &PowerSessionJob<'_>,
        cancel: &Cancel,
    ) -> Result<PreflightResult, PowerSessionError> {
        let begun = Instant::now();
        loop {
            let preflight = self.preflight(job.draft, Some(job.session))?;
            let is_final = !preflight.may_pass_soon() || begun.elapsed() > MAX_TRANSIENT_TIME;
            if is_final || cancel.requested().is_some() {
                return Ok(preflight);
            }
            thread::sleep(TRANSIENT_PAUSE);
        }
    }

    /// Makes one session. One that began and failed is recorded with its failure, and its record is returned.
    ///
    /// # Errors
    /// [`PowerSessionError`] when it could not begin or could not be recorded. Nothing of it runs then, and its lease has ended.
    pub fn run(
        &self,
        job: &PowerSessionJob<'_>,
        progress: &mut dyn SessionProgress,
        cancel: &Cancel,
    ) -> Result<PowerSessionRecord, PowerSessionError> {
        let device = &job.draft.spec.device;
        let lease = MeterLease::take(self.store, &self.meter.name, job.session, device)?;
        if let Some(ended) = lease.ended() {
            progress.report(&SessionNews::LeaseTakenOver {
                session: &ended.session,
                meter: &self.meter.name,
            });
        }
        self.wait_for_earlier_sessions(device, cancel)?;
        self.remove_left_over();
        let preflight = self.lasting_preflight(job, cancel)?;
        progress.report(&SessionNews::Preflight(&preflight));
        let boot_id = match &preflight.boot_id {
            Some(boot_id) if preflight.passed() => boot_id.clone(),
            _ => return Err(PowerSessionError::Preflight(preflight.lines)),
        };
        if let Some(reason) = cancel.requested() {
            return Err(PowerSessionError::Cancelled(reason));
        }
        self.store.power_sessions().begin(NewPowerSession {
            id: job.session,
            meter: &self.meter.name,
            device: device.as_str(),
            benchmark: &job.draft.spec.benchmark.name,
            scenario: job.draft.spec.scenario.as_str(),
        })?;
        let made = self.run_begun(job, boot_id, progress, cancel);
        if let Err(error) = &made {
            // A session without a record has ended, too. The error itself is returned.
            let _ = self.store.power_sessions().fail(job.session, &error.recorded());
        }
        made
    }

    fn run_begun(
        &self,
        job: &PowerSessionJob<'_>,
        boot_id: String,
        progress: &mut dyn SessionProgress,
        cancel: &Cancel,
    ) -> Result<PowerSessionRecord, PowerSessionError> {
        let directory = self.workspace.power_session(job.session);
        fs::create_dir_all(&directory).map_err(|source| PowerSessionError::Directory {
            path: directory.clone(),
            source,
        })?;
        progress.report(&SessionNews::Begins {
            session: job.session,
            draft: job.draft,
            informative: self.is_informative(),
        });
        let plan = SessionPlan {
            conf: server_conf(
                &self.meter.settings,
                self.machines.director.is_same_as(&self.machines.system),
            ),
            director_address: self.machines.address.clone(),
            label: String::new(),
            directory,
        };
        let measured = self.measure(job, &plan, boot_id, progress, cancel);
        self.record(job, &plan, measured, progress)
    }

    /// Runs the power programs with two runs as their workload. Everything that it starts has ended afterwards.
    fn measure(
        &self,
        job: &PowerSessionJob<'_>,
        plan: &SessionPlan,
        boot_id: String,
        progress: &mut dyn SessionProgress,
        cancel: &Cancel,
    ) -> Measured {
        let progress = RefCell::new(progress);
        let report = |news: &SessionNews<'_>| {
            self.store_news(job.session, news);
            progress.borrow_mut().report(news);
        };
        let mut tracker = SessionTracker::new(run_length(&job.draft.spec));
        let mut measured = Measured {
            session: Ok(PathBuf::new()),
            runs: SessionRuns::default(),
            repeated: Vec::new(),
            observations: Vec::new(),
            unfetched: None,
            times: SessionTimes::default(),
        };
        measured.session = self.hosts(job.session, &plan.directory).and_then(|mut hosts| {
            let output = hosts.system.output();
            let watch = self.watch(job.session, plan, &report)?;
            let mut workload = RunWorkload::new(RunOrder {
                store: self.store,
                workspace: self.workspace,
                session: job.session,
                draft: job.draft.clone(),
                boot_id,
                hand_over: self.hand_over(hosts.system.logs()),
                watch,
                cancel: cancel.clone(),
            });
            let mut both = SessionHosts {
                director: &mut *hosts.director,
                system: &mut *hosts.system,
            };
            let made = plan.execute(&mut both, &mut workload, &mut |event| {
                tracker.take(event, &mut |news| report(news));
            });
            let made = made.and_then(|session| match workload.expect_alone() {
                Ok(()) => Ok(session),
                Err(error) => Err(SessionFailure::beside(error.into()).into()),
            });
            measured.runs = workload.runs();
            measured.repeated = workload.repeated().to_vec();
            measured.observations = workload.observations();
            measured.unfetched = may_be_fetched(&made, &workload).then_some(output);
            if made.is_err() {
                // The store's failure shows in the record, which is written to it, too.
                let _ = workload.abort();
            }
            made
        });
        measured.times = tracker.end();
        measured
    }

    /// Whether Regatta's own programs make the sessions.
    fn is_informative(&self) -> bool {
        self.machines.director.programs == Programs::Own
    }

    /// Starts to watch clocks, NTP and disks of the session's machines.
    fn watch<'b>(
        &self,
        session: &str,
        plan: &SessionPlan,
        report: &'b dyn Fn(&SessionNews<'_>),
    ) -> Result<SessionWatch<'b>, SessionError> {
        let SessionMachines { director, system, .. } = &self.machines;
        let machines: &[(&'static str, &Machine)] = match director.is_same_as(system) {
            true => &[("device", system)],
            false => &[("director", director), ("device", system)],
        };
        SessionWatch::start(
            machines,
            session,
            &self.meter.settings.ntp,
            &plan.directory,
            Box::new(|text: &str| report(&SessionNews::Observation(text))),
        )
    }

    /// Stores what is new of a session, which `regatta events` prints.
    fn store_news(&self, session: &str, news: &SessionNews<'_>) {
        let step;
        let change = match news {
            SessionNews::Step { phase, .. } => {
                step = phase.to_string();
                PowerSessionChange::Step(&step)
            }
            SessionNews::Mean { watts, .. } => PowerSessionChange::Watts(*watts),
            SessionNews::Observation(text) => PowerSessionChange::Observation(text),
            _ => return,
        };
        // A full disk must not end the session; its end is stored in any case.
        let _ = self.store.power_sessions().record_change(session, change);
    }
}

/// Returns whether the device may have the files of a complete session that could not be fetched: the transfer failed, or the connection was
/// lost when both runs had ended and only the client had something to do.
fn may_be_fetched(made: &Result<PathBuf, SessionError>, workload: &RunWorkload<'_>) -> bool {
    match made {
        Err(SessionError::Uncollected { .. }) => true,
        Err(SessionError::Failed(failure)) => failure.is_system_lost() && workload.has_ended(),
        _ => false,
    }
}
