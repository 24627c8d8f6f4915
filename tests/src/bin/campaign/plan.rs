//! The kinds of faults, and the plan of faults for a seed. It injects nothing.

use std::{fmt, time::Duration};

use regatta_tests::faults::{Rng, deck};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Device,
    Coordinator,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Victim {
    /// `regatta-agent serve`.
    Agent,
    /// `regatta-agent exec`.
    RunProcess,
    /// `regatta serve`, including the embedded broker.
    Coordinator,
    /// mosquitto.
    Broker,
}

/// The moment of a kill that the kernel's report of a closed file selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The agent seals a run: after the run process has reported, or has written the evidence or the signature.
    Sealing,
    /// The coordinator has written a run's record, and has not released the run.
    Recording,
    /// The agent is about to receive a release.
    Releasing,
    /// The device enrolls. This side's process is killed at a random time.
    Enrolling(Side),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyFault {
    /// All data arrives 200 ms late, in both directions.
    Delay,
    /// No data moves, and connections stay open.
    Stall,
    /// Connections are reset on both ends.
    Reset,
    /// One end of each connection is closed without the other end's knowledge. Data that the other end sends is accepted and lost.
    HalfOpen,
    /// The client's end is reset with bytes in transit. They reach the broker after those of the next connection.
    LateBytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// SIGKILL, with a later restart.
    Kill(Victim),
    /// SIGKILL at a moment, with a later restart.
    KillAt(Moment),
    Cut(Side),
    Loss(Side),
    Rate(Side),
    /// A fault of the proxy between this side and the broker.
    Proxy(ProxyFault, Side),
    FullDisk(Side),
    /// The disk accepts a few hundred kilobytes per second.
    SlowDisk(Side),
    /// The clock steps, and later steps back.
    ClockStep(Side),
}

impl Kind {
    /// Returns every kind that a plan has and a broker allows. Kills during enrollment belong to the lab's set-up. No proxy is between the coordinator and an embedded broker.
    pub(crate) fn all(external_broker: bool) -> Vec<Self> {
        use ProxyFault::{Delay, HalfOpen, LateBytes, Reset, Stall};
        use Side::{Coordinator, Device};
        let mut kinds = vec![
            Self::Kill(Victim::Agent),
            Self::Kill(Victim::RunProcess),
            Self::Kill(Victim::Coordinator),
            Self::KillAt(Moment::Sealing),
            Self::KillAt(Moment::Recording),
            Self::KillAt(Moment::Releasing),
        ];
        for side in [Device, Coordinator] {
            kinds.extend([
                Self::Cut(side),
                Self::Loss(side),
                Self::Rate(side),
                Self::FullDisk(side),
                Self::SlowDisk(side),
                Self::ClockStep(side),
            ]);
            if side == Device || external_broker {
                kinds.extend(
                    [Delay, Stall, Reset, HalfOpen, LateBytes]
                        .map(|proxy_fault| Self::Proxy(proxy_fault, side)),
                );
            }
        }
        if external_broker {
            kinds.push(Self::Kill(Victim::Broker));
        }
        kinds
    }

    /// Describes the means of the fault, and whether it is real or simulated.
    pub(crate) const fn means(self) -> &'static str {
        match self {
            Self::Kill(_) | Self::KillAt(Moment::Enrolling(_)) => "SIGKILL",
            Self::KillAt(_) => "SIGKILL when the kernel reports a closed file",
            Self::Cut(_) => "veth set down",
            Self::Loss(_) => "nftables, 5 to 40 % of packets dropped",
            Self::Rate(_) => "tc tbf, 64 to 1,024 kbit/s",
            Self::Proxy(..) => "fault proxy on the veth (simulated)",
            Self::FullDisk(_) => "tmpfs of exactly the size in use",
            Self::SlowDisk(_) => "FUSE (bindfs), 50 to 400 kB/s",
            Self::ClockStep(_) => "libfaketime on that side's processes, 1 s to 30 days",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |side: &Side| match side {
            Side::Device => "device",
            Side::Coordinator => "coordinator",
        };
        match self {
            Self::Kill(Victim::Agent) => f.write_str("kill -9: agent"),
            Self::Kill(Victim::RunProcess) => f.write_str("kill -9: run process"),
            Self::Kill(Victim::Coordinator) => f.write_str("kill -9: coordinator"),
            Self::Kill(Victim::Broker) => f.write_str("kill -9: broker"),
            Self::KillAt(Moment::Sealing) => f.write_str("kill -9: agent while it seals"),
            Self::KillAt(Moment::Recording) => f.write_str("kill -9: coordinator after a record"),
            Self::KillAt(Moment::Releasing) => f.write_str("kill -9: agent at a release"),
            Self::KillAt(Moment::Enrolling(side)) => write!(f, "kill -9 during enrollment: {}", of(side)),
            Self::Cut(side) => write!(f, "link cut: {}", of(side)),
            Self::Loss(side) => write!(f, "packet loss: {}", of(side)),
            Self::Rate(side) => write!(f, "slow link: {}", of(side)),
            Self::Proxy(ProxyFault::Delay, side) => write!(f, "200 ms delay: {}", of(side)),
            Self::Proxy(ProxyFault::Stall, side) => write!(f, "stalled connections: {}", of(side)),
            Self::Proxy(ProxyFault::Reset, side) => write!(f, "reset connections: {}", of(side)),
            Self::Proxy(ProxyFault::HalfOpen, side) => write!(f, "half-open connections: {}", of(side)),
            Self::Proxy(ProxyFault::LateBytes, side) => {
                write!(f, "reordering between connections: {}", of(side))
            }
            Self::FullDisk(side) => write!(f, "full disk: {}", of(side)),
            Self::SlowDisk(side) => write!(f, "slow disk: {}", of(side)),
            Self::ClockStep(side) => write!(f, "clock step: {}", of(side)),
        }
    }
}

