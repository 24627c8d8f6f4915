//! The state guard of one run, on a thread of its own: brings the device into the requested state before the run process
//! starts, looks at it once a second, and puts it back when the process has ended. Writes `telemetry.csv`; tells the daemon
//! what it has found. Ends no run: that is the daemon's.
//!
//! The thread keeps off LoadGen's processor, and holds the helper's connection: when the daemon dies, that closes, and the
//! helper puts everything back.

mod column;
mod finder;
mod guard;
mod plan;
mod probe;
mod sampler;
mod tally;

use std::{
    fmt::Write as _,
    fs::File,
    io::{self, Write as _},
    sync::mpsc as orders,
    thread,
    time::{Duration, Instant},
};

use regatta_types::documents::{RunPhase, StateProof};
use tokio::sync::mpsc;

use self::{guard::Guard, sampler::Sampler, tally::Tally};
pub(crate) use self::{guard::put_back_leftovers, plan::WatchPlan};
use super::window::CpuExclusion;

/// The samples among the run's files.
pub(crate) const TELEMETRY: &str = "telemetry.csv";
/// Time between samples.
const PERIOD: Duration = Duration::from_secs(1);

/// What the guard says.
#[derive(Debug)]
pub(crate) enum WatchNews {
    /// The device is in the requested state: the run process may start. The proof so far.
    Ready(Box<StateProof>),
    /// It is not, and why. The end follows.
    Refused(String),
    /// Nobody holds the state any more.
    Lost(String),
    /// Everything is put back, or the proof says what is not; nothing follows.
    Ended(Box<StateProof>),
}

/// What the daemon says to the guard.
#[derive(Debug, Clone, Copy)]
enum Order {
    Phase(RunPhase),
    Stop,
}

/// A run's guard.
#[derive(Debug)]
pub(crate) struct Watch {
    orders: orders::Sender<Order>,
    news: mpsc::UnboundedReceiver<WatchNews>,
}

impl Watch {
    /// Starts the guard.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(crate) fn start(plan: WatchPlan) -> io::Result<Self> {
        let (orders, inbox) = orders::channel();
        let (sender, news) = mpsc::unbounded_channel();
        thread::Builder::new()
            .name("guard".to_owned())
            .spawn(move || watch(&plan, &inbox, &sender))?;
        Ok(Self { orders, news })
    }

    /// The next news. Cancel-safe.
    pub(crate) async fn next(&mut self) -> WatchNews {
        let lost = || WatchNews::Ended(Box::default());
        self.news.recv().await.unwrap_or_else(lost)
    }

    /// The run has come into a phase.
    pub(crate) fn phase(&self, phase: RunPhase) {
        self.order(Order::Phase(phase));
    }

    /// The run process has ended, or will not start.
    pub(crate) fn stop(&self) {
        self.order(Order::Stop);
    }

    fn order(&self, order: Order) {
        // It may have ended by itself.
        let _ = self.orders.send(order);
    }
}

fn watch(plan: &WatchPlan, inbox: &orders::Receiver<Order>, news: &mpsc::UnboundedSender<WatchNews>) {
    // Nobody listens any more when the daemon is ending.
    let say = |what| drop(news.send(what));
    let mut guard = Guard::new(plan);
    match guard.set() {
        Ok(()) => say(WatchNews::Ready(Box::new(guard.proof.clone()))),
        Err(why) => {
            say(WatchNews::Refused(why));
            say(WatchNews::Ended(Box::new(guard.proof)));
            return;
        }
    }
    let _aside = plan.timing_cpu.and_then(CpuExclusion::from);
    let mut tally = Tally::default();
    if let Err(why) = look_on(plan, &mut guard, &mut tally, inbox) {
        say(WatchNews::Lost(why));
        // The run process is being ended; the helper is asked once more when it has.
        while !matches!(inbox.recv(), Ok(Order::Stop) | Err(_)) {}
    }
    (guard.proof.telemetry, guard.proof.findings) = tally.result();
    guard.put_back();
    say(WatchNews::Ended(Box::new(guard.proof)));
}

/// Takes a sample a second until it is told to stop.
///
/// # Errors
/// When the state is no longer held, in words.
fn look_on(
    plan: &WatchPlan,
    guard: &mut Guard,
    tally: &mut Tally,
    inbox: &orders::Receiver<Order>,
) -> Result<(), String> {
    let mut sampler = Sampler::open(&plan.root, guard.locks());
    let mut file = table(plan, &sampler);
    let begin = Instant::now();
    let (mut next, mut phase) = (begin, RunPhase::Preparing);
    loop {
        match inbox.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(Order::Phase(now)) => {
                tally.enter(now, Instant::now());
                phase = now;
            }
            Ok(Order::Stop) | Err(orders::RecvTimeoutError::Disconnected) => {
                tally.enter(RunPhase::Draining, Instant::now());
                return Ok(());
            }
            Err(orders::RecvTimeoutError::Timeout) => {
                let held = guard.look()?;
                let sample = sampler.take(held);
                let seconds = begin.elapsed().as_secs_f64();
                let is_kept = file
                    .as_mut()
                    .is_some_and(|file| keep(file, seconds, phase, &sample));
                tally.count((seconds, phase), sampler.meanings(), &sample, is_kept);
                next += PERIOD;
                // A board that was held up for seconds has gaps, and no burst of samples afterwards.
                while next < Instant::now() {
                    next += PERIOD;
                    tally.miss();
                }
            }
        }
    }
}

/// The file with its first line; `None` where it cannot be written: a run goes on without.
fn table(plan: &WatchPlan, sampler: &Sampler) -> Option<File> {
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

/// Appends one line; whether the disk took it.
fn keep(file: &mut File, seconds: f64, phase: RunPhase, sample: &sampler::Sample) -> bool {
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
