//! Our side: LoadGen with a SUT that does nothing, as in `bench.cc`. LoadGen has no special path for it.

use std::{
    cell::RefCell,
    error::Error,
    fs,
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use regatta_loadgen::{
    NativeLoadGen,
    load_gen::{LoadGen, NoObserver},
    request::{ConfText, RunRequest, Wait},
    sut::{Completer, Query, QuerySampleResponse, ResidentLibrary, ResponseId, SutError, SystemUnderTest},
};
use regatta_types::{Mode, Scenario};
use rustix::time::{ClockId, clock_gettime};

/// The queries that wait for the answering thread.
#[derive(Default)]
struct Pending {
    ids: Vec<ResponseId>,
    completer: Option<Completer>,
    done: bool,
}

struct NullSut {
    threaded: bool,
    begun: Instant,
    queries: AtomicU64,
    first_ns: AtomicI64,
    flushed_ns: AtomicI64,
    first_cpu_ns: AtomicI64,
    flushed_cpu_ns: AtomicI64,
    answered_ns: AtomicI64,
    turnaround_ns: Mutex<Vec<u32>>,
    pending: Mutex<Pending>,
    wake: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl NullSut {
    fn new(threaded: bool) -> Self {
        Self {
            threaded,
            begun: Instant::now(),
            queries: AtomicU64::new(0),
            first_ns: AtomicI64::new(0),
            flushed_ns: AtomicI64::new(0),
            first_cpu_ns: AtomicI64::new(0),
            flushed_cpu_ns: AtomicI64::new(0),
            answered_ns: AtomicI64::new(0),
            turnaround_ns: Mutex::new(Vec::with_capacity(4_000_000)),
            pending: Mutex::default(),
            wake: Condvar::new(),
        }
    }

    fn now_ns(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    fn hand_over(&self, query: Query<'_>, completer: &Completer) {
        let answered = self.answered_ns.load(Ordering::SeqCst);
        if answered != 0 {
            let took = u32::try_from(self.now_ns() - answered).unwrap_or(u32::MAX);
            lock(&self.turnaround_ns).push(took);
        }
        let mut pending = lock(&self.pending);
        pending
            .ids
            .extend((0..query.len()).map(|position| query.sample(position).id));
        if pending.completer.is_none() {
            pending.completer = Some(completer.clone());
        }
        self.wake.notify_one();
    }

    fn work(&self) {
        let mut ids = Vec::new();
        loop {
            let mut pending = lock(&self.pending);
            while !pending.done && pending.ids.is_empty() {
                pending = self.wake.wait(pending).unwrap_or_else(PoisonError::into_inner);
            }
            if pending.done {
                return;
            }
            std::mem::swap(&mut ids, &mut pending.ids);
            let completer = pending.completer.clone();
            drop(pending);
            let answers: Vec<_> = ids.drain(..).map(empty).collect();
            if let Some(completer) = completer {
                self.answered_ns.store(self.now_ns(), Ordering::SeqCst);
                completer.complete(&answers);
            }
        }
    }
}

thread_local! {
    /// Kept from query to query, as `bench.cc` keeps its own.
    static ANSWERS: RefCell<Vec<QuerySampleResponse<'static>>> = const { RefCell::new(Vec::new()) };
}

fn empty(id: ResponseId) -> QuerySampleResponse<'static> {
    QuerySampleResponse::new(id, &[])
}

impl SystemUnderTest for NullSut {
    fn name(&self) -> &str {
        "null"
    }

    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        // One thread issues; as in `bench.cc` counting needs no locked operation.
        let queries = self.queries.load(Ordering::Relaxed);
        self.queries.store(queries + 1, Ordering::Relaxed);
        if queries == 0 {
            self.first_ns.store(self.now_ns(), Ordering::Relaxed);
            self.first_cpu_ns.store(cpu_ns(), Ordering::Relaxed);
        }
        if self.threaded {
            self.hand_over(query, completer);
            return Ok(());
        }
        ANSWERS.with_borrow_mut(|answers| {
            let mut samples = query.iter().map(|sample| empty(sample.id));
            loop {
                answers.clear();
                answers.extend(samples.by_ref().take(64));
                if answers.is_empty() {
                    return;
                }
                completer.complete(answers);
            }
        });
        Ok(())
    }

    fn flush_queries(&self) -> Result<(), SutError> {
        self.flushed_ns.store(self.now_ns(), Ordering::Relaxed);
        self.flushed_cpu_ns.store(cpu_ns(), Ordering::Relaxed);
        Ok(())
    }
}

/// Runs once and prints the figures: SCENARIO inline|thread|spin MIN_DURATION_MS TARGET SAMPLES_PER_QUERY LOG_DIR.
pub(crate) fn measure(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [scenario, answers, duration_ms, target, per_query, dir] = arguments else {
        return Err("expected SCENARIO ANSWERS MIN_DURATION_MS TARGET SAMPLES_PER_QUERY LOG_DIR".into());
    };
    let scenario: Scenario = scenario.parse()?;
    let mut request = RunRequest::new("null", scenario, Mode::PerformanceOnly, dir);
    let key = match scenario {
        Scenario::SingleStream | Scenario::MultiStream => "target_latency",
        Scenario::Server | Scenario::Offline => "target_qps",
    };
    let conf = format!("*.{scenario}.{key} = {target}\n*.MultiStream.samples_per_query = {per_query}");
    request.user_conf = Some(ConfText::new("user.conf", conf));
    request.overrides.min_duration = Some(Duration::from_millis(duration_ms.parse()?));
    request.overrides.min_query_count = Some(1);
    request.issue.wait = if answers == "spin" {
        Wait::Spin
    } else {
        Wait::Block
    };

    let sut = NullSut::new(answers != "inline");
    let begun = Instant::now();
    thread::scope(|scope| {
        if sut.threaded {
            scope.spawn(|| sut.work());
        }
        let outcome = NativeLoadGen.run(&sut, &ResidentLibrary::new("null", 1024), &request, &NoObserver);
        lock(&sut.pending).done = true;
        sut.wake.notify_one();
        outcome
    })?;
    let wall = begun.elapsed();

    let mut turnaround = std::mem::take(&mut *lock(&sut.turnaround_ns));
    turnaround.sort_unstable();
    let at = |percent: usize| {
        turnaround
            .get(turnaround.len() * percent / 100)
            .copied()
            .unwrap_or(0)
    };
    let spent_ns = sut.flushed_ns.load(Ordering::Relaxed) - sut.first_ns.load(Ordering::Relaxed);
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let per_query = |spent_ns: i64| spent_ns as f64 / sut.queries.load(Ordering::Relaxed) as f64;
    let cpu_ns = sut.flushed_cpu_ns.load(Ordering::Relaxed) - sut.first_cpu_ns.load(Ordering::Relaxed);
    println!(
        "wall_s={:.4} query_ns={:.1} query_cpu_ns={:.1} rss_mib={:.1} turnaround_p50_ns={} turnaround_p99_ns={}",
        wall.as_secs_f64(),
        per_query(spent_ns),
        per_query(cpu_ns),
        peak_rss_mib()?,
        at(50),
        at(99)
    );
    Ok(())
}

/// Returns the processor time of all threads, which other load on the machine does not increase.
fn cpu_ns() -> i64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec * 1_000_000_000 + spent.tv_nsec
}

/// Returns the largest resident size of this process by the kernel.
fn peak_rss_mib() -> Result<f64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .ok_or("no VmHWM in /proc/self/status")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}
