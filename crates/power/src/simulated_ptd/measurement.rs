//! The simulated meter: its ranges, and the measurement that a thread samples until it is stopped.

use std::{
    fs::File,
    io::Write as _,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use jiff::Timestamp;

use super::{
    console::{Console, stamp},
    ending::crash,
    fault::{FaultKind, PtdFault},
    load::{MarkedPart, Sample, SimulatedLoad},
    options::SimulatedPtd,
};

/// The ranges before the first session, in volts and amperes.
const FIRST_RANGES: [&str; 2] = ["300.000000", "5.000000"];

/// A range of the meter: the number as it was set, or `None` when the meter selects it.
pub(super) type Range = Option<String>;

/// The meter with its log.
pub(super) struct Meter {
    load: SimulatedLoad,
    faults: Vec<PtdFault>,
    channels: usize,
    console: Console,
    state: Arc<Mutex<MeterState>>,
}

struct MeterState {
    volts: Range,
    amps: Range,
    log: File,
    /// Rows that `RL` has not returned yet, without and with channels.
    unread: Vec<[String; 2]>,
    watts: Vec<f64>,
    /// Whether the last measurement used fixed ranges, so that its uncertainty is known.
    is_certain: bool,
    stalled: bool,
    running: Option<RunningMeasurement>,
}

struct RunningMeasurement {
    stop: Sender<()>,
    sampler: JoinHandle<()>,
}

impl Meter {
    pub(super) fn new(ptd: &SimulatedPtd, log: File, console: Console) -> Self {
        let [volts, amps] = FIRST_RANGES.map(|range| Some(range.to_owned()));
        Self {
            load: ptd.load,
            faults: ptd.faults.clone(),
            channels: ptd.channels,
            console,
            state: Arc::new(Mutex::new(MeterState {
                volts,
                amps,
                log,
                unread: Vec::new(),
                watts: Vec::new(),
                is_certain: false,
                stalled: false,
                running: None,
            })),
        }
    }

    fn state(&self) -> MutexGuard<'_, MeterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reply to `RR`.
    pub(super) fn ranges(&self) -> String {
        let state = self.state();
        let text = |range: &Range| match range {
            Some(range) => format!("0,{range}"),
            None => "1,-1.0".to_owned(),
        };
        format!("Ranges,{},{}", text(&state.amps), text(&state.volts))
    }

    /// Sets the range of volts, or of amperes. Returns whether the meter has it.
    pub(super) fn set_range(&self, is_volts: bool, range: &str) -> bool {
        let accepts_any = !self
            .faults
            .iter()
            .any(|fault| fault.kind == FaultKind::RefusedRange);
        let range = match range.parse::<f64>() {
            _ if range == "Auto" => None,
            // The ranges before the session must be restored in any case.
            Ok(size) if size > 0.0 && (accepts_any || FIRST_RANGES.contains(&range)) => {
                Some(range.to_owned())
            }
            _ => return false,
        };
        let mut state = self.state();
        if is_volts {
            state.volts = range;
        } else {
            state.amps = range;
        }
        true
    }

    /// Whether it has stopped answering.
    pub(super) fn is_stalled(&self) -> bool {
        self.state().stalled
    }

    /// Starts a measurement with a sample per `period`.
    pub(super) fn go(&self, period: Duration, mark: &str) {
        self.stop();
        let (stop, stopped) = mpsc::channel();
        let mut state = self.state();
        state.unread.clear();
        state.watts.clear();
        state.is_certain = state.volts.is_some() && state.amps.is_some();
        let sampler = Sampler {
            load: self.load,
            faults: self.faults.clone(),
            channels: self.channels,
            console: self.console,
            state: Arc::clone(&self.state),
            mark: mark.to_owned(),
            part: MarkedPart::of_mark(mark),
        };
        state.running = Some(RunningMeasurement {
            stop,
            sampler: thread::spawn(move || sampler.run(period, &stopped)),
        });
    }

    /// Ends the measurement. Returns whether there was one.
    pub(super) fn stop(&self) -> bool {
        let running = self.state().running.take();
        let Some(RunningMeasurement { stop, sampler }) = running else {
            return false;
        };
        drop(stop);
        // Only a panic of the thread is an error here, and was printed.
        let _ = sampler.join();
        true
    }

    /// Takes the rows that were not read yet.
    pub(super) fn unread(&self, with_channels: bool) -> Vec<String> {
        let rows = std::mem::take(&mut self.state().unread);
        let column = usize::from(with_channels);
        rows.into_iter()
            .filter_map(|row| row.into_iter().nth(column))
            .collect()
    }

    /// The reply to `Watts`.
    pub(super) fn watts(&self) -> String {
        let state = self.state();
        let (count, watts) = (state.watts.len(), &state.watts);
        let mean = watts.iter().sum::<f64>() / count.max(1) as f64;
        let least = watts.iter().copied().fold(f64::INFINITY, f64::min).min(mean);
        let most = watts.iter().copied().fold(mean, f64::max);
        format!("Watts,{mean:.6},{least:.6},{most:.6},{count},0,{count}")
    }

    /// The reply to `Uncertainty`: known where the ranges were fixed, with figures of a published WT310 session.
    pub(super) fn uncertainty(&self) -> String {
        let state = self.state();
        let count = state.watts.len();
        match state.is_certain {
            true => format!("Uncertainty,0.005699,0.005521,0.006962,{count},0,{count},0"),
            false => format!("Uncertainty,-1.0,10000000.000000,0.000000,{count},0,0,{count}"),
        }
    }
}

/// The thread of a measurement.
struct Sampler {
    load: SimulatedLoad,
    faults: Vec<PtdFault>,
    channels: usize,
    console: Console,
    state: Arc<Mutex<MeterState>>,
    mark: String,
    part: MarkedPart,
}

impl Sampler {
    fn run(&self, period: Duration, stopped: &mpsc::Receiver<()>) {
        let begun = Instant::now();
        for number in 0.. {
            let due = begun + period * u32::try_from(number + 1).unwrap_or(u32::MAX);
            let wait = due.saturating_duration_since(Instant::now());
            // The sender is dropped to end the measurement.
            if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            for fault in self
                .faults
                .iter()
                .filter(|fault| fault.happens(self.part, number))
            {
                match fault.kind {
                    FaultKind::Crash => crash(self.console),
                    FaultKind::Stall => {
                        self.state.lock().unwrap_or_else(PoisonError::into_inner).stalled = true;
                        return;
                    }
                    FaultKind::ErrorLine => self.console.stamped("ERROR: simulated by FAKEPTD"),
                    FaultKind::Uncertainty => self.console.stamped(
                        "WARNING: Uncertainty 1.2%, which is above 1.00% limit for the last sample!",
                    ),
                    FaultKind::SlowStart(_) | FaultKind::RefusedRange => {}
                }
            }
            self.sample(number);
        }
    }

    fn sample(&self, number: u64) {
        let sample = self.load.sample(self.part, number, self.channels);
        let time = format!("Time,{}", stamp(Timestamp::now()));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_certain {
            self.console
                .stamped("ERROR: Can't evaluate uncertainty of this sample!");
            self.console
                .stamped("WARNING: Uncertainty unknown for the last measurement sample!");
        }
        let watts = sample.watts * self.channels as f64;
        let (sum, mut logged, mut blocks) = if self.channels > 1 {
            let sum = Sample {
                watts,
                volts: -1.0,
                amps: -1.0,
                power_factor: -1.0,
            };
            (sum.fields(), String::new(), String::new())
        } else {
            (sample.fields(), String::new(), String::new())
        };
        for channel in (1..=self.channels).filter(|_| self.channels > 1) {
            logged.push_str(&format!(",Ch{channel},{}", sample.fields()));
            blocks.push_str(&format!(",{}", sample.fields()));
        }
        // A full disk shows as samples that are missing, as with PTDaemon.
        let _ = writeln!(state.log, "{time},{sum},Mark,{}{logged}", self.mark);
        state
            .unread
            .push([format!("{time},{sum}"), format!("{time},{sum}{blocks}")]);
        state.watts.push(watts);
    }
}
