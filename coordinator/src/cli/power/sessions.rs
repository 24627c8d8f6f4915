//! Makes the sessions of a command, one after the other, and records each in any case.

use std::{
    cell::Cell,
    path::{Path, PathBuf},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use regatta_config::round::PowerRules;
use regatta_power::{
    power_dev::PowerDev,
    session::{
        Director, LocalDirector, LocalSystem, Part, SessionError, SessionFailure, SessionHosts, SessionPlan,
        SystemUnderTest,
    },
};
use regatta_text::ErrorChain;
use regatta_types::{
    DeviceId, RunId,
    documents::{EndCause, MeterSettings, PowerSessionRecord, RecordedFailure, SessionRuns},
};

use super::{
    super::context::{notify, tell},
    machines::Machines,
    session_report::{SessionReporter, failure},
};
use crate::{exit::Failure, tables};
use regatta_lab_power::{
    HandOver, Machine, MeterLease, Preflight, PreflightResult, Programs, RailsPower, RemoteDirector,
    RemoteSystem, RunOrder, RunWorkload, SessionFacts, SessionVerdict, SessionWatch, checker_copy, copy_logs,
    read_session_record, run_length, server_conf, upload_logs, write_session_record,
};
use regatta_lab_runs::marker_reasons;
use regatta_lab_store::{
    MeterRow, NewPowerSession, PowerSessionChange, PowerSessionEnd, RunDraft, Store, workspace::Workspace,
};
use regatta_lab_views::lookup;

/// The sentence at the beginning of a session of Regatta's own programs.
const INFORMATIVE: &str =
    "INFORMATIVE: Regatta's own power programs make this session. It can never be submitted.";

/// The longest wait for the end of runs of earlier sessions. An agent kills a process after 5 s, unless it is configured otherwise.
const MAX_EARLIER_RUN_WAIT: Duration = Duration::from_secs(60);
const EARLIER_RUN_INTERVAL: Duration = Duration::from_millis(200);

/// The director and the system under test of a session.
type Hosts = (Box<dyn Director>, Box<dyn SystemUnderTest>);

/// The state that the sessions of a command share.
pub(super) struct Sessions<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) store: &'a Store,
    pub(super) rules: &'a PowerRules,
    pub(super) meter: &'a MeterRow,
    pub(super) machines: Machines,
    /// Whether PTDaemon has read the meter for this command.
    pub(super) meter_was_read: Cell<bool>,
}

