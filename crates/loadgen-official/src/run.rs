//! One run from request to outcome: start, wait, detect stalls, and abandon a run that cannot end.

use std::{
    fs::File,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize},
    },
    thread,
    time::{Duration, Instant},
};

use regatta_loadgen::{
    effective::{EffectiveSettings, LibraryCounts},
    load_gen::{LoadgenError, LoadgenIdentity, RunObserver},
    outcome::Outcome,
    request::RunRequest,
    sut::{Completer, QuerySampleLibrary, SystemUnderTest},
};
use regatta_loadgen_conf::TestSettings;
use regatta_types::Scenario;

use crate::{
    bridge::Bridge,
    conf::{self, ConfSource},
    ffi::{PluginFunctions, Refusal, c_string},
    outcome::{self, Facts},
    sink::{LoadgenEnd, Sink},
};

/// Interval at which the waiting thread checks for calls that are still inside an abandoned SUT.
const LOOK: Duration = Duration::from_millis(1);

/// Everything that a run needs.
pub(crate) struct Run<'a> {
    pub(crate) counts: LibraryCounts,
    pub(crate) functions: &'a Arc<PluginFunctions>,
    pub(crate) source: ConfSource,
    pub(crate) identity: LoadgenIdentity,
    pub(crate) sut: &'a dyn SystemUnderTest,
    pub(crate) qsl: &'a dyn QuerySampleLibrary,
    pub(crate) request: &'a RunRequest,
    pub(crate) observer: &'a dyn RunObserver,
}

impl Run<'_> {
    /// Executes the run to its end.
    pub(crate) fn run(&self) -> Result<Outcome, LoadgenError> {
        create_logs(self.request)?;
        let prepared = conf::prepare(self.functions, self.source, self.request)?;
        let effective = EffectiveSettings::new(&prepared.requested, self.counts).0;
        let sink = Arc::new(Sink::new(Arc::clone(self.functions)));
        // Boxed: an abandoned run's callbacks may access it until the process ends.
        let bridge = Box::new(self.bridge(&sink, &prepared.requested, &effective));
        let names = self.names()?;
        let callbacks = bridge.callbacks(&names.0, &names.1);
        // SAFETY: bridge, names and settings outlive the run: they are dropped after `ended`, or else leaked below. SUT, QSL and observer,
        // whose borrows the bridge extends, are not used once `wait` has returned.
        unsafe { self.functions.start_test(&prepared.settings, &callbacks) }
            .map_err(|refusal| LoadgenError::Plugin(refusal.words))?;
        let ended = self.wait(&sink);
        let (accuracy, performance) = bridge.issued();
        let timing = bridge
            .timing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if ended {
            let threads = std::mem::take(&mut *bridge.issuing.lock().unwrap_or_else(PoisonError::into_inner));
            for thread in threads {
                let _ = thread.join(); // the thread has caught its own panics
            }
        } else {
            Box::leak(bridge);
            std::mem::forget(names);
        }
        let mut faults = std::mem::take(&mut sink.events().faults);
        faults.extend(sink.refused_answers());
        outcome::read(Facts {
            request: self.request,
            identity: self.identity.clone(),
            requested: prepared.requested,
            effective,
            warnings: prepared.warnings,
            timing,
            accuracy,
            performance,
            faults,
            ended,
        })
    }

    fn names(&self) -> Result<(std::ffi::CString, std::ffi::CString), LoadgenError> {
        let plain =
            |refusal: Refusal| LoadgenError::Prepare(format!("a name in the log: {}", refusal.words).into());
        Ok((
            c_string(self.sut.name()).map_err(plain)?,
            c_string(self.qsl.name()).map_err(plain)?,
        ))
    }

    fn bridge(&self, sink: &Arc<Sink>, requested: &TestSettings, effective: &EffectiveSettings) -> Bridge {
        // SAFETY: the bridge uses these within the gate only. `wait` returns when the run has ended, or when the gate is closed and no
        // call is inside. So no use comes after the borrows end.
        let (sut, qsl, observer) = unsafe {
            (
                std::mem::transmute::<&dyn SystemUnderTest, &'static dyn SystemUnderTest>(self.sut),
                std::mem::transmute::<&dyn QuerySampleLibrary, &'static dyn QuerySampleLibrary>(self.qsl),
                std::mem::transmute::<&dyn RunObserver, &'static dyn RunObserver>(self.observer),
            )
        };
        Bridge {
            functions: Arc::clone(self.functions),
            sink: Arc::clone(sink),
            completer: Completer::new(Arc::clone(sink) as Arc<_>),
            sut,
            qsl,
            observer,
            scenario: effective.scenario,
            mode: effective.mode,
            accuracy_sets: accuracy_sets(effective, self.qsl.total_sample_count() as u64),
            sets: AtomicUsize::new(0),
            queries: AtomicU64::new(0),
            accuracy: Mutex::default(),
            issue_threads: issue_threads(requested),
            issuing: Mutex::default(),
            timing_request: self.request.issue.timing.clone(),
            timing: Arc::default(),
        }
    }

    /// Waits until LoadGen has ended (`true`) or the run can be abandoned (`false`). A run can be abandoned when it has been given up, no
    /// call is inside the SUT, and LoadGen's thread can never end.
    fn wait(&self, sink: &Sink) -> bool {
        let stall = self.request.issue.stall_timeout;
        let mut watch = Watch::new(sink);
        let mut events = sink.events();
        loop {
            if let Some(how) = events.ended.clone() {
                drop(events);
                return note_end(sink, how);
            }
            if let Some(lost) = events.lost_samples {
                if (events.parked || lost > 0) && !sink.gate.occupied() {
                    break;
                }
                events = sink.wait(events, LOOK);
                continue;
            }
            events = sink.wait(
                events,
                stall.map_or(Duration::from_secs(60), |s| (s / 8).max(LOOK)),
            );
            if let Some(stall) = stall
                && events.ended.is_none()
                && watch.stalled(sink, stall)
            {
                drop(events);
                sink.give_up(format!(
                    "no answer for {stall:?} while {} samples waited for one",
                    sink.gate.outstanding()
                ));
                events = sink.events();
            }
        }
        drop(events);
        // SAFETY: LoadGen's thread is parked in the bridge, or waits for responses that the closed gate withholds.
        if let Err(refusal) = unsafe { self.functions.abort_test() } {
            sink.tell(|e| {
                e.faults
                    .push(format!("LoadGen could not write out its logs: {}", refusal.words))
            });
        }
        false
    }
}

