//! A campaign on 50 devices in virtual time, over the real store and scheduler: devices fail, overheat, break, lose their link and die, and
//! scheduler and agents are killed. The simulated fleet does what dispatcher, devices and finisher do to the store.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use regatta_config::catalogue::Catalogue;
use regatta_types::{
    DeviceId, RunId,
    documents::{DeviceFacts, EndCause, EngineKind, RunPhase, RunState, end_reason},
};
use regatta_wire::message::Hello;

use super::{
    CampaignPlan, Lab, expand,
    retry::is_of_a_place,
    scheduler::{Now, Scheduler},
};
use crate::{
    runs::{RunFiles, example_record, judge_device},
    store::{
        AttemptRow, CampaignState, CellRow, CellState, HealthChange, NewCampaign, Placement, RunOutcome,
        RunRow, Store,
    },
    workspace::Workspace,
};

const DEVICES: u8 = 50;
/// The kills, half of them of the scheduler and half of agents.
const KILLS: u64 = 100;
const LOST_LINKS: u64 = 200;
/// The times at which a device becomes too hot for the gate.
const HOT_TIMES: u64 = 12;
/// The failures in a row that quarantine a device.
const QUARANTINE_AFTER: u32 = 3;
/// The interval between two looks of the scheduler.
const STEP: Duration = Duration::from_secs(600);
const RUN: Duration = Duration::from_secs(4 * 3_600);

/// The size of a simulated campaign.
struct Size {
    /// The repetitions of the cells that any device may take.
    repeat: u64,
    /// The time within which the faults happen. The campaign takes a little longer.
    hours: u64,
}

/// The form of every landing.
const SHORT: Size = Size {
    repeat: 40,
    hours: 20,
};
/// The form of `.ci/long`: a weekend.
const WEEKEND: Size = Size {
    repeat: 160,
    hours: 60,
};

const PLAN: &str = r#"
schema = 1
name = "weekend"
seed = 11
deadline = "72h"
lose_device_after = "20m"

[[cells]]
devices = ["all"]
benchmark = "digits"
scenario = ["SingleStream", "Offline"]
engine = "null"
settings = [{ name = "a" }, { name = "b", set = { batch_size = "2" } }]
repeat = REPEAT

[[cells]]
devices = ["all"]
placement = "each"
benchmark = "digits"
scenario = ["Offline"]
engine = "null"
repeat = 2

[[cells]]
devices = ["all"]
placement = "same"
benchmark = "digits"
scenario = ["SingleStream", "Offline"]
engine = "null"
repeat = 5
priority = 1
"#;

/// A small generator (splitmix64), so that every run of the test is the same.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// A device of the simulated fleet.
#[derive(Default)]
struct Device {
    /// Its run, and when that ends.
    run: Option<(RunId, Duration)>,
    /// Until when its link is down.
    link_lost_until: Duration,
    /// Until when it is too hot for the gate.
    hot_until: Duration,
    is_dead: bool,
    /// Whether no run process starts on it.
    is_broken: bool,
}

struct World {
    scheduler: Option<Scheduler>,
    workspace: Workspace,
    _directory: tempfile::TempDir,
    devices: BTreeMap<DeviceId, Device>,
    begin: (Instant, Timestamp),
    elapsed: Duration,
}

/// How a simulated run ends, by its cell and the number of the cell's earlier ends on devices: the same with and without kills.
fn ending(cell: u64, earlier: u64) -> (RunState, RunOutcome) {
    let mut dice = Dice(cell * 1_000 + earlier);
    let good = RunOutcome {
        valid: Some(true),
        complete: true,
        signed: Some(true),
        ..RunOutcome::default()
    };
    match dice.below(100) {
        0..8 => (failed(&format!("{}: soc 97 C", end_reason::STATE_LOST)), good),
        8..11 => (failed("the engine failed: out of tensors"), good),
        11..14 => {
            let invalid = RunOutcome {
                valid: Some(false),
                reasons: vec!["the SUT completed a sample twice".to_owned()],
                ..good
            };
            (done(), invalid)
        }
        _ => (done(), good),
    }
}

