//! The state guard of a run, on its own thread. It waits for the run's gate, and sets the requested device state before the run
//! process starts. It
//! samples the device once a second, and restores the state when the process has ended. It writes `telemetry.csv` and
//! reports findings to the daemon. It does not end runs; the daemon does.
//!
//! The thread does not run on LoadGen's processor. It owns the connection to the helper. If the daemon dies, the
//! connection closes and the helper restores the state.

mod board_sensors;
mod column;
mod finder;
mod gate;
mod guard;
mod plan;
mod probe;
mod sampler;
mod tally;
mod wall_meter;

use std::{
    fmt::Write as _,
    fs::File,
    io::{self, Write as _},
    sync::mpsc as commands,
    thread,
    time::{Duration, Instant},
};

use regatta_types::documents::{RunPhase, StateProof};
use tokio::sync::mpsc;

pub(crate) use self::{board_sensors::BoardSensors, guard::restore_leftovers, plan::WatchPlan};
use self::{gate::GateEnd, guard::Guard, sampler::Sampler, tally::Tally};
use crate::daemon::{cpu_exclusion::CpuExclusion, runs::run_failure::RunFailure};

/// File name of the samples in the run's directory.
pub(crate) const TELEMETRY: &str = "telemetry.csv";
/// Sampling interval.
const PERIOD: Duration = Duration::from_secs(1);

/// An event of the guard to the daemon.
#[derive(Debug)]
pub(crate) enum GuardEvent {
    /// The run waits for its gate, with the conditions that do not hold.
    Waiting(String),
    /// The run's gate is open.
    GateOpened,
    /// The device is in the requested state and the run process may start. Contains the proof so far.
    Ready(Box<StateProof>),
    /// The device could not be set to the requested state, with the reason. `Ended` follows.
    Refused(RunFailure),
    /// The helper no longer holds the state, with the reason.
    Lost(RunFailure),
    /// The state is restored, or the proof has the reason why not. This is the last event.
    Ended(Box<StateProof>),
}

/// A command of the daemon to the guard.
#[derive(Debug, Clone, Copy)]
enum GuardCommand {
    Phase(RunPhase),
    Stop,
}

/// The daemon's handle to a run's guard.
#[derive(Debug)]
pub(crate) struct StateGuard {
    commands: commands::Sender<GuardCommand>,
    events: mpsc::UnboundedReceiver<GuardEvent>,
}

impl StateGuard {
    /// Starts the guard.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start(plan: WatchPlan) -> io::Result<Self> {
        let (commands, inbox) = commands::channel();
        let (sender, events) = mpsc::unbounded_channel();
        thread::Builder::new()
            .name("guard".to_owned())
            .spawn(move || watch(&plan, &inbox, &sender))?;
        Ok(Self { commands, events })
    }

    /// Returns the next event. Cancel-safe.
    pub(crate) async fn next(&mut self) -> GuardEvent {
        let lost = || GuardEvent::Ended(Box::default());
        self.events.recv().await.unwrap_or_else(lost)
    }

    /// Tells the guard that the run has entered a phase.
    pub(crate) fn phase(&self, phase: RunPhase) {
        self.send(GuardCommand::Phase(phase));
    }

    /// Tells the guard that the run process has ended or will not start.
    pub(crate) fn stop(&self) {
        self.send(GuardCommand::Stop);
    }

    fn send(&self, command: GuardCommand) {
        // The guard may have ended already.
        let _ = self.commands.send(command);
    }
}

