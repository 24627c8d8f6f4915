//! Callbacks from LoadGen to the SUT and QSL. They pass the gate and catch panics. A call after the run is abandoned never returns to
//! LoadGen.

use std::{
    any::Any,
    cell::RefCell,
    ffi::{CStr, c_char, c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use regatta_loadgen::{
    load_gen::{Phase, RunObserver},
    outcome::Issued,
    sut::{
        Completer, Query, QuerySample, QuerySampleLibrary, QuerySequence, ResponseId, SutError,
        SystemUnderTest,
    },
    timing::{Timing, TimingRequest, TimingThread},
};
use regatta_text::ErrorChain;
use regatta_types::{Mode, Scenario};

use crate::{
    ffi::{Callbacks, OK, PluginFunctions, Sample},
    sink::{LoadgenEnd, Sink},
};

/// Time for issue threads to register with LoadGen. LoadGen checks once and otherwise waits for ten seconds.
const REGISTRATION: Duration = Duration::from_millis(50);

/// Context of a run's callbacks. Its creator extends the borrows to `'static`. They may only be used between
/// [`Gate::enter`](crate::gate::Gate::enter) and `leave`.
pub(crate) struct Bridge {
    pub(crate) functions: Arc<PluginFunctions>,
    pub(crate) sink: Arc<Sink>,
    pub(crate) completer: Completer,
    pub(crate) sut: &'static dyn SystemUnderTest,
    pub(crate) qsl: &'static dyn QuerySampleLibrary,
    pub(crate) observer: &'static dyn RunObserver,
    pub(crate) scenario: Scenario,
    /// The mode after `audit.config`.
    pub(crate) mode: Mode,
    /// Sets of the accuracy pass.
    pub(crate) accuracy_sets: usize,
    /// Sets loaded so far.
    pub(crate) sets: AtomicUsize,
    /// Number of `IssueQuery` calls. Not exact when several threads issue, which only happens in Server.
    pub(crate) queries: AtomicU64,
    /// What the accuracy pass has issued so far.
    pub(crate) accuracy: Mutex<Option<Issued>>,
    /// Number of issue threads. They start once, when the first set is loaded.
    pub(crate) issue_threads: usize,
    pub(crate) issuing: Mutex<Vec<JoinHandle<()>>>,
    /// Requested settings of the issuing threads.
    pub(crate) timing_request: TimingRequest,
    /// How the first issuing thread ran.
    pub(crate) timing: Arc<Mutex<Option<Timing>>>,
}

thread_local! {
    /// LoadGen's own thread as a timing thread, from loading a set to unloading it. LoadGen's logger thread starts earlier and is not a
    /// timing thread.
    static TIMING: RefCell<Option<TimingThread>> = const { RefCell::new(None) };
}

/// Makes the calling thread a timing thread until [`TIMING`] is emptied, and records how it runs.
fn enter_timing(timing_request: &TimingRequest, noted: &Mutex<Option<Timing>>) {
    let (thread, timing) = TimingThread::enter(timing_request);
    TIMING.set(Some(thread));
    noted
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get_or_insert(timing);
}

/// A query in LoadGen's memory, with Regatta's ids.
struct IssuedQuery<'a> {
    first: u64,
    samples: &'a [Sample],
}

impl QuerySequence for IssuedQuery<'_> {
    fn len(&self) -> usize {
        self.samples.len()
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "an index of a 64-bit LoadGen in a 64-bit process"
    )]
    fn sample(&self, position: usize) -> QuerySample {
        QuerySample {
            id: ResponseId(self.first + position as u64),
            index: self.samples[position].index as usize,
        }
    }
}

impl Bridge {
    /// Returns the callbacks for LoadGen, with this bridge as context.
    pub(crate) fn callbacks(&self, sut_name: &CStr, qsl_name: &CStr) -> Callbacks {
        Callbacks {
            context: std::ptr::from_ref(self).cast(),
            sut_name: sut_name.as_ptr(),
            qsl_name: qsl_name.as_ptr(),
            total_sample_count: self.qsl.total_sample_count() as u64,
            performance_sample_count: self.qsl.performance_sample_count() as u64,
            issue_query,
            flush_queries,
            load_samples,
            unload_samples,
            ended,
        }
    }

    /// Calls the SUT or the QSL. `Err` means that the call failed and the run has been abandoned.
    fn guarded(
        &self,
        samples: usize,
        what: &str,
        call: impl FnOnce() -> Result<(), SutError>,
    ) -> Result<(), ()> {
        if !self.sink.gate.enter(samples) {
            self.park();
        }
        let result = catch_unwind(AssertUnwindSafe(call));
        self.sink.gate.leave();
        let reason = match result {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => format!("{what} failed: {}", ErrorChain(&*error)),
            Err(panic) => format!("{what} panicked: {}", panic_words(&*panic)),
        };
        self.sink.give_up(reason);
        Err(())
    }

    /// Blocks LoadGen's thread for ever. It must not continue an abandoned run, and it cannot unwind through C++.
    fn park(&self) -> ! {
        let sink = Arc::clone(&self.sink);
        sink.tell(|events| events.parked = true);
        loop {
            thread::park();
        }
    }