fn failed(reason: &str) -> RunState {
    RunState {
        phase: RunPhase::Failed,
        reason: Some(reason.to_owned()),
        revision: 9,
    }
}

fn done() -> RunState {
    RunState {
        phase: RunPhase::Done,
        reason: None,
        revision: 9,
    }
}

impl World {
    fn new(size: &Size) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(&directory.path().join("lab"), "schema = 1\n").unwrap();
        let store = Store::open(Path::new(":memory:")).unwrap();
        let wall: Timestamp = "2026-11-27T18:00:00Z".parse().unwrap();
        let mut devices = BTreeMap::new();
        for number in 0..DEVICES {
            let hello = hello(number);
            store.device_sent_hello(&hello).unwrap();
            devices.insert(hello.device, Device::default());
        }
        let plan = CampaignPlan::read(&PLAN.replace("REPEAT", &size.repeat.to_string())).unwrap();
        let catalogue = Catalogue::read(None).unwrap();
        let files = RunFiles::read(&workspace, &store).unwrap();
        let rows = store.devices().unwrap();
        let lab = Lab {
            devices: &rows,
            catalogue: &catalogue,
            files: &files,
        };
        let expanded = expand(&plan, &lab, wall).unwrap();
        let new = NewCampaign {
            row: &expanded.campaign,
            plan: &plan.text,
            combinations: &expanded.combinations,
            cells: &expanded.cells,
        };
        assert!(store.add_campaign(&new).unwrap());
        assert!(!store.add_campaign(&new).unwrap(), "the name is taken");
        drop(files);
        Self {
            scheduler: Some(Scheduler::new(workspace.clone(), store)),
            workspace,
            _directory: directory,
            devices,
            begin: (Instant::now(), wall),
            elapsed: Duration::ZERO,
        }
    }

    fn store(&self) -> &Store {
        self.scheduler.as_ref().unwrap().store()
    }

    /// Replaces the scheduler by one that knows only the store.
    fn kill_scheduler(&mut self) {
        let store = self.scheduler.take().unwrap().into_store();
        self.scheduler = Some(Scheduler::new(self.workspace.clone(), store));
    }

    /// Kills the agent of a device, and starts it again. Its run has failed then.
    fn kill_agent(&mut self, id: &DeviceId) {
        let store = self.scheduler.as_ref().unwrap().store();
        let device = self.devices.get_mut(id).unwrap();
        if device.is_dead || device.link_lost_until > self.elapsed {
            return;
        }
        if let Some((run, _)) = device.run.take() {
            let row = store.run(run).unwrap().unwrap();
            record(
                store,
                &row,
                &failed(end_reason::AGENT_DOWN),
                &RunOutcome::default(),
            );
        }
    }

    fn step(&mut self) {
        self.elapsed += STEP;
        let now = Now {
            instant: self.begin.0 + self.elapsed,
            wall: self.begin.1 + SignedDuration::try_from(self.elapsed).unwrap(),
        };
        self.scheduler.as_mut().unwrap().look(now).unwrap();
    }

    /// Lets the devices, the dispatcher and the finisher do their part.
    fn run_devices(&mut self) {
        let store = self.scheduler.as_ref().unwrap().store();
        for (id, device) in &mut self.devices {
            let is_heard = !device.is_dead && device.link_lost_until <= self.elapsed;
            if !is_heard {
                store.device_left(id).unwrap();
                continue;
            }
            store.device_lives(id, None).unwrap();
            for (run, _) in store.pending_aborts(id).unwrap() {
                let aborted = RunState {
                    phase: RunPhase::Aborted,
                    reason: None,
                    revision: 9,
                };
                store.device_reported_state(id, run, &aborted).unwrap();
                if device.run.is_some_and(|(own, _)| own == run) {
                    device.run = None;
                }
            }
            if let Some((run, _)) = device.run.filter(|(_, ends)| *ends <= self.elapsed) {
                device.run = None;
                let row = store.run(run).unwrap().unwrap();
                let attempts = store.attempts("weekend").unwrap();
                let attempt = attempts.iter().find(|attempt| attempt.run == Some(run)).unwrap();
                let (state, outcome) = if device.is_broken {
                    let reason = format!("{}: (os error 5)", end_reason::NO_PROCESS);
                    (failed(&reason), RunOutcome::default())
                } else if device.hot_until > self.elapsed {
                    let reason = format!("{}: soc is at 71.5 C", end_reason::GATE_CLOSED);
                    (failed(&reason), RunOutcome::default())
                } else {
                    ending(attempt.cell, earlier_ends(&attempts, attempt))
                };
                record(store, &row, &state, &outcome);
            }
        }
        for attempt in store
            .open_attempts()
            .unwrap()
            .iter()
            .filter(|attempt| !attempt.is_run_over)
        {
            let run = attempt.run.unwrap();
            let is_on = self.devices[&attempt.device]
                .run
                .is_some_and(|(own, _)| own == run);
            if is_on && attempt.cause.is_none() {
                continue;
            }
            let row = store.run(run).unwrap().unwrap();
            let device = self.devices.get_mut(&row.device).unwrap();
            if row.lost {
                // The finisher records a given-up run without the device.
                record(store, &row, &row.state, &RunOutcome::default());
            } else if row.spec_sha256.is_none() && !device.is_dead && device.link_lost_until <= self.elapsed {
                assert_eq!(device.run, None, "two runs on a device");
                assert!(store.fix_spec(row.id, "00").unwrap());
                let running = RunState {
                    phase: RunPhase::Running,
                    reason: None,
                    revision: 3,
                };
                store
                    .device_reported_state(&row.device, row.id, &running)
                    .unwrap();
                let is_refused = device.is_broken || device.hot_until > self.elapsed;
                let time = if is_refused { STEP } else { RUN };
                device.run = Some((row.id, self.elapsed + time));
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.store().campaign("weekend").unwrap().unwrap().ended.is_some()
    }
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
    assert!(store.run_is_recorded(row, &record, outcome).unwrap());
    judge_device(store, row.id, QUARANTINE_AFTER).unwrap();
}

/// The number of earlier attempts of the same cell that ended as [`ending`] decided, and not by a fault.
fn earlier_ends(attempts: &[AttemptRow], attempt: &AttemptRow) -> u64 {
    let earlier = attempts
        .iter()
        .filter(|other| other.cell == attempt.cell && other.number < attempt.number);
    earlier
        .filter(|other| match other.cause {
            Some(EndCause::Device) => {
                let reason = other.reason.as_deref().unwrap_or_default();
                reason.starts_with(end_reason::STATE_LOST)
            }
            cause => !cause.is_some_and(is_of_a_place),
        })
        .count() as u64
}

/// Draws the steps of faults within a time.
fn steps_of(count: u64, steps: u64, dice: &mut Dice) -> Vec<u64> {
    (0..count).map(|_| dice.below(steps)).collect()
}

/// Runs the campaign to its end. Returns its cells and attempts, and the devices that died.
fn run(size: &Size, kills: bool) -> (Vec<CellRow>, Vec<AttemptRow>, BTreeSet<DeviceId>) {
    let mut world = World::new(size);
    let (mut dice, mut killing) = (Dice(3), Dice(4));
    let ids: Vec<DeviceId> = world.devices.keys().cloned().collect();
    let steps_in = |hours: u64| hours * 3_600 / STEP.as_secs();
    let steps = steps_in(size.hours);
    let links = steps_of(LOST_LINKS, steps, &mut dice);
    let hot = steps_of(HOT_TIMES, steps, &mut dice);
    let kill_steps = steps_of(KILLS, steps, &mut killing);
    let mut killed = 0;
    for step in 0..steps_in(72) + 12 {
        let any = |dice: &mut Dice| ids[usize::try_from(dice.below(u64::from(DEVICES))).unwrap()].clone();
        let count = |events: &[u64]| events.iter().filter(|event| **event == step).count();
        // 4 devices die, and one breaks.
        if [15, 16, 50, 110].contains(&step) {
            let id = &ids[usize::try_from(step % 49).unwrap()];
            world.devices.get_mut(id).unwrap().is_dead = true;
        }
        if step == 30 {
            world.devices.get_mut(&ids[7]).unwrap().is_broken = true;
        }
        for _ in 0..count(&links) {
            let until = world.elapsed + Duration::from_secs(60 * (5 + dice.below(35)));
            world.devices.get_mut(&any(&mut dice)).unwrap().link_lost_until = until;
        }
        for _ in 0..count(&hot) {
            let until = world.elapsed + Duration::from_secs(3_600 * (1 + dice.below(5)));
            world.devices.get_mut(&any(&mut dice)).unwrap().hot_until = until;
        }
        for _ in (0..count(&kill_steps)).filter(|_| kills) {
            killed += 1;
            if killed % 2 == 0 {
                world.kill_scheduler();
            } else {
                world.kill_agent(&any(&mut killing));
            }
        }
        world.run_devices();
        world.step();
        if world.has_ended() {
            assert!(step >= steps, "the faults are over before the campaign");
            break;
        }
    }
    assert_eq!(killed, if kills { KILLS } else { 0 });
    assert!(world.has_ended(), "the campaign ends");
    let store = world.store();
    assert_eq!(store.open_attempts().unwrap(), []);
    let dead = world.devices.iter().filter(|(_, device)| device.is_dead);
    let attempts = store.attempts("weekend").unwrap();
    let runs: BTreeSet<RunId> = store.runs().unwrap().iter().map(|row| row.id).collect();
    let requested: BTreeSet<RunId> = attempts.iter().filter_map(|attempt| attempt.run).collect();
    assert_eq!(
        runs, requested,
        "every run belongs to one attempt, and none is lost"
    );
    assert_eq!(requested.len(), attempts.len());
    let combinations = store.combinations("weekend").unwrap();
    let cells = store.cells("weekend").unwrap();
    check_same(&cells, &attempts, |cell: &CellRow| {
        combinations[usize::try_from(cell.combination).unwrap()].placement == Placement::Same
    });
    let dead = dead.map(|(id, _)| id.clone()).collect();
    (cells, attempts, dead)
}

/// The good attempts of a combination that is placed on one device are on one device.
fn check_same(cells: &[CellRow], attempts: &[AttemptRow], is_same: impl Fn(&CellRow) -> bool) {
    let mut devices: BTreeMap<u64, BTreeSet<&DeviceId>> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| is_same(cell)) {
        let own = attempts.iter().filter(|attempt| attempt.cell == cell.number);
        let good = own.filter(|attempt| attempt.cause.is_none());
        devices
            .entry(cell.combination)
            .or_default()
            .extend(good.map(|attempt| &attempt.device));
    }
    assert!(devices.values().all(|devices| devices.len() <= 1), "{devices:?}");
}

