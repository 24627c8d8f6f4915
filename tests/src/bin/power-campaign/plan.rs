//! The faults of power sessions: the meaning of each, its places, and its required consequence. They are drawn from a seed here, and
//! injected elsewhere.

use std::{fmt, time::Duration};

use anyhow::ensure;
use regatta_tests::faults::{LabOrder, Rng, deck};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The machine with the meter and the official server.
    Director,
    /// The measured machine, with the official client.
    Device,
}

/// An official program, or one below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// `server.py`.
    Server,
    /// `client.py`.
    Client,
    Ptd,
    /// The program that starts and ends `server.py`.
    ServerSupervisor,
    /// The program that starts and ends `client.py`.
    ClientSupervisor,
    Run,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    None,
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
    /// The session fails, or has ended before the fault. One of these causes, which `|` separates, is in its reason.
    Fails(&'static str),
    /// The session is complete, and a checker refuses it.
    Judged,
    /// The session goes on, or fails with one of these causes in its reason.
    Either(&'static str),
    /// The session is complete and good.
    Good,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
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

const SERVER_ENDED: &str = "the server|PTDaemon|refused a step";
const CLIENT_ENDED: &str = "the client|client and server have made no progress";
const PTD_ENDED: &str = "PTDaemon|no sample|the server";
const LINK_LOST: &str = "connection|could not be fetched|cannot pass the logs";
const CLOCKS: &str = "clock|NTP";
const HUNG: &str = "client and server have made no progress|the server|the client|no sample";
const AGENT_ENDED: &str = "agent was offline|has no valid result|does not name the boot";
const REBOOTED: &str =
    "the client|connection|agent was offline|has no valid result|does not name the boot|could not be fetched";
const NETWORK_LOST: &str = "the server|the client|PTDaemon|have made no progress|no sample|clock";
const DISK_FULL: &str =
    "disk has only|No space left|no sample|the server|the client|PTDaemon|cannot pass the logs";

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

/// What is fixed for a kind of fault.
pub(crate) struct KindFacts {
    pub(crate) name: String,
    /// A description of its means.
    pub(crate) means: &'static str,
    pub(crate) expected: Expected,
}

impl Kind {
    pub(crate) fn facts(self) -> KindFacts {
        use Expected::{Either, Fails, Good, Judged, Refused};
        let (name, means, expected) = match self {
            Self::None => ("no fault", "", Good),
            Self::MeterOff => (
                "meter off",
                "PTDaemon ends at its start",
                Refused("FAIL  meter reading"),
            ),
            Self::MissingPtd => ("PTDaemon missing", "its file is removed", Refused("PTDaemon")),
            Self::OldPtd => ("old PTDaemon", "version 1.9.1", Refused("FAIL  PTDaemon version")),
            Self::WrongDeviceType => (
                "wrong device type",
                "a WT330E at a meter added as type 49",
                Refused("FAIL  meter identity"),
            ),
            Self::CarriageReturns(_) => ("CR LF in power-dev", "CR LF in one file", Refused("power-dev")),
            Self::PortTaken => (
                "server port taken",
                "another program listens",
                Refused("server port"),
            ),
            Self::Unplugged => ("meter unplugged", "no further sample or answer", Fails(PTD_ENDED)),
            Self::PtdCrash => (
                "PTDaemon crashes",
                "PTDaemon ends with a sample",
                Fails(PTD_ENDED),
            ),
            Self::RefusedRange => (
                "range refused",
                "PTDaemon refuses numbers",
                Fails("refused a range|refused a step"),
            ),
            Self::MeterError => ("meter error", "an ERROR line in the testing run", Judged),
            // The rules only count the samples between power_begin and power_end.
            Self::Uncertain => ("uncertain sample", "an uncertainty of 1.2 %", Either("")),
            Self::Kill(program) => ("killed", "SIGKILL", program.expected_after_kill()),
            Self::Hang(Program::Ptd) => ("hangs", "SIGSTOP", Fails(PTD_ENDED)),
            Self::Hang(_) => ("hangs", "SIGSTOP", Fails(HUNG)),
            Self::KillCommand => (
                "power run killed",
                "SIGKILL",
                Fails("the process of this session ended"),
            ),
            Self::Interrupt => ("power run interrupted", "SIGINT", Fails("it was interrupted")),
            Self::KillAgent => ("agent killed", "SIGKILL, later a start", Either(AGENT_ENDED)),
            Self::Reboot => (
                "device reboots",
                "agent, client and login killed; later a start with another boot id",
                Fails(REBOOTED),
            ),
            Self::KillCoordinator => (
                "coordinator killed",
                "SIGKILL, later a start",
                Either("the coordinator has ended|has no valid result"),
            ),
            Self::CutLink(_) => ("link cut", "the SSH connection is reset", Fails(LINK_LOST)),
            Self::SilentLink(_) => (
                "link silent",
                "the SSH connection carries nothing",
                Fails(LINK_LOST),
            ),
            Self::CutNetwork => (
                "client cut from server",
                "nftables drops the official connection",
                Either(NETWORK_LOST),
            ),
            Self::NoNtp => ("NTP lost", "nftables drops port 123", Either(CLOCKS)),
            Self::FullDisk(_) => ("disk full", "tmpfs of the size in use", Either(DISK_FULL)),
            Self::FullWorkspace => ("disk full, workspace", "tmpfs of the size in use", Either("")),
            Self::ClockStep(_) => (
                "clock step",
                "Python reads another clock (simulated)",
                Fails(CLOCKS),
            ),
            Self::SecondSession => ("second session", "a second command", Good),
            Self::OldFiles => (
                "files of an earlier session",
                "ptd_out.txt and logs of another session",
                Good,
            ),
        };
        let name = match self {
            Self::Kill(program) | Self::Hang(program) => format!("{} {name}", program.name()),
            Self::CarriageReturns(side)
            | Self::CutLink(side)
            | Self::SilentLink(side)
            | Self::FullDisk(side)
            | Self::ClockStep(side) => format!("{name}, {}", side.name()),
            _ => name.to_owned(),
        };
        KindFacts {
            name,
            means,
            expected,
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
}

impl Side {
    const fn name(self) -> &'static str {
        match self {
            Self::Director => "director",
            Self::Device => "device",
        }
    }
}

impl Program {
    const fn name(self) -> &'static str {
        match self {
            Self::Server => "official server",
            Self::Client => "official client",
            Self::Ptd => "PTDaemon",
            Self::ServerSupervisor => "server's supervisor",
            Self::ClientSupervisor => "client's supervisor",
            Self::Run => "run process",
        }
    }

    const fn expected_after_kill(self) -> Expected {
        match self {
            Self::Server | Self::ServerSupervisor => Expected::Fails(SERVER_ENDED),
            Self::Client | Self::ClientSupervisor => Expected::Fails(CLIENT_ENDED),
            Self::Ptd => Expected::Fails(PTD_ENDED),
            Self::Run => Expected::Either("has no valid result"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.facts().name)
    }
}

/// Plans the sessions of a lab. With `only`, it draws from the kinds whose names contain that text. The lab ends with a session without a
/// fault, because a lab in which nothing works any more would show nothing.
pub(crate) fn plan(order: &LabOrder, only: Option<&str>) -> anyhow::Result<Vec<SessionFault>> {
    let mut kinds = KINDS.to_vec();
    kinds.retain(|kind| only.is_none_or(|text| kind.to_string().contains(text)));
    ensure!(!kinds.is_empty(), "no kind of fault contains {only:?}");
    let mut rng = Rng::new(order.seed);
    // All labs deal from one deck, because a lab has fewer faults than there are kinds.
    let kinds = deck(kinds, Rng::new(order.campaign_seed));
    let kinds = kinds.skip(order.faults_before).take(order.faults);
    Ok(kinds
        .chain([Kind::None])
        .map(|kind| draw(kind, &mut rng))
        .collect())
}

fn draw(kind: Kind, rng: &mut Rng) -> SessionFault {
    let moment = match kind {
        Kind::None
        | Kind::MeterOff
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

    fn plan_of(campaign_seed: u64, faults: usize) -> Vec<SessionFault> {
        let order = LabOrder {
            number: 0,
            variant: "",
            seed: campaign_seed + 1,
            campaign_seed,
            faults_before: 0,
            faults,
        };
        plan(&order, None).unwrap()
    }

    #[test]
    fn a_seed_draws_the_same_faults_and_every_kind() {
        let text = |seed| format!("{:?}", plan_of(seed, 60));
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
        let drawn = plan_of(3, KINDS.len());
        for kind in &KINDS {
            assert!(drawn.iter().any(|fault| fault.kind == *kind), "{kind}");
        }
        assert_eq!(drawn.len(), KINDS.len() + 1);
        assert!(drawn.last().is_some_and(|last| last.kind == Kind::None));
    }
}
