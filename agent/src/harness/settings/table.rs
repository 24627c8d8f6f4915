//! The table of settings: each one's name, what its value must be, which engines have it, and how it is taken over.

use std::{ops::RangeInclusive, time::Duration};

use regatta_rules::documents::EngineKind;

use super::{Dispatch, HarnessSettings, Sharing, accelerator};
use crate::engines::sim::SimModel;

/// One setting: its name, what its value must be, and how it is taken over.
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) expected: &'static str,
    /// The engines that have it.
    pub(super) engines: &'static [EngineKind],
    pub(super) take: fn(&mut HarnessSettings, &str) -> Option<()>,
}

impl Setting {
    /// Whether this engine has it.
    pub(super) fn is_of(&self, engine: EngineKind) -> bool {
        self.engines.contains(&engine)
    }
}

/// Every setting, in the order in which they are told.
pub(super) fn settings() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().chain(accelerator::SETTINGS)
}

const EVERY: &[EngineKind] = &EngineKind::ALL;
const SIM: &[EngineKind] = &[EngineKind::Sim];

const SETTINGS: &[Setting] = &[
    Setting {
        name: "batch_size",
        expected: COUNT,
        engines: EVERY,
        take: |s, v| put(&mut s.batch_size, count(v)),
    },
    Setting {
        name: "inference_streams",
        expected: "a whole number from 1 to 256",
        engines: EVERY,
        take: |s, v| {
            put(
                &mut s.inference_streams,
                count(v).filter(|&streams| streams <= 256),
            )
        },
    },
    Setting {
        name: "deque_timeout_usec",
        expected: "a whole number of microseconds",
        engines: EVERY,
        take: |s, v| {
            s.deque_timeout = Duration::from_micros(v.parse().ok()?);
            Some(())
        },
    },
    Setting {
        name: "warmup_duration",
        expected: "a number of seconds from 0 to 3600",
        engines: EVERY,
        take: |s, v| put(&mut s.warmup_duration, seconds(v, 0.0..=3600.0)),
    },
    Setting {
        name: "dispatch",
        expected: "`direct` or `worker`",
        engines: EVERY,
        take: |s, v| put(&mut s.dispatch, dispatch(v)),
    },
    Setting {
        name: "sharing",
        expected: "`together` or `first-free`",
        engines: EVERY,
        take: |s, v| put(&mut s.sharing, sharing(v)),
    },
    Setting {
        name: "timing_cpu",
        expected: "the number of a processor",
        engines: EVERY,
        take: |s, v| put(&mut s.timing_cpu, v.parse().ok()),
    },
    Setting {
        name: "timing_priority",
        expected: "a real-time priority from 1 to 99",
        engines: EVERY,
        take: |s, v| {
            put(
                &mut s.timing_priority,
                v.parse().ok().filter(|priority| (1..=99).contains(priority)),
            )
        },
    },
    Setting {
        name: "timing_wait",
        expected: "`block` or `spin`",
        engines: EVERY,
        take: |s, v| {
            s.timing_spin = match v {
                "block" => false,
                "spin" => true,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "stall_timeout",
        expected: "a number of seconds from 1 to 86400",
        engines: EVERY,
        take: |s, v| put(&mut s.stall_timeout, seconds(v, 1.0..=86_400.0)),
    },
    Setting {
        name: "sim_units",
        expected: "units as NAME=BASE+PER_SAMPLE in microseconds, separated by commas, such as gpu=400+60,dla0=900+210",
        engines: SIM,
        take: |s, v| {
            s.sim.board.units = SimModel::parse_units(v)?;
            s.sim.board.name.clear();
            Some(())
        },
    },
    Setting {
        name: "sim_board",
        expected: "a modelled board such as agx-orin.resnet50, or the path of a board's file",
        engines: SIM,
        take: |s, v| {
            s.sim.board = SimModel::board_named(v)?;
            Some(())
        },
    },
    Setting {
        name: "sim_jitter",
        expected: "a share from 0 to 1",
        engines: SIM,
        take: |s, v| {
            s.sim.board.jitter = v.parse().ok().filter(|share| (0.0..=1.0).contains(share))?;
            Some(())
        },
    },
    Setting {
        name: "sim_seed",
        expected: "a whole number",
        engines: SIM,
        take: |s, v| {
            s.sim.seed = v.parse().ok()?;
            Some(())
        },
    },
];

pub(super) const COUNT: &str = "a whole number from 1 to 1048576";

pub(super) fn put<T>(setting: &mut Option<T>, value: Option<T>) -> Option<()> {
    *setting = Some(value?);
    Some(())
}

pub(super) fn count(given: &str) -> Option<usize> {
    given.parse().ok().filter(|count| (1..=1_048_576).contains(count))
}

pub(super) fn seconds(given: &str, range: RangeInclusive<f64>) -> Option<Duration> {
    let seconds: f64 = given.parse().ok()?;
    range.contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

fn dispatch(given: &str) -> Option<Dispatch> {
    match given {
        "direct" => Some(Dispatch::Direct),
        "worker" => Some(Dispatch::Worker),
        _ => None,
    }
}

fn sharing(given: &str) -> Option<Sharing> {
    match given {
        "together" => Some(Sharing::Together),
        "first-free" => Some(Sharing::FirstFree),
        _ => None,
    }
}