/// `REGATTA_SIMULATED_WEEKEND` selects the form of `.ci/long`.
#[test]
fn a_weekend_with_kills_ends_as_one_without() {
    let size = match std::env::var_os("REGATTA_SIMULATED_WEEKEND") {
        Some(_) => &WEEKEND,
        None => &SHORT,
    };
    let (calm, calm_attempts, dead) = run(size, false);
    let (cells, attempts, _) = run(size, true);
    assert_eq!((cells.len() as u64, dead.len()), (4 * size.repeat + 110, 4));
    for cause in [EndCause::Device, EndCause::Infrastructure, EndCause::Precondition] {
        let happened = attempts.iter().any(|attempt| attempt.cause == Some(cause));
        assert!(happened, "no attempt failed by {cause}");
    }
    for cell in &cells {
        let own: Vec<&AttemptRow> = attempts.iter().filter(|row| row.cell == cell.number).collect();
        let good = own.iter().filter(|attempt| attempt.cause.is_none()).count();
        let last = own.last();
        match cell.state {
            CellState::Good => assert!(
                good == 1 && last.is_some_and(|last| last.cause.is_none()),
                "{own:?}"
            ),
            CellState::Failed => {
                // A cell whose only device died may fail without an attempt there.
                let is_lost = matches!(cell.cause, Some(EndCause::Infrastructure | EndCause::Device));
                let by_last = last.is_some_and(|last| last.cause == cell.cause);
                assert!(good == 0 && (by_last || is_lost), "{cell:?} {own:?}");
                assert!(cell.reason.is_some());
            }
            CellState::Waiting | CellState::Skipped => panic!("{cell:?}"),
        }
        let of_place = own
            .iter()
            .filter(|attempt| attempt.cause.is_some_and(is_of_a_place));
        assert!(of_place.count() <= 3, "{own:?}");
    }
    // Device failures depend on the schedule. Benchmark failures do not.
    let ends = |cells: &[CellRow]| -> BTreeMap<u64, (CellState, Option<EndCause>)> {
        let judged = cells.iter().filter(|cell| !cell.cause.is_some_and(is_of_a_place));
        judged
            .map(|cell| (cell.number, (cell.state, cell.cause)))
            .collect()
    };
    let (calm, disturbed) = (ends(&calm), ends(&cells));
    let differing: Vec<_> = disturbed
        .iter()
        .filter(|(cell, end)| calm.get(cell).is_some_and(|other| other != *end))
        .collect();
    let of_cell = |rows: &[AttemptRow], cell| -> Vec<_> {
        let own = rows.iter().filter(|row| row.cell == cell);
        own.map(|row| (row.cause, row.reason.clone())).collect()
    };
    let explained: Vec<_> = differing
        .iter()
        .map(|(cell, _)| (of_cell(&calm_attempts, **cell), of_cell(&attempts, **cell)))
        .collect();
    assert!(explained.is_empty(), "{explained:?}");
    // A cell that only a dead, broken, hot or quarantined device may take fails by that device. Most others have a result.
    let most = cells.len() * 8 / 10;
    assert!(
        calm.len() > most && disturbed.len() > most,
        "{} and {} of {}",
        calm.len(),
        disturbed.len(),
        cells.len()
    );
    let of_any: Vec<_> = cells.iter().filter(|cell| cell.device.is_none()).collect();
    let with_result = of_any
        .iter()
        .filter(|cell| disturbed.contains_key(&cell.number))
        .count();
    assert!(
        with_result * 100 >= of_any.len() * 95,
        "{with_result} of {} cells of any device",
        of_any.len()
    );
}

