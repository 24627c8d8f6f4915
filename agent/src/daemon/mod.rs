//! The headless daemon. It accepts runs from the coordinator, executes each in a separate process, and delivers the
//! logs until the coordinator has every byte. It does not load engines or LoadGen, and does not judge results.
//!
//! ```text
//! STATE/device.key                     the device's identity
//! STATE/enrollment.json                 its lab: certificate, authority, the coordinator's key (enrollment)
//! STATE/commands.number                the newest command of the coordinator (trust)
//! STATE/lock                           held while a daemon runs (durable)
//! STATE/reserve                        space for the evidence of a run that fills the disk (durable)
//! STATE/runs/RUN/spec.json             the requested run, byte for byte (runs::run_dir)
//! STATE/runs/RUN/job.json              the run's progress (runs::job)
//! STATE/runs/RUN/outbox.journal        the progress of its delivery (runs::journal)
//! STATE/runs/RUN/scratch/              links to its assets and to the device's own files (executor::scratch)
//! STATE/runs/RUN/files/                the run's logs; each file is a stream
//! STATE/assets/                        models and data from the coordinator, shared by all runs (crate::assets)
//! ```

mod announcements;
mod cpu_exclusion;
mod delivery;
mod device;
pub(crate) mod durable;
mod executor;
mod inbox;
mod lab;
mod link;
mod log_file;
mod open_device;
mod run_slots;
mod runs;
mod sealer;
mod service;
#[cfg(feature = "simulate")]
pub(crate) mod simulation;
mod supervisor;
mod trust;

pub use self::runs::journal;
use self::{
    executor::watch,
    open_device::{OpenDevice, StartError},
    supervisor::Supervisor,
};
use crate::{cli::ServeArgs, exit::Failure};
use regatta_types::ExitCode;

/// Runs the daemon until SIGTERM or SIGINT.
///
/// # Errors
/// When the daemon cannot start: the configuration does not parse (2), or the state directory or key cannot be used
/// (3).
pub(crate) fn serve(args: &ServeArgs) -> Result<ExitCode, Failure> {
    let (config, _) = args.config.load()?;
    let device = OpenDevice::open(config)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Sealing reads on its own thread, one run at a time.
        .max_blocking_threads(2)
        .build()
        .map_err(|e| Failure::could_not(StartError::Runtime(e)))?;
    let socket = device.config.state_socket.clone();
    // This may take seconds if nvpmodel must run. The next run's own helper connection waits for it.
    std::thread::spawn(move || watch::restore_leftovers(&socket));
    runtime.block_on(device.serve(&Supervisor::of_this_process(), None))?;
    Ok(ExitCode::Success)
}