impl Sessions<'_> {
    /// Checks whether a session can succeed. `session` has leased the device.
    pub(super) fn preflight(
        &self,
        draft: &RunDraft,
        session: Option<&str>,
    ) -> Result<PreflightResult, Failure> {
        let device = lookup::device(self.store, Some(draft.spec.device.as_str()))?;
        let preflight = Preflight {
            settings: &self.meter.settings,
            rules: self.rules,
            director: &self.machines.director,
            system: &self.machines.system,
            address: &self.machines.address,
            directory: self.workspace.root(),
            device: (device.name.clone(), device.reported_facts().ok(), device.online),
            other_work: other_work(self.store, &device.id, session)?,
            spec: &draft.spec,
            reads_meter: !self.meter_was_read.get(),
        };
        let result = preflight.check();
        self.meter_was_read.set(result.passed());
        Ok(result)
    }

    /// Makes one session with this new id, and records it in any case.
    pub(super) fn make(
        &self,
        id: String,
        draft: &RunDraft,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<PowerSessionRecord, Failure> {
        let lease = MeterLease::take(self.store, &self.meter.name, &id, &draft.spec.device)?;
        if let Some(ended) = lease.ended() {
            tell(&format!(
                "session {} ended without a result; its lease of {} has ended too",
                ended.session, self.meter.name
            ));
        }
        self.wait_for_earlier_sessions(&draft.spec.device, interrupted)?;
        self.remove_left_over();
        let preflight = self.preflight(draft, Some(&id))?;
        // The lines are the reason when one of them has failed.
        let print = if preflight.passed() { tell } else { notify };
        print(&tables::preflight(&preflight.lines));
        let boot_id = preflight.boot_id.clone().filter(|_| preflight.passed());
        let boot_id = boot_id.ok_or_else(|| {
            Failure::could_not("a session cannot succeed: see the lines above; nothing was started")
        })?;
        self.store.power_session_begins(NewPowerSession {
            id: &id,
            meter: &self.meter.name,
            device: draft.spec.device.as_str(),
            benchmark: &draft.spec.benchmark.name,
            scenario: draft.spec.scenario.as_str(),
        })?;
        let made = self.make_begun(&id, draft, boot_id, interrupted);
        if let Err(failure) = &made {
            // A session without a record has ended, too. The failure itself is reported.
            let _ = self.store.fail_power_session(&id, &recorded(failure));
        }
        made
    }

    /// Waits until the runs of sessions that have ended are over on the device: they are being aborted.
    fn wait_for_earlier_sessions(&self, device: &DeviceId, interrupted: &AtomicBool) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            let unfinished = self.store.unfinished_runs(device)?;
            let Some(run) = unfinished.first() else {
                return Ok(());
            };
            if interrupted.load(Ordering::Relaxed) {
                return Err(Failure::interrupted("interrupted before the session began"));
            }
            if begun.elapsed() > MAX_EARLIER_RUN_WAIT {
                let sentence = format!(
                    "run {run} of an earlier power session has not ended within {} s",
                    MAX_EARLIER_RUN_WAIT.as_secs()
                );
                return Err(
                    Failure::could_not(sentence).hint(format!("`regatta runs show {run}` shows its state"))
                );
            }
            thread::sleep(EARLIER_RUN_INTERVAL);
        }
    }

    /// Removes what recorded sessions of this workspace have left on other machines, because their connection was lost. Files that can still be
    /// fetched stay, and so do those of sessions that this workspace does not know.
    fn remove_left_over(&self) {
        for machine in [&self.machines.director, &self.machines.system] {
            let (Some(link), Some(sessions)) = (&machine.link, machine.sessions()) else {
                continue;
            };
            // A directory that cannot be listed has nothing to remove; the checks name what stays.
            for directory in link.files().directories(&sessions).unwrap_or_default() {
                let name = directory.file_name().unwrap_or_default().to_string_lossy();
                let id = name.strip_suffix("-device").or(name.strip_suffix("-director"));
                if id.is_some_and(|id| self.is_over_and_fetched(id)) {
                    let _ = link.files().remove(&directory.to_string_lossy());
                }
            }
        }
    }

    fn is_over_and_fetched(&self, id: &str) -> bool {
        let row = self.store.power_session(id).ok().flatten();
        // Files of a session whose record cannot be read stay.
        let record = read_session_record(&self.workspace.power_session(id))
            .ok()
            .flatten();
        row.is_some_and(|row| row.ended.is_some()) && record.is_some_and(|record| record.unfetched.is_none())
    }

    fn make_begun(
        &self,
        id: &str,
        draft: &RunDraft,
        boot_id: String,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<PowerSessionRecord, Failure> {
        let directory = self.workspace.power_session(id);
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        let Machines {
            director,
            system,
            address,
        } = &self.machines;
        let plan = SessionPlan {
            conf: server_conf(&self.meter.settings, director.is_same_as(system)),
            director_address: address.clone(),
            label: String::new(),
            directory,
        };
        let mut reporter = SessionReporter::new("", run_length(&draft.spec));
        if self.is_informative() {
            tell(INFORMATIVE);
        }
        tell(&format!(
            "session {id}: {} {}",
            draft.spec.benchmark.name, draft.spec.scenario
        ));
        let (mut requested, mut observations) = (SessionRuns::default(), Vec::new());
        let (mut unfetched, mut repeated) = (None, Vec::new());
        let made = self
            .hosts(id, &plan.directory)
            .and_then(|(mut director, mut system)| {
                let output = system.output();
                let watch = self.watch(id, &plan.directory)?;
                let mut workload = RunWorkload::new(RunOrder {
                    store: self.store,
                    workspace: self.workspace,
                    session: id,
                    draft: draft.clone(),
                    boot_id,
                    hand_over: hand_over(&self.machines.system, system.logs()),
                    watch,
                    interrupted: Arc::clone(interrupted),
                });
                let mut hosts = SessionHosts {
                    director: &mut *director,
                    system: &mut *system,
                };
                let made = plan.execute(&mut hosts, &mut workload, &mut |event| {
                    if let Some(change) = reporter.report(event) {
                        self.store_change(id, change.as_stored());
                    }
                });
                let made = made.and_then(|session| match workload.expect_alone() {
                    Ok(()) => Ok(session),
                    Err(reason) => Err(SessionFailure::beside(reason).into()),
                });
                (requested, observations) = (workload.runs(), workload.observations());
                repeated = workload.repeated().to_vec();
                unfetched = may_be_fetched(&made, &workload).then_some(output);
                if made.is_err() {
                    // The store's failure shows in the record, which is written to it, too.
                    let _ = workload.abort();
                }
                made
            });
        let judged = match made {
            Ok(session) if self.is_informative() => {
                SessionVerdict::informative(self.rules, &session).map_err(Failure::from)
            }
            Ok(session) => judge(&self.meter.settings, self.rules, &session).map_err(Failure::from),
            Err(error) => Err(failure(error)),
        };
        let judged = judged.map_err(|failure| recorded(&failure));
        let facts = SessionFacts {
            id,
            meter: self.meter,
            machine: system.name(),
            draft,
            obstacles: self
                .obstacles([requested.ranging, requested.testing].into_iter().flatten())
                // The session is complete, and its record is written in any case.
                .unwrap_or_else(|error| vec![format!("the markers of its runs cannot be read: {error}")]),
            observations,
            times: reporter.end(),
            rails: self.rails(requested),
            informative: self.is_informative(),
            unfetched,
            runs: requested,
            repeated,
        };
        let record = write_session_record(&plan.directory, facts, judged)?;
        let end = PowerSessionEnd {
            verdict: record.verdict,
            failure: record.failure.as_ref(),
            simulated: record.simulated,
            obstacles: &record.obstacles,
            mean_watts: record.energy.map(|energy| energy.watts),
        };
        self.store.power_session_ends(id, &end)?;
        Ok(record)
    }

    /// Whether Regatta's own programs make the sessions.
    fn is_informative(&self) -> bool {
        self.machines.director.programs == Programs::Own
    }

    /// Returns the power of the board's rails in the testing run. An error is printed: the session is complete, and its record is written
    /// in any case.
    fn rails(&self, runs: SessionRuns) -> Option<RailsPower> {
        let row = self.store.run(runs.testing?).unwrap_or_else(|error| {
            notify(&format!("the rails' power is not known: {}", ErrorChain(&error)));
            None
        });
        row.as_ref().and_then(RailsPower::of)
    }

    /// Director and system under test, with the session's directories on them.
    fn hosts(&self, id: &str, directory: &Path) -> Result<Hosts, SessionError> {
        let Machines { director, system, .. } = &self.machines;
        let python = |machine: &Machine| Path::new(&machine.python).to_owned();
        let unknown = |source: std::io::Error| SessionError::Io {
            path: "/proc/self/exe".into(),
            source,
        };
        let first: Box<dyn Director> = match &director.link {
            Some(link) => Box::new(RemoteDirector::new(director, link, id, directory)?),
            None => Box::new(LocalDirector::new(
                &python(director),
                &director.programs.server(&director.python).map_err(unknown)?,
                directory,
            )?),
        };
        let second: Box<dyn SystemUnderTest> = match &system.link {
            Some(link) => Box::new(RemoteSystem::new(
                system,
                link,
                id,
                directory,
                self.workspace.min_free_bytes(),
            )?),
            None => {
                let logs = directory.join("loadgen");
                Box::new(LocalSystem::new(
                    &python(system),
                    &system.programs.client(&system.python).map_err(unknown)?,
                    directory,
                    &logs,
                )?)
            }
        };
        Ok((first, second))
    }

    /// Starts to watch clocks, NTP and disks of the session's machines.
    fn watch<'b>(&'b self, id: &'b str, directory: &Path) -> Result<SessionWatch<'b>, SessionError> {
        let Machines { director, system, .. } = &self.machines;
        let machines: &[(&'static str, &Machine)] = match director.is_same_as(system) {
            true => &[("device", system)],
            false => &[("director", director), ("device", system)],
        };
        let report = move |text: &str| {
            tell(text);
            self.store_change(id, PowerSessionChange::Observation(text));
        };
        SessionWatch::start(
            machines,
            id,
            &self.meter.settings.ntp,
            directory,
            Box::new(report),
        )
    }

    /// Stores what is new of a session, which `regatta events` prints.
    fn store_change(&self, id: &str, change: PowerSessionChange<'_>) {
        // A full disk must not end the session; its end is stored in any case.
        let _ = self.store.power_session_changes(id, change);
    }

    /// Why runs cannot be submitted, each reason once.
    fn obstacles(&self, runs: impl Iterator<Item = RunId>) -> Result<Vec<String>, Failure> {
        let mut obstacles = Vec::new();
        for run in runs {
            let reasons = self
                .store
                .run(run)?
                .as_ref()
                .map(marker_reasons)
                .unwrap_or_default();
            for reason in reasons {
                let text = format!("{}: {}", reason.marker, reason.reason);
                if !obstacles.contains(&text) {
                    obstacles.push(text);
                }
            }
        }
        Ok(obstacles)
    }
}

/// Returns whether the device may have the files of a complete session that could not be fetched: the transfer failed, or the connection was
/// lost when both runs had ended and only the client had something to do.
fn may_be_fetched(made: &Result<PathBuf, SessionError>, workload: &RunWorkload<'_>) -> bool {
    match made {
        Err(SessionError::Uncollected { .. }) => true,
        Err(SessionError::Failed(failure)) => failure.is_system_lost && workload.has_ended(),
        _ => false,
    }
}

/// Returns a failure as it is recorded.
fn recorded(failure: &Failure) -> RecordedFailure {
    RecordedFailure {
        cause: EndCause::Infrastructure,
        reason: failure.reason(),
    }
}

/// Returns what keeps a device busy besides a power session, in words.
fn other_work(store: &Store, device: &DeviceId, session: Option<&str>) -> Result<Option<String>, Failure> {
    let other = store.leased_device(device)?;
    if let Some(other) = other.filter(|other| session != Some(other.session.as_str())) {
        return Ok(Some(format!("power session {} measures it", other.session)));
    }
    let runs = store.unfinished_runs(device)?;
    Ok(runs.first().map(|run| match runs.len() {
        1 => format!("run {run} has not ended"),
        count => format!("run {run} and {} more have not ended", count - 1),
    }))
}

/// Judges a complete session with both checkers.
pub(super) fn judge(
    settings: &MeterSettings,
    rules: &PowerRules,
    session: &Path,
) -> anyhow::Result<SessionVerdict> {
    let python = match settings.director {
        None => settings.python.as_str(),
        Some(_) => "python3",
    };
    let copy = PowerDev::elsewhere(&checker_copy(settings), Default::default(), Vec::new());
    SessionVerdict::of(Path::new(python), &copy.checker(), rules, session)
}

/// Passes the logs of a run to the client, on this machine or over SSH.
fn hand_over(system: &Machine, logs: String) -> HandOver<'static> {
    let link = system.link.as_ref().map(Rc::clone);
    Box::new(move |part: Part, from: &Path| match &link {
        None => copy_logs(from, &Path::new(&logs).join(part.to_string())),
        Some(link) => {
            upload_logs(link, from, &format!("{logs}/{part}")).inspect_err(|error| link.note(error))
        }
    })
}
