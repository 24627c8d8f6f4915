//! The faults of the simulated weekend, and when they happen.

use std::time::Duration;

use jiff::SignedDuration;
use regatta_types::DeviceId;

use super::{
    dice::Dice,
    plan::Size,
    world::{STEP, World},
};

/// The kills, half of them of the scheduler and half of agents.
pub(super) const KILLS: u64 = 100;
/// The steps of the wall clock. One forward lasts for one look of the scheduler, because a clock that stays beyond the deadline ends the
/// campaign; one back lasts longer.
pub(super) const CLOCK_STEPS: u64 = 40;
/// By how many hours the clock steps. The deadline is 72 hours after the start.
const CLOCK_STEP_HOURS: [i64; 6] = [-720, -1, 2, 40, 100, 720];
/// The most looks of the scheduler for which the clock is behind.
const MAX_LOOKS_BEHIND: u64 = 12;
const LOST_LINKS: u64 = 200;
/// The times at which a device becomes too hot for the gate.
const HOT_TIMES: u64 = 12;
/// The steps at which a device dies.
const DEATHS: [u64; 4] = [15, 16, 50, 110];
/// The step at which a device breaks.
const BREAK: u64 = 30;

/// Returns the number of steps in a time.
pub(super) fn steps_in(hours: u64) -> u64 {
    hours * 3_600 / STEP.as_secs()
}

/// Draws and causes the faults. Kills and clock steps are drawn apart, so that all other faults are the same with and without them.
pub(super) struct Faults {
    ids: Vec<DeviceId>,
    dice: Dice,
    links: Vec<u64>,
    hot: Vec<u64>,
    killing: Dice,
    kill_steps: Vec<u64>,
    pub(super) killed: u64,
    stepping: Dice,
    clock_steps: Vec<u64>,
    /// The step at which the clock is right again.
    right_from: u64,
    pub(super) stepped: u64,
}

impl Faults {
    pub(super) fn new(size: &Size, world: &World, is_disturbed: bool) -> Self {
        let (mut dice, mut killing, mut stepping) = (Dice::new(3), Dice::new(4), Dice::new(5));
        let steps = steps_in(size.hours);
        Self {
            ids: world.devices.keys().cloned().collect(),
            links: dice.steps(LOST_LINKS, steps),
            hot: dice.steps(HOT_TIMES, steps),
            dice,
            kill_steps: killing.steps(if is_disturbed { KILLS } else { 0 }, steps),
            killing,
            killed: 0,
            clock_steps: stepping.steps(if is_disturbed { CLOCK_STEPS } else { 0 }, steps),
            stepping,
            right_from: 0,
            stepped: 0,
        }
    }

    /// Causes the faults of a step.
    pub(super) fn cause(&mut self, step: u64, world: &mut World) {
        if DEATHS.contains(&step) {
            world
                .device(&self.ids[usize::try_from(step % 49).unwrap()])
                .is_dead = true;
        }
        if step == BREAK {
            world.device(&self.ids[7]).is_broken = true;
        }
        for _ in 0..count(&self.links, step) {
            let until = world.elapsed + Duration::from_secs(60 * (5 + self.dice.below(35)));
            world.device(any(&self.ids, &mut self.dice)).link_lost_until = until;
        }
        for _ in 0..count(&self.hot, step) {
            let until = world.elapsed + Duration::from_secs(3_600 * (1 + self.dice.below(5)));
            world.device(any(&self.ids, &mut self.dice)).hot_until = until;
        }
        if step >= self.right_from {
            world.wall_error = SignedDuration::ZERO;
        }
        for _ in 0..count(&self.clock_steps, step) {
            let hours = CLOCK_STEP_HOURS[usize::try_from(self.stepped).unwrap() % CLOCK_STEP_HOURS.len()];
            world.wall_error = SignedDuration::from_hours(hours);
            let looks = if hours < 0 {
                1 + self.stepping.below(MAX_LOOKS_BEHIND)
            } else {
                1
            };
            self.right_from = step + looks;
            self.stepped += 1;
        }
        for _ in 0..count(&self.kill_steps, step) {
            self.killed += 1;
            if self.killed.is_multiple_of(2) {
                world.kill_scheduler();
            } else {
                world.kill_agent(any(&self.ids, &mut self.killing));
            }
        }
    }
}

fn count(events: &[u64], step: u64) -> usize {
    events.iter().filter(|event| **event == step).count()
}

fn any<'a>(ids: &'a [DeviceId], dice: &mut Dice) -> &'a DeviceId {
    &ids[usize::try_from(dice.below(ids.len() as u64)).unwrap()]
}
