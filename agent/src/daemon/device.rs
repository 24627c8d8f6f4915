//! The device that the daemon serves: its configuration, identity and facts. Components read from it; only the event loop
//! adds facts.

use std::{path::Path, sync::Arc, thread};

use regatta_board::FactsReader;
use regatta_wire::topic::{Leaf, Topic};

use crate::{config::AgentConfig, enrollment, gpus::FoundGpus, identity::DeviceIdentity};

/// Configuration, identity and facts of this device.
#[derive(Debug)]
pub(crate) struct Device {
    config: Arc<AgentConfig>,
    identity: Arc<DeviceIdentity>,
    facts: FactsReader,
}

impl Device {
    /// Returns the device. Its GPUs are not known yet.
    pub(crate) const fn new(
        config: Arc<AgentConfig>,
        identity: Arc<DeviceIdentity>,
        facts: FactsReader,
    ) -> Self {
        Self {
            config,
            identity,
            facts,
        }
    }

    /// Returns the daemon's configuration.
    pub(crate) fn config(&self) -> &AgentConfig {
        &self.config
    }

    /// Returns the daemon's configuration, for a component that keeps it.
    pub(crate) fn shared_config(&self) -> Arc<AgentConfig> {
        Arc::clone(&self.config)
    }

    /// Returns the device's identity.
    pub(crate) const fn identity(&self) -> &Arc<DeviceIdentity> {
        &self.identity
    }

    /// Returns the reader of the device's facts.
    pub(crate) const fn facts(&self) -> &FactsReader {
        &self.facts
    }

    /// Adds the GPUs that CUDA found to the facts, and the reason why TensorRT cannot be used, if there is one.
    pub(crate) fn add_gpus(&mut self, (gpus, tensorrt_obstacle): FoundGpus) {
        self.facts = self.facts.clone().with_gpus(gpus, tensorrt_obstacle);
    }

    /// Returns a topic of this device.
    pub(crate) fn topic(&self, leaf: Leaf) -> String {
        Topic {
            device: self.identity.id().clone(),
            leaf,
        }
        .to_string()
    }

    /// Returns why the facts do not describe this machine, if the configuration names another root directory.
    pub(crate) fn foreign_root(&self) -> Option<String> {
        let root = &self.config.system_root;
        (root != Path::new("/")).then(|| {
            format!(
                "the device's state and sensors were read below {}, not from the machine itself",
                root.display()
            )
        })
    }

    /// Renews the device's certificate when it is due, on a separate thread because renewal waits for the coordinator.
    pub(crate) fn renew_certificate_when_due(&self) {
        let (config, identity) = (Arc::clone(&self.config), Arc::clone(&self.identity));
        let renew =
            move || enrollment::renew_when_due(&config.state_dir, config.coordinator.as_deref(), &identity);
        if let Err(e) = thread::Builder::new().name("renewal".to_owned()).spawn(renew) {
            tracing::warn!("the expiry of the certificate could not be checked: {e}");
        }
    }
}
