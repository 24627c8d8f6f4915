//! The faults of power sessions: the meaning of each, its places, and its required consequence. They are drawn from a seed here, and
//! injected elsewhere.

use std::{fmt, time::Duration};

use anyhow::ensure;
use regatta_tests::rng::Rng;
use serde::{Deserialize, Serialize};

/// A machine of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Side {
    /// The machine with the meter and the official server.
    Director,
    /// The measured machine, with the official client.
    Device,
}

/// An official program, or one below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Program {
    /// `server.py`.
    Server,
    /// `client.py`.
    Client,
    /// PTDaemon.
    Ptd,
    /// The program that starts and ends `server.py`.
    ServerSupervisor,
    /// The program that starts and ends `client.py`.
    ClientSupervisor,
    /// The device's run process.
    Run,
}

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Kind {
    MeterOff,
    MissingPtd,
    OldPtd,
    WrongDeviceType,
    CarriageReturns(Side),
    PortTaken,
    Unplugged,
    PtdCrash,
    RefusedRange,
    MeterError,
    Uncertain,
    Kill(Program),
    Hang(Program),
    KillCommand,
    Interrupt,
    KillAgent,
    Reboot,
    KillCoordinator,
    CutLink(Side),
    SilentLink(Side),
    CutNetwork,
    NoNtp,
    FullDisk(Side),
    FullWorkspace,
    ClockStep(Side),
    SecondSession,
    OldFiles,
}

/// The required consequence of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The session does not begin: a line of the checks before it has this text.
    Refused(&'static str),
    /// The session fails, or has ended before the fault. One of these words is in its reason.
    Fails(&'static [&'static str]),
    /// The session is complete, and a checker refuses it.
    Judged,
    /// The session goes on, or fails with one of these words in its reason.
    Either(&'static [&'static str]),
    /// The session is complete and good.
    Good,
}

/// The moment at which a fault is injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before the command starts.
    Before,
    /// A while after the session has entered a step: its number, from 0.
    Step(usize, Duration),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionFault {
    pub(crate) kind: Kind,
    pub(crate) moment: Moment,
    /// The time that it lasts, where it does not last for the session.
    pub(crate) hold: Duration,
    /// An amount: seconds of a clock's step, or the sample of the meter.
    pub(crate) amount: i64,
    /// Whether the meter is at another machine than the coordinator's.
    pub(crate) remote_director: bool,
    /// Whether the device is another machine than the coordinator's.
    pub(crate) remote_device: bool,
}

/// The session's steps from the server's start to the collection of its files, with the longest wait in each before a fault.
const STEPS: [u64; 9] = [2, 1, 9, 3, 9, 9, 3, 9, 1];
/// The step with the workload of the testing run. A fault later than that may find a session that is already measured.
pub(crate) const TESTING: usize = 6;
/// The step with the workload of the ranging run.
pub(crate) const RANGING: usize = 3;

const SERVER_ENDED: &[&str] = &["the server", "PTDaemon", "refused a step"];
const CLIENT_ENDED: &[&str] = &["the client", "client and server have made no progress"];
const PTD_ENDED: &[&str] = &["PTDaemon", "no sample", "the server"];
const LINK_LOST: &[&str] = &["connection", "could not be fetched", "cannot pass the logs"];
const CLOCKS: &[&str] = &["clock", "NTP"];

