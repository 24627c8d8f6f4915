//! A fleet in virtual time over the real store and scheduler. The fleet does what dispatcher, devices and finisher do to the store.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use regatta_catalogue::catalogue::Catalogue;
use regatta_types::{
    DeviceId, RunId,
    documents::{DeviceFacts, EngineKind, RunPhase, RunState, SoftwareFacts, end_reason},
};
use regatta_wire::message::{BoardReadings, Hello};

use super::{
    ending::{earlier_ends, ending, failed, running},
    plan::{CAMPAIGN, Size},
};
use crate::{Lab, clock_steps::Now, expand, scheduler::Scheduler};
use regatta_lab_runs::{RunFiles, judge_device};
use regatta_lab_store::{
    AttemptRow, NewCampaign, RunOutcome, RunRow, Store, examples::example_record, workspace::Workspace,
};

pub(super) const DEVICES: u8 = 50;
/// The interval between two looks of the scheduler.
pub(super) const STEP: Duration = Duration::from_secs(600);
/// The failures in a row that quarantine a device.
const QUARANTINE_AFTER: u32 = 3;
/// The time that a run takes on a device.
const RUN: Duration = Duration::from_secs(4 * 3_600);

/// A device of the simulated fleet.
#[derive(Default)]
pub(super) struct Device {
    /// Its run, and when that ends.
    run: Option<(RunId, Duration)>,
    /// The end of its link's outage.
    pub(super) link_lost_until: Duration,
    /// The end of the time in which it is too hot for the gate.
    pub(super) hot_until: Duration,
    pub(super) is_dead: bool,
    /// Whether no run process starts on it.
    pub(super) is_broken: bool,
}

impl Device {
    fn is_reached(&self, now: Duration) -> bool {
        !self.is_dead && self.link_lost_until <= now
    }

    fn has(&self, run: RunId) -> bool {
        self.run.is_some_and(|(own, _)| own == run)
    }

    /// Returns the end of an attempt on this device.
    fn end(&self, attempt: &AttemptRow, attempts: &[AttemptRow], now: Duration) -> (RunState, RunOutcome) {
        if self.is_broken {
            let reason = format!("{}: (os error 5)", end_reason::NO_PROCESS);
            (failed(&reason), RunOutcome::default())
        } else if self.hot_until > now {
            let reason = format!("{}: soc is at 71.5 C", end_reason::GATE_CLOSED);
            (failed(&reason), RunOutcome::default())
        } else {
            ending(attempt.cell, earlier_ends(attempts, attempt))
        }
    }
}

/// The lab: its coordinator's scheduler and its devices.
pub(super) struct World {
    scheduler: Option<Scheduler>,
    workspace: Workspace,
    _directory: tempfile::TempDir,
    pub(super) devices: BTreeMap<DeviceId, Device>,
    begin: (Instant, Timestamp),
    pub(super) elapsed: Duration,
    /// By how much the wall clock is wrong. The monotonic clock never is.
    pub(super) wall_error: SignedDuration,
}

