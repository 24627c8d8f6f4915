//! The headless daemon. It accepts runs from the coordinator, executes each in a separate process, and delivers the
//! logs until the coordinator has every byte. It does not load engines or LoadGen, and does not judge results.
//!
//! ```text
//! STATE/device.key                     the device's identity
//! STATE/enrolment.json                 its lab: certificate, authority, the coordinator's key (enrollment)
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
mod runs;
mod sealer;
mod service;
mod supervisor;
mod trust;

pub use self::runs::journal;
use std::{fs, io, path::PathBuf, sync::Arc};

use regatta_board::FactsReader;
use regatta_wire::topic::{Topic, agent_client_id};

use self::{
    announcements::publications,
    device::Device,
    executor::watch,
    inbox::Inbox,
    link::{LinkSettings, MqttLink, SecureLink},
    runs::{queue::RunQueue, storage::runs_dir},
    service::Service,
    supervisor::Supervisor,
    trust::Trust,
};
use crate::{
    build_info::AGENT_VERSION,
    cli::ServeArgs,
    exit::{self, Failure},
    identity::DeviceIdentity,
};

/// Why the daemon cannot start.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("the state directory {} cannot be used", .path.display())]
    StateDir {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("another daemon works in {}: end it, or give this one a `state_dir` of its own", .path.display())]
    Locked { path: PathBuf },
    #[error("the daemon's runtime cannot be started")]
    Runtime(#[source] io::Error),
}

/// Runs the daemon until SIGTERM or SIGINT.
///
/// # Errors
/// When the daemon cannot start: the configuration does not parse (2), or the state directory or key cannot be used
/// (3).
pub(crate) fn serve(args: &ServeArgs) -> Result<u8, Failure> {
    let (config, _) = args.config.load()?;
    let state_dir = |source| {
        Failure::could_not(StartError::StateDir {
            path: config.state_dir.clone(),
            source,
        })
    };
    fs::create_dir_all(runs_dir(&config)).map_err(state_dir)?;
    let lock = durable::lock(&config.state_dir.join("lock")).map_err(state_dir)?;
    let Some(_held_until_the_end) = lock else {
        return Err(Failure::could_not(StartError::Locked {
            path: config.state_dir.clone(),
        }));
    };
    let identity = DeviceIdentity::load_or_create(&config.state_dir.join("device.key"))
        .map(Arc::new)
        .map_err(Failure::could_not)?;
    tracing::info!("{AGENT_VERSION}: device {} ({})", identity.id(), config.name);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Sealing reads on its own thread, one run at a time.
        .max_blocking_threads(2)
        .build()
        .map_err(|e| Failure::could_not(StartError::Runtime(e)))?;
    runtime.block_on(async {
        let supervisor = Supervisor::of_this_process();
        let Some(lab) = lab::find(&config, &supervisor).await? else {
            return Ok(());
        };
        let socket = config.state_socket.clone();
        // This may take seconds if nvpmodel must run. The next run's own helper connection waits for it.
        std::thread::spawn(move || watch::restore_leftovers(&socket));
        let trust = Trust::load(&config.state_dir, lab.coordinator_key).map_err(state_dir)?;
        let config = Arc::new(config.clone());
        let facts = FactsReader::of_this_machine();
        let device = Device::new(Arc::clone(&config), Arc::clone(&identity), facts);
        let link = MqttLink::start(&LinkSettings {
            secure: lab.broker.tls.then(|| SecureLink {
                state_dir: config.state_dir.clone(),
                identity: Arc::clone(&identity),
            }),
            broker: lab.broker,
            client_id: agent_client_id(identity.id()),
            subscriptions: Topic::device_subscriptions(identity.id()).to_vec(),
            last_will: publications::hello(&device, Vec::new(), false),
        });
        let inbox = Inbox::new(identity.id().clone(), trust);
        let runs = RunQueue::recover(&config).map_err(state_dir)?;
        let service = Service::new(device, inbox, runs, link).map_err(state_dir)?;
        service
            .run(&supervisor)
            .await
            .map_err(|e| Failure::could_not(StartError::Runtime(e)))
    })?;
    Ok(exit::OK)
}