/// Every kind.
const KINDS: [Kind; 39] = [
    Kind::MeterOff,
    Kind::MissingPtd,
    Kind::OldPtd,
    Kind::WrongDeviceType,
    Kind::CarriageReturns(Side::Director),
    Kind::CarriageReturns(Side::Device),
    Kind::PortTaken,
    Kind::Unplugged,
    Kind::PtdCrash,
    Kind::RefusedRange,
    Kind::MeterError,
    Kind::Uncertain,
    Kind::Kill(Program::Server),
    Kind::Kill(Program::Client),
    Kind::Kill(Program::Ptd),
    Kind::Kill(Program::ServerSupervisor),
    Kind::Kill(Program::ClientSupervisor),
    Kind::Kill(Program::Run),
    Kind::Hang(Program::Server),
    Kind::Hang(Program::Client),
    Kind::Hang(Program::Ptd),
    Kind::KillCommand,
    Kind::Interrupt,
    Kind::KillAgent,
    Kind::Reboot,
    Kind::KillCoordinator,
    Kind::CutLink(Side::Director),
    Kind::CutLink(Side::Device),
    Kind::SilentLink(Side::Director),
    Kind::SilentLink(Side::Device),
    Kind::CutNetwork,
    Kind::NoNtp,
    Kind::FullDisk(Side::Director),
    Kind::FullDisk(Side::Device),
    Kind::FullWorkspace,
    Kind::SecondSession,
    Kind::OldFiles,
    Kind::ClockStep(Side::Director),
    Kind::ClockStep(Side::Device),
];

impl Kind {
    /// Returns the required consequence.
    pub(crate) const fn expected(self) -> Expected {
        match self {
            Self::MeterOff => Expected::Refused("FAIL  meter reading"),
            Self::MissingPtd => Expected::Refused("PTDaemon"),
            Self::OldPtd => Expected::Refused("FAIL  PTDaemon version"),
            Self::WrongDeviceType => Expected::Refused("FAIL  meter identity"),
            Self::CarriageReturns(_) => Expected::Refused("power-dev"),
            Self::PortTaken => Expected::Refused("server port"),
            Self::Unplugged | Self::PtdCrash => Expected::Fails(PTD_ENDED),
            Self::RefusedRange => Expected::Fails(&["refused a range", "refused a step"]),
            Self::MeterError => Expected::Judged,
            // The rules only count the samples between power_begin and power_end.
            Self::Uncertain => Expected::Either(&[""]),
            Self::Kill(Program::Server | Program::ServerSupervisor) => Expected::Fails(SERVER_ENDED),
            Self::Kill(Program::Client | Program::ClientSupervisor) => Expected::Fails(CLIENT_ENDED),
            Self::Kill(Program::Ptd) | Self::Hang(Program::Ptd) => Expected::Fails(PTD_ENDED),
            Self::Kill(Program::Run) => Expected::Either(&["has no valid result"]),
            Self::Hang(_) => Expected::Fails(&[
                "client and server have made no progress",
                "the server",
                "the client",
                "no sample",
            ]),
            Self::KillCommand => Expected::Fails(&["the process of this session ended"]),
            Self::Interrupt => Expected::Fails(&["it was interrupted"]),
            Self::KillAgent => Expected::Either(&[
                "agent was offline",
                "has no valid result",
                "does not name the boot",
            ]),
            Self::Reboot => Expected::Fails(&[
                "the client",
                "connection",
                "agent was offline",
                "has no valid result",
                "does not name the boot",
                "could not be fetched",
            ]),
            Self::KillCoordinator => Expected::Either(&["the coordinator has ended", "has no valid result"]),
            Self::CutLink(_) | Self::SilentLink(_) => Expected::Fails(LINK_LOST),
            Self::CutNetwork => Expected::Either(&[
                "the server",
                "the client",
                "PTDaemon",
                "have made no progress",
                "no sample",
                "clock",
            ]),
            Self::NoNtp => Expected::Either(CLOCKS),
            Self::FullDisk(_) => Expected::Either(&[
                "disk has only",
                "No space left",
                "no sample",
                "the server",
                "the client",
                "PTDaemon",
                "cannot pass the logs",
            ]),
            Self::FullWorkspace => Expected::Either(&[""]),
            Self::ClockStep(_) => Expected::Fails(CLOCKS),
            Self::SecondSession | Self::OldFiles => Expected::Good,
        }
    }

    /// Returns the last step in which it fails every session.
    pub(crate) const fn last_fatal_step(self) -> usize {
        match self {
            Self::Unplugged | Self::PtdCrash | Self::RefusedRange => usize::MAX,
            // The client compares clocks and queries NTP only before each part.
            Self::NoNtp | Self::ClockStep(_) => RANGING,
            _ => TESTING,
        }
    }

