//! `simulate`: many devices in one process, for tests and for trying a fleet on one machine. Each device has its own key, state directory,
//! enrollment and connection, and the daemon's own code. Runs are processes, a bounded number at once. It simulates no hardware: the
//! engine `sim` does that.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _, Write as _},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anyhow::{Context as _, anyhow};
use regatta_types::ExitCode;
use regatta_wire::enrollment::EnrollmentToken;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{sync::Semaphore, task::LocalSet};
use tracing::Instrument as _;

use super::{
    open_device::{OpenDevice, StartError},
    run_slots::RunSlots,
    supervisor::Supervisor,
};
use crate::{
    cli::SimulateArgs,
    config::AgentConfig,
    enrollment::{Enrollment, Renaming, enroll_with},
    exit::Failure,
};

/// The number of devices that enroll at the same time.
const ENROLLMENTS: usize = 8;
/// The threads that serve the devices. The devices share one disk, which commits the flushes of several threads together; each device of a
/// real fleet has its own.
const THREADS: usize = 32;
/// The threads that seal runs of one thread's devices.
const SEALING_THREADS: usize = 2;
/// The file descriptors of a device: its lock, its connection, and a run with its logs.
const DESCRIPTORS: u64 = 12;

/// Runs simulated devices until SIGTERM or SIGINT.
///
/// # Errors
/// When a device cannot enroll or start: wrong arguments (2), or the coordinator or the disk (3).
pub(crate) fn simulate(args: &SimulateArgs) -> Result<ExitCode, Failure> {
    raise_descriptor_limit(args.devices);
    let configs: Vec<AgentConfig> = (1..=args.devices)
        .map(|number| configure(args, number))
        .collect::<Result<_, _>>()?;
    if args.broker.is_none() {
        enroll_missing(&configs, args)?;
    }
    let devices: Vec<OpenDevice> = configs
        .into_iter()
        .map(OpenDevice::open)
        .collect::<Result<_, _>>()?;
    let text = format!(
        "{} simulated devices in {}; Ctrl-C ends them",
        devices.len(),
        args.state_dir.display()
    );
    // Standard output may be closed.
    let _ = writeln!(io::stdout(), "{text}");
    let slots = Arc::new(Semaphore::new(usize::from(
        args.concurrent_runs.unwrap_or_else(default_concurrent_runs),
    )));
    serve_on_threads(devices, &slots)
}

/// Runs every device until it stops. Returns the first failure of a device.
fn serve_on_threads(mut devices: Vec<OpenDevice>, slots: &Arc<Semaphore>) -> Result<ExitCode, Failure> {
    let supervisor = Arc::new(Supervisor::of_this_process());
    let share = devices.len().div_ceil(THREADS).max(1);
    thread::scope(|scope| {
        let mut threads = Vec::new();
        while !devices.is_empty() {
            let of_thread = devices.split_off(devices.len().saturating_sub(share));
            threads.push(scope.spawn(|| serve_all(of_thread, &supervisor, slots)));
        }
        let mut failure = None;
        for thread in threads {
            let ended = thread.join();
            let ended =
                ended.unwrap_or_else(|_| Err(anyhow!("a thread of simulated devices panicked").into()));
            failure = failure.or(ended.err());
        }
        failure.map_or(Ok(ExitCode::Success), Err)
    })
}

fn serve_all(
    devices: Vec<OpenDevice>,
    supervisor: &Arc<Supervisor>,
    slots: &Arc<Semaphore>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(SEALING_THREADS)
        .build()
        .map_err(|e| Failure::could_not(StartError::Runtime(e)))?;
    LocalSet::new().block_on(&runtime, serve(devices, supervisor, slots))
}