/// A fault of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InjectedFault {
    pub(crate) kind: Kind,
    /// The amount, in the unit of the kind: percent, kbit/s, kB/s, seconds or milliseconds.
    pub(crate) amount: i64,
    pub(crate) hold: Duration,
}

impl InjectedFault {
    fn throw(kind: Kind, rng: &mut Rng) -> Self {
        let upwards =
            |rng: &mut Rng, low: u64, high: u64| i64::try_from(rng.between(low, high)).unwrap_or(i64::MAX);
        let amount = match kind {
            Kind::Loss(_) => upwards(rng, 5, 40),
            Kind::Rate(_) => 64 << upwards(rng, 0, 4),
            Kind::SlowDisk(_) => upwards(rng, 50, 400),
            Kind::ClockStep(_) => {
                let step = rng.pick(&[1, 60, 3_600, 86_400, 30 * 86_400]);
                if rng.percent(50) { step } else { -step }
            }
            // The end of the connection that stays open.
            Kind::Proxy(ProxyFault::HalfOpen, _) => upwards(rng, 0, 1),
            // The file, and the delay in milliseconds.
            Kind::KillAt(Moment::Sealing) => upwards(rng, 0, 30),
            Kind::KillAt(Moment::Recording) => upwards(rng, 0, 10),
            Kind::KillAt(Moment::Releasing) => upwards(rng, 0, 60),
            Kind::KillAt(Moment::Enrolling(_))
            | Kind::Kill(_)
            | Kind::Cut(_)
            | Kind::Proxy(..)
            | Kind::FullDisk(_) => 0,
        };
        Self {
            kind,
            amount,
            hold: Duration::from_millis(rng.between(50, 1_200)),
        }
    }
}

/// Faults that are injected together, and the pause after them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// One or two faults of different kinds.
    pub(crate) faults: Vec<InjectedFault>,
    /// The time without faults afterwards.
    pub(crate) pause: Duration,
}

/// Plans `count` faults in steps. Every kind occurs before any occurs again. A quarter of the steps have two faults.
pub(crate) fn plan(count: usize, external_broker: bool, rng: &mut Rng) -> Vec<Step> {
    let mut kinds = deck(Kind::all(external_broker), Rng::new(rng.bits())).peekable();
    let mut steps: Vec<Step> = Vec::new();
    let mut left = count;
    while left > 0 {
        let mut faults: Vec<InjectedFault> = Vec::new();
        let count = if left > 1 && rng.percent(25) { 2 } else { 1 };
        while faults.len() < count {
            let kind = kinds.next_if(|kind| faults.iter().all(|fault| fault.kind != *kind));
            let Some(kind) = kind else { break };
            faults.push(InjectedFault::throw(kind, rng));
        }
        left -= faults.len();
        let pause = Duration::from_millis(rng.between(20, 700));
        steps.push(Step { faults, pause });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_plan_and_no_kind_is_left_out() {
        let of = |seed| plan(60, true, &mut Rng::new(seed));
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
        let planned: Vec<Kind> = of(7)
            .iter()
            .flat_map(|step| &step.faults)
            .map(|fault| fault.kind)
            .collect();
        assert_eq!(planned.len(), 60);
        for kind in Kind::all(true) {
            assert!(planned.contains(&kind), "{kind}");
        }
    }

    #[test]
    fn the_embedded_broker_is_not_killed_apart_from_its_coordinator() {
        let kinds = Kind::all(false);
        assert!(!kinds.contains(&Kind::Kill(Victim::Broker)));
        assert!(!kinds.contains(&Kind::Proxy(ProxyFault::Reset, Side::Coordinator)));
    }
}