    /// Returns a description of its means.
    pub(crate) const fn means(self) -> &'static str {
        match self {
            Self::MeterOff => "PTDaemon ends at its start",
            Self::MissingPtd => "its file is removed",
            Self::OldPtd => "version 1.9.1",
            Self::WrongDeviceType => "a WT330E at a meter added as type 49",
            Self::CarriageReturns(_) => "CR LF in one file",
            Self::PortTaken => "another program listens",
            Self::Unplugged => "no further sample or answer",
            Self::PtdCrash => "PTDaemon ends with a sample",
            Self::RefusedRange => "PTDaemon refuses numbers",
            Self::MeterError => "an ERROR line in the testing run",
            Self::Uncertain => "an uncertainty of 1.2 %",
            Self::Kill(_) | Self::KillCommand => "SIGKILL",
            Self::KillAgent | Self::KillCoordinator => "SIGKILL, later a start",
            Self::Reboot => "agent, client and login killed; later a start with another boot id",
            Self::Hang(_) => "SIGSTOP",
            Self::Interrupt => "SIGINT",
            Self::CutLink(_) => "the SSH connection is reset",
            Self::SilentLink(_) => "the SSH connection carries nothing",
            Self::CutNetwork => "nftables drops the official connection",
            Self::NoNtp => "nftables drops port 123",
            Self::FullDisk(_) | Self::FullWorkspace => "tmpfs of the size in use",
            Self::ClockStep(_) => "Python reads another clock (simulated)",
            Self::SecondSession => "a second command",
            Self::OldFiles => "ptd_out.txt and logs of another session",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |side: Side| match side {
            Side::Director => "director",
            Side::Device => "device",
        };
        let program = |program: Program| match program {
            Program::Server => "official server",
            Program::Client => "official client",
            Program::Ptd => "PTDaemon",
            Program::ServerSupervisor => "server's supervisor",
            Program::ClientSupervisor => "client's supervisor",
            Program::Run => "run process",
        };
        match *self {
            Self::MeterOff => f.write_str("meter off"),
            Self::MissingPtd => f.write_str("PTDaemon missing"),
            Self::OldPtd => f.write_str("old PTDaemon"),
            Self::WrongDeviceType => f.write_str("wrong device type"),
            Self::CarriageReturns(one) => write!(f, "CR LF in power-dev, {}", side(one)),
            Self::PortTaken => f.write_str("server port taken"),
            Self::Unplugged => f.write_str("meter unplugged"),
            Self::PtdCrash => f.write_str("PTDaemon crashes"),
            Self::RefusedRange => f.write_str("range refused"),
            Self::MeterError => f.write_str("meter error"),
            Self::Uncertain => f.write_str("uncertain sample"),
            Self::Kill(one) => write!(f, "{} killed", program(one)),
            Self::Hang(one) => write!(f, "{} hangs", program(one)),
            Self::KillCommand => f.write_str("power run killed"),
            Self::Interrupt => f.write_str("power run interrupted"),
            Self::KillAgent => f.write_str("agent killed"),
            Self::Reboot => f.write_str("device reboots"),
            Self::KillCoordinator => f.write_str("coordinator killed"),
            Self::CutLink(one) => write!(f, "link cut, {}", side(one)),
            Self::SilentLink(one) => write!(f, "link silent, {}", side(one)),
            Self::CutNetwork => f.write_str("client cut from server"),
            Self::NoNtp => f.write_str("NTP lost"),
            Self::FullDisk(one) => write!(f, "disk full, {}", side(one)),
            Self::FullWorkspace => f.write_str("disk full, workspace"),
            Self::ClockStep(one) => write!(f, "clock step, {}", side(one)),
            Self::SecondSession => f.write_str("second session"),
            Self::OldFiles => f.write_str("files of an earlier session"),
        }
    }
}