    fn issue(&self, samples: &[Sample]) {
        self.queries
            .store(self.queries.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // The failure has been recorded. LoadGen waits for the responses, or calls back and is parked.
        let _ = self.guarded(samples.len(), "the system under test", || {
            let query = IssuedQuery {
                first: self.sink.answers.issue(samples),
                samples,
            };
            self.sut.issue_query(Query::Lazy(&query), &self.completer)
        });
    }

    fn load(&self, indices: &[usize]) {
        let loaded = self.guarded(0, "loading samples", || {
            self.qsl.load_samples_to_ram(indices)?;
            self.observer.on_window_begin(self.phase());
            Ok(())
        });
        if loaded.is_err() {
            self.park();
        }
        self.start_issue_threads();
        if self.issue_threads == 0 {
            enter_timing(&self.timing_request, &self.timing);
        }
    }

    fn unload(&self, indices: &[usize]) {
        TIMING.take();
        let phase = self.phase();
        self.sets.fetch_add(1, Ordering::Relaxed);
        if matches!(phase, Phase::Accuracy { .. }) {
            *self.accuracy.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.issued_so_far());
        }
        let _ = self.guarded(0, "unloading samples", || {
            self.observer.on_window_end(phase);
            self.qsl.unload_samples_from_ram(indices)
        });
    }

    fn phase(&self) -> Phase {
        let set = self.sets.load(Ordering::Relaxed);
        let has_accuracy = matches!(self.mode, Mode::AccuracyOnly | Mode::SubmissionRun);
        if has_accuracy && set < self.accuracy_sets {
            Phase::Accuracy {
                set,
                sets: self.accuracy_sets,
            }
        } else {
            Phase::Performance
        }
    }

    fn issued_so_far(&self) -> Issued {
        let samples = self.sink.answers.issued();
        // In Server, one call may contain several of LoadGen's queries, each of one sample.
        let server = self.scenario == Scenario::Server;
        Issued {
            queries: if server {
                samples
            } else {
                self.queries.load(Ordering::Relaxed)
            },
            samples,
        }
    }

    /// Returns what was issued in the accuracy pass and in the measurement.
    pub(crate) fn issued(&self) -> (Option<Issued>, Issued) {
        let all = self.issued_so_far();
        let accuracy = *self.accuracy.lock().unwrap_or_else(PoisonError::into_inner);
        match self.mode {
            Mode::PerformanceOnly | Mode::FindPeakPerformance => (None, all),
            Mode::AccuracyOnly => (Some(all), Issued::default()),
            Mode::SubmissionRun => {
                let accuracy = accuracy.unwrap_or(all);
                let rest = Issued {
                    queries: all.queries - accuracy.queries,
                    samples: all.samples - accuracy.samples,
                };
                (Some(accuracy), rest)
            }
        }
    }

    fn start_issue_threads(&self) {
        let mut issuing = self.issuing.lock().unwrap_or_else(PoisonError::into_inner);
        if !issuing.is_empty() || self.issue_threads == 0 {
            return;
        }
        for _ in 0..self.issue_threads {
            let (functions, sink) = (Arc::clone(&self.functions), Arc::clone(&self.sink));
            let (timing_request, timing) = (self.timing_request.clone(), Arc::clone(&self.timing));
            let thread = thread::Builder::new().name("issue".to_owned()).spawn(move || {
                enter_timing(&timing_request, &timing);
                if let Err(refusal) = functions.register_issue_thread() {
                    sink.give_up(format!("LoadGen failed on an issue thread: {}", refusal.words));
                }
            });
            match thread {
                Ok(thread) => issuing.push(thread),
                Err(error) => {
                    self.sink
                        .give_up(format!("cannot create an issue thread: {error}"));
                    drop(issuing);
                    self.park();
                }
            }
        }
        thread::sleep(REGISTRATION);
    }
}

/// Returns the bridge of a context.
///
/// # Safety
/// `context` must be the one in [`Callbacks`] of a run that has neither ended nor been abandoned.
unsafe fn bridge<'a>(context: *const c_void) -> &'a Bridge {
    // SAFETY: by this function's own contract.
    unsafe { &*context.cast::<Bridge>() }
}

/// Returns an array from LoadGen. An empty vector's pointer may be null.
///
/// # Safety
/// Unless `count` is 0, `first` must point to `count` elements that live for `'a`.
unsafe fn array<'a, T>(first: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: by this function's own contract.
    unsafe { std::slice::from_raw_parts(first, count) }
}

extern "C" fn issue_query(context: *const c_void, samples: *const Sample, count: usize) {
    // SAFETY: LoadGen calls this within a run, with a vector that it keeps until this returns.
    let (bridge, samples) = unsafe { (bridge(context), array(samples, count)) };
    bridge.issue(samples);
}

extern "C" fn flush_queries(context: *const c_void) {
    // SAFETY: LoadGen calls this within a run.
    let bridge = unsafe { bridge(context) };
    let _ = bridge.guarded(0, "flushing queries", || bridge.sut.flush_queries());
}

extern "C" fn load_samples(context: *const c_void, indices: *const u64, count: usize) {
    // SAFETY: as for issue_query; a usize is a u64 on the 64-bit machines that plug-ins are built for.
    let (bridge, indices) = unsafe { (bridge(context), array(indices.cast::<usize>(), count)) };
    bridge.load(indices);
}

extern "C" fn unload_samples(context: *const c_void, indices: *const u64, count: usize) {
    // SAFETY: as for load_samples.
    let (bridge, indices) = unsafe { (bridge(context), array(indices.cast::<usize>(), count)) };
    bridge.unload(indices);
}

extern "C" fn ended(context: *const c_void, code: c_int, message: *const c_char) {
    // SAFETY: the run has not ended before this call reports its end.
    let sink = unsafe { Arc::clone(&bridge(context).sink) };
    let how = if code == OK {
        LoadgenEnd::Returned
    } else {
        // SAFETY: a string that lives until this returns.
        LoadgenEnd::Threw(unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned())
    };
    // After this call the bridge may be gone.
    sink.tell(|events| events.ended = Some(how));
}

fn panic_words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a message")
}

const _: () = assert!(
    size_of::<usize>() == size_of::<u64>(),
    "plug-ins are for 64-bit machines"
);