/// Handles the end of LoadGen's thread. No further call into the SUT starts, but one may still be returning.
fn note_end(sink: &Sink, how: LoadgenEnd) -> bool {
    let returned = how == LoadgenEnd::Returned;
    if let LoadgenEnd::Threw(words) = how {
        sink.give_up(format!("LoadGen threw an exception: {words}"));
    }
    while sink.gate.occupied() {
        thread::sleep(LOOK);
    }
    returned
}

/// Detects when responses stop arriving.
struct Watch {
    seen: (u64, u64),
    since: Instant,
}

impl Watch {
    fn new(sink: &Sink) -> Self {
        Self {
            seen: (sink.answers.issued(), sink.gate.outstanding()),
            since: Instant::now(),
        }
    }

    fn stalled(&mut self, sink: &Sink, after: Duration) -> bool {
        let now = (sink.answers.issued(), sink.gate.outstanding());
        if now != self.seen || now.1 == 0 {
            self.seen = now;
            self.since = Instant::now();
        }
        self.since.elapsed() >= after
    }
}

/// Creates the log files, so that a failure is reported with its reason. LoadGen itself only prints a line and returns.
fn create_logs(request: &RunRequest) -> Result<(), LoadgenError> {
    for kind in ["summary", "detail", "accuracy", "trace"] {
        let path = request.logs.path(kind);
        File::create(&path).map_err(|source| LoadgenError::Log { path, source })?;
    }
    Ok(())
}

/// Returns the number of sets in which LoadGen loads the samples of the accuracy pass.
fn accuracy_sets(effective: &EffectiveSettings, total: u64) -> usize {
    let samples = effective.accuracy_sample_count.min(total);
    usize::try_from(samples.div_ceil(effective.performance_sample_count.max(1))).unwrap_or(usize::MAX)
}

fn issue_threads(requested: &TestSettings) -> usize {
    if requested.scenario != Scenario::Server {
        return 0;
    }
    usize::try_from(requested.server_num_issue_query_threads).unwrap_or(usize::MAX)
}