/// Draws `count` faults. With `only`, it draws from the kinds whose names contain that text.
///
/// # Errors
/// Returns an error when no kind has them.
pub(crate) fn plan(count: usize, only: Option<&str>, rng: &mut Rng) -> anyhow::Result<Vec<SessionFault>> {
    let mut meant = KINDS.to_vec();
    meant.retain(|kind| only.is_none_or(|words| kind.to_string().contains(words)));
    ensure!(!meant.is_empty(), "no kind of fault has the words {only:?}");
    let mut kinds: Vec<Kind> = Vec::new();
    let mut plan = Vec::new();
    while plan.len() < count {
        // Every kind comes before one comes again.
        if kinds.is_empty() {
            kinds.clone_from(&meant);
            rng.shuffle(&mut kinds);
        }
        if let Some(kind) = kinds.pop() {
            plan.push(draw(kind, rng));
        }
    }
    Ok(plan)
}

fn draw(kind: Kind, rng: &mut Rng) -> SessionFault {
    let moment = match kind {
        Kind::MeterOff
        | Kind::MissingPtd
        | Kind::OldPtd
        | Kind::WrongDeviceType
        | Kind::CarriageReturns(_)
        | Kind::PortTaken
        | Kind::Unplugged
        | Kind::PtdCrash
        | Kind::RefusedRange
        | Kind::MeterError
        | Kind::Uncertain
        | Kind::OldFiles => Moment::Before,
        // There is a run process in two steps only.
        Kind::Kill(Program::Run) => step(rng.pick(&[RANGING, TESTING]), rng),
        // The client starts after the server.
        Kind::Kill(Program::Client | Program::ClientSupervisor) | Kind::Hang(Program::Client) => {
            step_from(1, rng)
        }
        _ => step_from(0, rng),
    };
    let sides = [kind_needs(kind, Side::Director), kind_needs(kind, Side::Device)];
    SessionFault {
        kind,
        moment,
        hold: Duration::from_secs(match kind {
            // The agent is back before the session ends for its absence.
            Kind::Reboot => rng.between(2, 20),
            _ => rng.between(5, 60),
        }),
        amount: match kind {
            Kind::Uncertain => 2,
            Kind::ClockStep(_) => {
                let seconds = if rng.percent(50) {
                    1
                } else {
                    rng.between(2, 30).cast_signed()
                };
                seconds * if rng.percent(50) { 1 } else { -1 }
            }
            _ => rng.between(0, 12).cast_signed(),
        },
        remote_director: sides[0] || rng.percent(60),
        remote_device: sides[1] || rng.percent(60),
    }
}

fn step(number: usize, rng: &mut Rng) -> Moment {
    let longest = STEPS.get(number).copied().unwrap_or(1);
    Moment::Step(number, Duration::from_millis(rng.between(0, longest * 1000)))
}

fn step_from(first: usize, rng: &mut Rng) -> Moment {
    let last = STEPS.len() as u64 - 1;
    let number = usize::try_from(rng.between(first as u64, last)).unwrap_or(first);
    step(number, rng)
}

/// Returns whether a kind needs a machine of its own.
fn kind_needs(kind: Kind, side: Side) -> bool {
    match kind {
        Kind::CutLink(one) | Kind::SilentLink(one) | Kind::FullDisk(one) | Kind::CarriageReturns(one) => {
            one == side
        }
        Kind::ClockStep(_) | Kind::CutNetwork => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_faults_and_every_kind() {
        let words = |seed| {
            let plan = plan(60, None, &mut Rng::new(seed)).unwrap();
            plan.iter().map(|fault| format!("{fault:?}")).collect::<Vec<_>>()
        };
        assert_eq!(words(1), words(1));
        assert_ne!(words(1), words(2));
        let drawn = plan(KINDS.len(), None, &mut Rng::new(3)).unwrap();
        for kind in &KINDS {
            assert!(drawn.iter().any(|fault| fault.kind == *kind), "{kind}");
        }
    }
}