async fn serve(
    devices: Vec<OpenDevice>,
    supervisor: &Arc<Supervisor>,
    slots: &Arc<Semaphore>,
) -> Result<(), Failure> {
    let mut tasks = Vec::with_capacity(devices.len());
    for device in devices {
        let span = tracing::info_span!("device", name = device.config.name);
        let (supervisor, slots) = (Arc::clone(supervisor), RunSlots::shared(Arc::clone(slots)));
        let served = async move { device.serve(&supervisor, Some(slots)).await };
        tasks.push(tokio::task::spawn_local(served.instrument(span)));
    }
    let mut failure = None;
    for task in tasks {
        let ended = task.await.context("a simulated device panicked")?;
        if let Err(error) = ended {
            tracing::error!("a simulated device ended: {error}");
            failure.get_or_insert(error);
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Writes a device's configuration, so that `regatta-agent serve` can run it alone, too.
fn configure(args: &SimulateArgs, number: u32) -> Result<AgentConfig, Failure> {
    let name = format!("{}-{number:04}", args.name);
    let directory = args.state_dir.join(&name);
    let mut text = format!(
        "name = \"{name}\"\nstate_dir = \"state\"\nheartbeat_ms = {}\nmin_free_mib = 1\nspool_max_mib = 256\n",
        args.heartbeat.millis()
    );
    if let Some(broker) = &args.broker {
        text.push_str(&format!("broker = \"{broker}\"\n"));
    }
    if let Some(scratch) = &args.scratch {
        let scratch = std::path::absolute(scratch).with_context(|| scratch.display().to_string())?;
        text.push_str(&format!("scratch = {:?}\n", scratch.display().to_string()));
    }
    let path = directory.join("agent.toml");
    fs::create_dir_all(&directory)
        .and_then(|()| fs::write(&path, text))
        .with_context(|| format!("{} cannot be written", path.display()))?;
    AgentConfig::load(&path).map_err(Failure::usage)
}

/// Enrolls the devices that are not enrolled yet.
fn enroll_missing(configs: &[AgentConfig], args: &SimulateArgs) -> Result<(), Failure> {
    let mut missing = Vec::new();
    for config in configs {
        if Enrollment::load(&config.state_dir)
            .map_err(Failure::could_not)?
            .is_none()
        {
            missing.push(config);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let tokens = match &args.tokens {
        Some(path) => read_tokens(path)?,
        None => BTreeMap::new(),
    };
    let mut pairs = Vec::with_capacity(missing.len());
    for config in &missing {
        let Some(token) = tokens.get(&config.name) else {
            return Err(Failure::usage(anyhow!(
                "{} of {} devices are not enrolled, and {} has no token; hint: `regatta device add {} --count {} | regatta-agent simulate \
                 --devices {} --tokens -`",
                missing.len(),
                configs.len(),
                config.name,
                args.name,
                args.devices,
                args.devices
            )));
        };
        pairs.push((*config, token));
    }
    enroll_all(&pairs)
}

/// Enrolls devices on a few threads. After the first failure no further device begins.
fn enroll_all(pairs: &[(&AgentConfig, &EnrollmentToken)]) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let failure: Mutex<Option<Failure>> = Mutex::default();
    let enroll_next = || {
        while let Some((config, token)) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = enroll_with(token, config, Renaming::Refused) {
                let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(error);
                next.store(pairs.len(), Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..ENROLLMENTS.min(pairs.len()) {
            scope.spawn(enroll_next);
        }
    });
    let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    failure.map_or(Ok(()), Err)
}

/// Reads tokens: a name and its token on each line, as `regatta device add NAME --count N` prints them.
fn read_tokens(path: &Path) -> Result<BTreeMap<String, EnrollmentToken>, Failure> {
    /// The name of standard input.
    const STDIN: &str = "-";
    let shown: PathBuf = if path == Path::new(STDIN) {
        "standard input".into()
    } else {
        path.to_owned()
    };
    let mut text = String::new();
    let read = if path == Path::new(STDIN) {
        io::stdin().read_to_string(&mut text).map(drop)
    } else {
        regatta_fsutil::regular_file::read_text(path).map(|content| text = content)
    };
    read.with_context(|| format!("{} cannot be read", shown.display()))?;
    let mut tokens = BTreeMap::new();
    for (index, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let at = || format!("{}:{}", shown.display(), index + 1);
        let (name, token) = line
            .trim()
            .split_once(' ')
            .ok_or_else(|| Failure::usage(anyhow!("{}: a line has a device's name and its token", at())))?;
        let token = token.trim().parse().with_context(at).map_err(Failure::usage)?;
        tokens.insert(name.to_owned(), token);
    }
    Ok(tokens)
}

/// Raises the limit of open files to what the devices need. If that is not permitted, the first device without a descriptor reports it.
fn raise_descriptor_limit(devices: u32) {
    let limits = getrlimit(Resource::Nofile);
    let needed = 64 + u64::from(devices) * DESCRIPTORS;
    let raised = needed.min(limits.maximum.unwrap_or(u64::MAX));
    if limits.current.is_some_and(|current| current < raised) {
        let limit = Rlimit {
            current: Some(raised),
            maximum: limits.maximum,
        };
        if let Err(e) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!("the limit of open files remains: {e}");
        }
    }
}

/// The default number of run processes at once: twice the processors, because a simulated engine mostly sleeps.
fn default_concurrent_runs() -> u16 {
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    u16::try_from(2 * processors).unwrap_or(u16::MAX)
}
