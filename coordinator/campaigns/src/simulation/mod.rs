//! A campaign on 50 devices in virtual time, over the real store and scheduler: devices fail, overheat, break, lose their link and die,
//! scheduler and agents are killed, and the wall clock steps. Here is what must hold; [`world`] is the simulated lab, [`faults`] what
//! happens to it, and [`ending`] how its runs end.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use regatta_types::{
    DeviceId, RunId,
    documents::{EndCause, RunPhase},
};

use self::{
    faults::{CLOCK_STEPS, Faults, KILLS, steps_in},
    plan::{CAMPAIGN, SHORT, Size},
    world::World,
};
use super::retry::retryable_on_another_device;
use regatta_lab_store::{AttemptRow, CampaignState, CellRow, CellState, HealthChange, Placement, Store};

mod dice;
mod ending;
mod faults;
mod plan;
mod world;

/// A campaign that has ended.
struct Ended {
    cells: Vec<CellRow>,
    attempts: Vec<AttemptRow>,
    /// The number of devices that died.
    dead: usize,
}

impl Ended {
    fn of(&self, cell: u64) -> Vec<&AttemptRow> {
        self.attempts
            .iter()
            .filter(|attempt| attempt.cell == cell)
            .collect()
    }

    /// Returns the ends of the cells that the benchmark or an operator decided. Device failures depend on the schedule.
    fn judged(&self) -> BTreeMap<u64, (CellState, Option<EndCause>)> {
        let judged = self
            .cells
            .iter()
            .filter(|cell| !cell.cause.is_some_and(retryable_on_another_device));
        judged
            .map(|cell| (cell.number, (cell.state, cell.cause)))
            .collect()
    }

    /// Returns the causes of a cell's attempts, for messages.
    fn causes(&self, cell: u64) -> Vec<(Option<EndCause>, Option<String>)> {
        let own = self.of(cell).into_iter();
        own.map(|row| (row.cause, row.reason.clone())).collect()
    }
}

/// Runs the campaign to its end.
fn run(size: &Size, is_disturbed: bool) -> Ended {
    let mut world = World::new(size);
    let mut faults = Faults::new(size, &world, is_disturbed);
    for step in 0..steps_in(72) + 12 {
        faults.cause(step, &mut world);
        world.run_devices();
        world.step();
        if world.has_ended() {
            assert!(
                step >= steps_in(size.hours),
                "the faults are over before the campaign"
            );
            break;
        }
    }
    let expected = if is_disturbed {
        (KILLS, CLOCK_STEPS)
    } else {
        (0, 0)
    };
    assert_eq!((faults.killed, faults.stepped), expected);
    assert!(world.has_ended(), "the campaign ends");
    let store = world.store();
    let ended = Ended {
        cells: store.cells().of_campaign(CAMPAIGN).unwrap(),
        attempts: store.attempts().of_campaign(CAMPAIGN).unwrap(),
        dead: world.devices.values().filter(|device| device.is_dead).count(),
    };
    check_runs(&ended, store);
    check_same(&ended, store);
    ended
}

/// Checks that every run belongs to one attempt, and that no attempt is open.
fn check_runs(ended: &Ended, store: &Store) {
    assert_eq!(store.attempts().open().unwrap(), []);
    let runs: BTreeSet<RunId> = store.runs().all().unwrap().iter().map(|row| row.id).collect();
    let requested: BTreeSet<RunId> = ended.attempts.iter().filter_map(|attempt| attempt.run).collect();
    assert_eq!(
        runs, requested,
        "every run belongs to one attempt, and none is lost"
    );
    assert_eq!(requested.len(), ended.attempts.len());
}

/// Checks that the good attempts of a combination that is placed on one device are on one device.
fn check_same(ended: &Ended, store: &Store) {
    let combinations = store.cells().combinations(CAMPAIGN).unwrap();
    let mut devices: BTreeMap<u64, BTreeSet<&DeviceId>> = BTreeMap::new();
    for cell in &ended.cells {
        if combinations[usize::try_from(cell.combination).unwrap()].placement != Placement::Same {
            continue;
        }
        let own = ended.of(cell.number).into_iter();
        let good = own.filter(|attempt| attempt.cause.is_none());
        devices
            .entry(cell.combination)
            .or_default()
            .extend(good.map(|attempt| &attempt.device));
    }
    assert!(devices.values().all(|devices| devices.len() <= 1), "{devices:?}");
}

/// Checks that a cell has its good attempt or a truthful cause, and no more attempts than its causes allow.
fn check_cell(cell: &CellRow, own: &[&AttemptRow]) {
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
        .filter(|attempt| attempt.cause.is_some_and(retryable_on_another_device));
    assert!(of_place.count() <= 3, "{own:?}");
}

#[test]
fn one_wrong_reading_of_the_wall_clock_skips_no_cell() {
    let mut world = World::new(&SHORT);
    for _ in 0..3 {
        world.run_devices();
        world.step();
    }
    world.misread_clock(SignedDuration::from_hours(1_000));
    world.run_devices();
    world.step();
    let cells = world.store().cells().of_campaign(CAMPAIGN).unwrap();
    assert!(cells.iter().all(|cell| cell.state != CellState::Skipped));
    assert!(!world.has_ended());
}