impl World {
    /// Creates a lab with the campaign begun.
    pub(super) fn new(size: &Size) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(&directory.path().join("lab"), "schema = 1\n").unwrap();
        let store = Store::open(Path::new(":memory:")).unwrap();
        let wall: Timestamp = "2026-11-27T18:00:00Z".parse().unwrap();
        let mut devices = BTreeMap::new();
        for number in 0..DEVICES {
            let hello = hello(number);
            store.devices().record_hello(&hello).unwrap();
            devices.insert(hello.device, Device::default());
        }
        add_campaign(&store, &workspace, size, wall);
        Self {
            scheduler: Some(Scheduler::new(workspace.clone(), store)),
            workspace,
            _directory: directory,
            devices,
            begin: (Instant::now(), wall),
            elapsed: Duration::ZERO,
            wall_error: SignedDuration::ZERO,
        }
    }

    pub(super) fn store(&self) -> &Store {
        self.scheduler.as_ref().unwrap().store()
    }

    pub(super) fn device(&mut self, id: &DeviceId) -> &mut Device {
        self.devices.get_mut(id).unwrap()
    }

    /// Gives a device an agent that states its software, which the one before did not.
    pub(super) fn upgrade(&self, device: &DeviceId) {
        let number = (0..DEVICES)
            .find(|number| hello(*number).device == *device)
            .unwrap();
        let facts = DeviceFacts {
            software: Some(SoftwareFacts {
                agent_sha256: Some("0c".repeat(32)),
                ..SoftwareFacts::default()
            }),
            ..DeviceFacts::default()
        };
        let hello = Hello {
            facts_json: serde_json::to_vec(&facts).unwrap(),
            ..hello(number)
        };
        self.store().devices().record_hello(&hello).unwrap();
    }

    /// Replaces the scheduler by one that knows only the store.
    pub(super) fn kill_scheduler(&mut self) {
        let store = self.scheduler.take().unwrap().into_store();
        self.scheduler = Some(Scheduler::new(self.workspace.clone(), store));
    }

    /// Kills the agent of a device, and starts it again. Its run has failed then.
    pub(super) fn kill_agent(&mut self, id: &DeviceId) {
        let now = self.elapsed;
        let device = self.device(id);
        if !device.is_reached(now) {
            return;
        }
        if let Some((run, _)) = device.run.take() {
            let row = self.store().runs().get(run).unwrap().unwrap();
            let failed = failed(end_reason::AGENT_DOWN);
            record(self.store(), &row, &failed, &RunOutcome::default());
        }
    }

    /// Advances the clock, and lets the scheduler look.
    pub(super) fn step(&mut self) {
        self.elapsed += STEP;
        let now = Now {
            instant: self.begin.0 + self.elapsed,
            wall: self.begin.1 + SignedDuration::try_from(self.elapsed).unwrap() + self.wall_error,
        };
        self.scheduler.as_mut().unwrap().look(now).unwrap();
    }

    /// Lets the scheduler look while the wall clock is wrong by `error`.
    pub(super) fn misread_clock(&mut self, error: SignedDuration) {
        let now = Now {
            instant: self.begin.0 + self.elapsed,
            wall: self.begin.1 + SignedDuration::try_from(self.elapsed).unwrap() + error,
        };
        self.scheduler.as_mut().unwrap().look(now).unwrap();
    }

    /// Lets the devices, the dispatcher and the finisher do their part.
    pub(super) fn run_devices(&mut self) {
        let ids: Vec<DeviceId> = self.devices.keys().cloned().collect();
        for id in &ids {
            if self.devices[id].is_reached(self.elapsed) {
                self.store()
                    .devices()
                    .record_heartbeat(id, None, BoardReadings::default())
                    .unwrap();
                self.report_aborts(id);
                self.report_end(id);
            } else {
                self.store().devices().mark_offline(id).unwrap();
            }
        }
        let attempts = self.store().attempts().open().unwrap();
        for attempt in attempts.iter().filter(|attempt| !attempt.is_run_over) {
            let run = attempt.run.unwrap();
            if attempt.cause.is_some() || !self.devices[&attempt.device].has(run) {
                self.deliver(run);
            }
        }
    }

    /// Reports the runs as aborted whose abort the coordinator requested.
    fn report_aborts(&mut self, id: &DeviceId) {
        for (run, _) in self.store().runs().pending_aborts(id).unwrap() {
            let aborted = RunState {
                phase: RunPhase::Aborted,
                reason: None,
                revision: 9,
            };
            self.store().runs().record_state(id, run, &aborted).unwrap();
            let device = self.device(id);
            if device.has(run) {
                device.run = None;
            }
        }
    }

    /// Delivers the device's run if its time is over.
    fn report_end(&mut self, id: &DeviceId) {
        let now = self.elapsed;
        let Some((run, _)) = self.devices[id].run.filter(|(_, ends)| *ends <= now) else {
            return;
        };
        self.device(id).run = None;
        let store = self.store();
        let row = store.runs().get(run).unwrap().unwrap();
        let attempts = store.attempts().of_campaign(CAMPAIGN).unwrap();
        let attempt = attempts.iter().find(|attempt| attempt.run == Some(run)).unwrap();
        let (state, outcome) = self.devices[id].end(attempt, &attempts, now);
        record(store, &row, &state, &outcome);
    }

    /// Sends a run to its device if that is reached, or records a run that was given up.
    fn deliver(&mut self, run: RunId) {
        let now = self.elapsed;
        let store = self.store();
        let row = store.runs().get(run).unwrap().unwrap();
        if row.lost {
            // The finisher records a given-up run without the device.
            record(store, &row, &row.state, &RunOutcome::default());
            return;
        }
        let device = &self.devices[&row.device];
        if row.spec_sha256.is_some() || !device.is_reached(now) {
            return;
        }
        assert_eq!(device.run, None, "two runs on a device");
        assert!(store.runs().fix_spec(row.id, "00").unwrap());
        store
            .runs()
            .record_state(&row.device, row.id, &running())
            .unwrap();
        let is_refused = device.is_broken || device.hot_until > now;
        let time = if is_refused { STEP } else { RUN };
        self.device(&row.device).run = Some((row.id, now + time));
    }

    pub(super) fn has_ended(&self) -> bool {
        self.store()
            .campaigns()
            .get(CAMPAIGN)
            .unwrap()
            .unwrap()
            .ended
            .is_some()
    }
}

fn add_campaign(store: &Store, workspace: &Workspace, size: &Size, wall: Timestamp) {
    let plan = size.plan();
    let rows = store.devices().all().unwrap();
    let lab = Lab {
        devices: &rows,
        catalogue: &Catalogue::read(None).unwrap(),
        files: &RunFiles::read(workspace, store).unwrap(),
        meters: &[],
    };
    let expanded = expand(&plan, &lab, wall).unwrap();
    let new = NewCampaign {
        row: &expanded.campaign,
        plan: &plan.text,
        combinations: &expanded.combinations,
        cells: &expanded.cells,
        pins_software: plan.pins_software,
    };
    assert!(store.campaigns().add(&new).unwrap());
    assert!(!store.campaigns().add(&new).unwrap(), "the name is taken");
}

fn hello(number: u8) -> Hello {
    let public_key = [number + 1; 32];
    Hello {
        device: DeviceId::of_public_key(&public_key),
        name: format!("board-{number}"),
        public_key,
        online: true,
        agent: "0.1.0".to_owned(),
        engines: vec![EngineKind::Null],
        facts_json: serde_json::to_vec(&DeviceFacts::default()).unwrap(),
        runs: Vec::new(),
    }
}

fn record(store: &Store, row: &RunRow, state: &RunState, outcome: &RunOutcome) {
    let record = example_record(row, state);
    assert!(store.runs().record(row, &record, outcome).unwrap());
    judge_device(store, row.id, QUARANTINE_AFTER).unwrap();
}