#[test]
fn an_aborted_campaign_ends_although_a_device_never_returns() {
    let mut world = World::new(&SHORT);
    world.step();
    world.run_devices();
    let open = world.store().open_attempts().unwrap();
    let lost = open.first().unwrap().device.clone();
    world.devices.get_mut(&lost).unwrap().is_dead = true;
    world
        .store()
        .request_campaign_state("weekend", CampaignState::Aborted)
        .unwrap();
    for _ in 0..40 {
        world.run_devices();
        world.step();
    }
    assert!(world.has_ended());
    let attempts = world.store().attempts("weekend").unwrap();
    let of_lost = attempts.iter().find(|attempt| attempt.device == lost).unwrap();
    assert_eq!(of_lost.cause, Some(EndCause::Operator), "the first cause counts");
}

#[test]
fn a_drained_device_loses_the_run_that_it_does_not_have_yet() {
    let mut world = World::new(&SHORT);
    world.step();
    let store = world.store();
    let drained = store.open_attempts().unwrap().first().unwrap().clone();
    store
        .change_health(&drained.device, HealthChange::Drained(None), "operator")
        .unwrap();
    world.step();
    let store = world.store();
    let run = store.run(drained.run.unwrap()).unwrap().unwrap();
    assert_eq!(run.state.phase, RunPhase::Aborted);
    world.step();
    let attempts = world.store().attempts("weekend").unwrap();
    let own: Vec<&AttemptRow> = attempts.iter().filter(|row| row.cell == drained.cell).collect();
    assert_eq!(own[0].cause, Some(EndCause::Infrastructure));
    assert!(
        own[0]
            .reason
            .as_ref()
            .unwrap()
            .contains("in maintenance before it had the run")
    );
    let again = own.get(1).map(|attempt| &attempt.device);
    assert!(again.is_none_or(|device| *device != drained.device));
    let on_drained = attempts.iter().filter(|row| row.device == drained.device);
    assert_eq!(on_drained.count(), 1, "it gets no other cell");
}