#[test]
fn kills_and_clock_steps_change_no_end_of_a_weekend() {
    let size = Size::selected();
    let calm = run(size, false);
    let disturbed = run(size, true);
    assert_eq!(
        (disturbed.cells.len() as u64, disturbed.dead),
        (4 * size.repeat + 110, 4)
    );
    for cause in [EndCause::Device, EndCause::Infrastructure, EndCause::Precondition] {
        let mut attempts = disturbed.attempts.iter();
        assert!(
            attempts.any(|attempt| attempt.cause == Some(cause)),
            "no attempt failed by {cause}"
        );
    }
    for cell in &disturbed.cells {
        check_cell(cell, &disturbed.of(cell.number));
    }
    let (calm_ends, ends) = (calm.judged(), disturbed.judged());
    let differing = ends
        .iter()
        .filter(|(cell, end)| calm_ends.get(cell).is_some_and(|other| other != *end));
    let explained: Vec<_> = differing
        .map(|(cell, _)| (calm.causes(*cell), disturbed.causes(*cell)))
        .collect();
    assert!(explained.is_empty(), "{explained:?}");
    // A cell that only a dead, broken, hot or quarantined device may take fails by that device. Most others have a result.
    let (least, of) = (disturbed.cells.len() * 8 / 10, disturbed.cells.len());
    assert!(
        calm_ends.len() > least && ends.len() > least,
        "{} and {} of {of}",
        calm_ends.len(),
        ends.len()
    );
    let of_any: Vec<_> = disturbed
        .cells
        .iter()
        .filter(|cell| cell.device.is_none())
        .collect();
    let (with_result, without): (Vec<&CellRow>, Vec<&CellRow>) =
        of_any.iter().partition(|cell| ends.contains_key(&cell.number));
    for cell in &without {
        let own = disturbed.of(cell.number);
        assert_eq!(own.len(), 3, "it is tried again while it may be: {own:?}");
    }
    assert!(
        with_result.len() * 10 >= of_any.len() * 9,
        "{} of {} cells of any device",
        with_result.len(),
        of_any.len()
    );
}

#[test]
fn an_aborted_campaign_ends_although_a_device_never_returns() {
    let mut world = World::new(&SHORT);
    world.step();
    world.run_devices();
    let open = world.store().attempts().open().unwrap();
    let lost = open.first().unwrap().device.clone();
    world.device(&lost).is_dead = true;
    world
        .store()
        .campaigns()
        .request_state(CAMPAIGN, CampaignState::Aborted, "operator")
        .unwrap();
    for _ in 0..40 {
        world.run_devices();
        world.step();
    }
    assert!(world.has_ended());
    let attempts = world.store().attempts().of_campaign(CAMPAIGN).unwrap();
    let of_lost = attempts.iter().find(|attempt| attempt.device == lost).unwrap();
    assert_eq!(of_lost.cause, Some(EndCause::Operator), "the first cause counts");
}

#[test]
fn a_drained_device_loses_the_run_that_it_does_not_have_yet() {
    let mut world = World::new(&SHORT);
    world.step();
    let store = world.store();
    let drained = store.attempts().open().unwrap().first().unwrap().clone();
    store
        .health()
        .change(&drained.device, HealthChange::Drained(None), "operator")
        .unwrap();
    world.step();
    let store = world.store();
    let run = store.runs().get(drained.run.unwrap()).unwrap().unwrap();
    assert_eq!(run.state.phase, RunPhase::Aborted);
    world.step();
    let attempts = world.store().attempts().of_campaign(CAMPAIGN).unwrap();
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

#[test]
fn a_device_with_other_software_takes_no_cell_of_the_campaign() {
    let mut world = World::new(&SHORT);
    let upgraded: DeviceId = world.devices.keys().next().unwrap().clone();
    world.upgrade(&upgraded);
    while !world.has_ended() {
        world.run_devices();
        world.step();
    }
    let store = world.store();
    let attempts = store.attempts().of_campaign(CAMPAIGN).unwrap();
    assert!(!attempts.is_empty() && attempts.iter().all(|attempt| attempt.device != upgraded));
    let cells = store.cells().of_campaign(CAMPAIGN).unwrap();
    let (own, others): (Vec<_>, Vec<_>) = cells
        .iter()
        .partition(|cell| cell.device.as_ref() == Some(&upgraded));
    assert!(!own.is_empty());
    for cell in own {
        let reason = cell.reason.as_ref().unwrap();
        assert_eq!(cell.cause, Some(EndCause::Precondition), "{reason}");
        assert!(
            reason
                .contains(": its agent was unknown when the campaign began and is 0c0c0c0c0c0c now; hint: "),
            "{reason}"
        );
    }
    let refused = |cell: &&&CellRow| cell.cause == Some(EndCause::Precondition);
    assert_eq!(
        others.iter().filter(refused).count(),
        0,
        "they go to the other devices"
    );
}