fn watch(
    plan: &WatchPlan,
    inbox: &commands::Receiver<GuardCommand>,
    events: &mpsc::UnboundedSender<GuardEvent>,
) {
    // The receiver is gone when the daemon stops.
    let report = |what| drop(events.send(what));
    let mut guard = Guard::new(plan);
    if let Some(spec) = &plan.gate {
        let waiting = |text| report(GuardEvent::Waiting(text));
        // Before the run process there is no phase to follow.
        let is_stopped = |time| {
            !matches!(
                inbox.recv_timeout(time),
                Ok(GuardCommand::Phase(_)) | Err(commands::RecvTimeoutError::Timeout)
            )
        };
        match gate::wait(spec, &plan.root, &plan.files, is_stopped, waiting) {
            GateEnd::Open(proof) => {
                guard.proof.gate = Some(proof);
                report(GuardEvent::GateOpened);
            }
            end => {
                if let GateEnd::Closed(why) = end {
                    report(GuardEvent::Refused(why));
                }
                guard.proof.after.clone_from(&guard.proof.before);
                report(GuardEvent::Ended(Box::new(guard.proof)));
                return;
            }
        }
    }
    match guard.set() {
        Ok(()) => report(GuardEvent::Ready(Box::new(guard.proof.clone()))),
        Err(why) => {
            report(GuardEvent::Refused(why));
            report(GuardEvent::Ended(Box::new(guard.proof)));
            return;
        }
    }
    let _cpu_exclusion = plan.timing_cpu.and_then(CpuExclusion::from);
    let mut tally = Tally::default();
    if let Err(why) = sample_until_stopped(plan, &mut guard, &mut tally, inbox) {
        report(GuardEvent::Lost(why));
        // Wait until the run process has ended, then ask the helper once more to restore the state.
        while !matches!(inbox.recv(), Ok(GuardCommand::Stop) | Err(_)) {}
    }
    (guard.proof.telemetry, guard.proof.findings) = tally.result();
    guard.restore();
    report(GuardEvent::Ended(Box::new(guard.proof)));
}

/// Takes one sample per second until the stop command.
///
/// # Errors
/// When the state is no longer held.
fn sample_until_stopped(
    plan: &WatchPlan,
    guard: &mut Guard,
    tally: &mut Tally,
    inbox: &commands::Receiver<GuardCommand>,
) -> Result<(), RunFailure> {
    let mut sampler = Sampler::open(&plan.root, guard.locks(), plan.wall_meter.as_deref());
    let mut file = create_telemetry(plan, &sampler);
    let begin = Instant::now();
    let (mut next, mut phase) = (begin, RunPhase::Preparing);
    loop {
        match inbox.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(GuardCommand::Phase(now)) => {
                tally.enter(now, Instant::now());
                phase = now;
            }
            Ok(GuardCommand::Stop) | Err(commands::RecvTimeoutError::Disconnected) => {
                tally.enter(RunPhase::Draining, Instant::now());
                return Ok(());
            }
            Err(commands::RecvTimeoutError::Timeout) => {
                let held = guard.check()?;
                let sample = sampler.take(held);
                let seconds = begin.elapsed().as_secs_f64();
                let is_written = file
                    .as_mut()
                    .is_some_and(|file| append_sample(file, seconds, phase, &sample));
                tally.count(seconds, phase, sampler.meanings(), &sample, is_written);
                next += PERIOD;
                // After a stall of several seconds, record gaps instead of a burst of samples.
                while next < Instant::now() {
                    next += PERIOD;
                    tally.miss();
                }
            }
        }
    }
}

/// Creates the file with its header line. Returns `None` if it cannot be written; the run continues without it.
fn create_telemetry(plan: &WatchPlan, sampler: &Sampler) -> Option<File> {
    let mut line = String::from("seconds,monotonic_ns,phase");
    for (name, _) in sampler.meanings() {
        let _ = write!(line, ",{name}");
    }
    line.push('\n');
    let made = File::create(plan.files.join(TELEMETRY)).and_then(|mut file| {
        file.write_all(line.as_bytes())?;
        Ok(file)
    });
    made.inspect_err(|e| tracing::warn!("{TELEMETRY} cannot be written: {e}"))
        .ok()
}

/// Appends a line. Returns whether the write succeeded.
fn append_sample(file: &mut File, seconds: f64, phase: RunPhase, sample: &sampler::Sample) -> bool {
    let mut line = format!("{seconds:.3},{},{phase}", sample.monotonic_ns);
    for cell in &sample.cells {
        match cell {
            Some(value) => drop(write!(line, ",{value}")),
            None => line.push(','),
        }
    }
    line.push('\n');
    file.write_all(line.as_bytes()).is_ok()
}
