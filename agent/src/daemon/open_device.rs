//! A device that this process serves: its locked state directory, its identity, and its service until the end.

use std::{fs, io, path::PathBuf, sync::Arc};

use regatta_board::FactsReader;
use regatta_wire::topic::{Topic, agent_client_id};

use super::{
    announcements::publications,
    device::Device,
    durable,
    inbox::Inbox,
    lab,
    link::{LinkSettings, MqttLink, SecureLink},
    run_slots::RunSlots,
    runs::{queue::RunQueue, storage::runs_dir},
    service::Service,
    supervisor::Supervisor,
    trust::Trust,
};
use crate::{
    build_info::AGENT_VERSION,
    config::AgentConfig,
    exit::Failure,
    identity::{DeviceIdentity, KEY_FILE},
};

/// Why the daemon cannot start.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    /// The state directory cannot be used.
    #[error("the state directory {} cannot be used", .path.display())]
    StateDir {
        /// The directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Another daemon holds the state directory.
    #[error("another daemon uses {}: stop it, or set another `state_dir` for this one", .path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The daemon cannot run.
    #[error("the daemon's runtime cannot be started")]
    Runtime(#[source] io::Error),
}

/// A device whose state directory this process holds.
pub(super) struct OpenDevice {
    /// The device's configuration.
    pub(super) config: AgentConfig,
    identity: Arc<DeviceIdentity>,
    /// Held until the end.
    _lock: fs::File,
}

impl OpenDevice {
    /// Locks the state directory, and makes the device's key if there is none.
    ///
    /// # Errors
    /// When the state directory or the key cannot be used, or another daemon holds them (3).
    pub(super) fn open(config: AgentConfig) -> Result<Self, Failure> {
        let state_dir = |source| {
            Failure::could_not(StartError::StateDir {
                path: config.state_dir.clone(),
                source,
            })
        };
        fs::create_dir_all(runs_dir(&config)).map_err(state_dir)?;
        let lock = durable::lock(&config.state_dir.join("lock")).map_err(state_dir)?;
        let Some(lock) = lock else {
            return Err(Failure::could_not(StartError::Locked {
                path: config.state_dir,
            }));
        };
        let identity = DeviceIdentity::load_or_create(&config.state_dir.join(KEY_FILE))
            .map(Arc::new)
            .map_err(Failure::could_not)?;
        tracing::info!("{AGENT_VERSION}: device {} ({})", identity.id(), config.name);
        Ok(Self {
            config,
            identity,
            _lock: lock,
        })
    }

    /// Serves the device until SIGTERM or SIGINT. With `slots` it is a simulated one, which shares this process with others.
    ///
    /// # Errors
    /// When the enrollment or the state directory cannot be used (3).
    pub(super) async fn serve(self, supervisor: &Supervisor, slots: Option<RunSlots>) -> Result<(), Failure> {
        let Self { config, identity, .. } = &self;
        let state_dir = |source| {
            Failure::could_not(StartError::StateDir {
                path: config.state_dir.clone(),
                source,
            })
        };
        let Some(lab) = lab::find(config, supervisor).await? else {
            return Ok(());
        };
        let trust = Trust::load(&config.state_dir, lab.coordinator_key).map_err(state_dir)?;
        let config = Arc::new(config.clone());
        let facts = FactsReader::of_this_machine();
        let device = Device::new(Arc::clone(&config), Arc::clone(identity), facts);
        let link = MqttLink::start(&LinkSettings {
            secure: lab.broker.tls.then(|| SecureLink {
                state_dir: config.state_dir.clone(),
                identity: Arc::clone(identity),
            }),
            broker: lab.broker,
            client_id: agent_client_id(identity.id()),
            subscriptions: Topic::device_subscriptions(identity.id()).to_vec(),
            last_will: publications::hello(&device, Vec::new(), false),
        });
        let inbox = Inbox::new(identity.id().clone(), trust);
        let runs = RunQueue::recover(&config).map_err(state_dir)?;
        let service = Service::new(device, inbox, runs, link, slots).map_err(state_dir)?;
        service
            .run(supervisor)
            .await
            .map_err(|e| Failure::could_not(StartError::Runtime(e)))
    }
}
