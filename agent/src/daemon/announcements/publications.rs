//! Encodes the daemon's announcements: topic, payload and quality of service of each. It does not decide when they are
//! due.

use regatta_loadgen_official::SearchPath;
use regatta_types::{RunId, documents::DeviceFacts};
use regatta_wire::{
    message::{Examined, Heartbeat, Hello, Inventory, Message, StateReport},
    topic::Leaf,
};

use super::software::software_facts;
use crate::{
    build_info::{AGENT_VERSION, ENGINES},
    daemon::{device::Device, link::Publication},
    doctor,
};

/// Returns the retained hello. `online` is `false` in the last will and in the last message of a stopping daemon.
pub(crate) fn hello(device: &Device, runs: Vec<RunId>, online: bool) -> Publication {
    let facts = DeviceFacts {
        heartbeat_ms: u64::try_from(device.config().heartbeat.as_millis()).ok(),
        loadgens: SearchPath::from_environment().revisions(),
        software: Some(software_facts(device.facts())),
        ..device.facts().read()
    };
    let mut hello = Hello {
        device: device.identity().id().clone(),
        name: device.config().name.clone(),
        public_key: device.identity().public_key(),
        online,
        agent: AGENT_VERSION.to_owned(),
        engines: ENGINES.to_vec(),
        facts_json: serde_json::to_vec(&facts).unwrap_or_default(),
        runs,
    };
    // The hello lists as many of the newest runs as fit. The inventory lists all of them.
    let payload = loop {
        match hello.to_frame() {
            Ok(payload) => break payload,
            Err(e) if hello.runs.is_empty() => {
                tracing::error!("the hello is too large: {e}");
                break Vec::new();
            }
            Err(_) => drop(hello.runs.drain(..hello.runs.len().div_ceil(2))),
        }
    };
    retained(device, Leaf::Hello, payload)
}

/// Returns the heartbeat. It is not acknowledged, because the next one replaces it.
pub(crate) fn heartbeat(device: &Device, heartbeat: &Heartbeat) -> Option<Publication> {
    Some(Publication {
        at_least_once: false,
        ..event(device, Leaf::Telemetry, encode(heartbeat, "the heartbeat")?)
    })
}

/// Returns a page of the inventory.
pub(crate) fn inventory_page(device: &Device, page: &Inventory) -> Option<Publication> {
    Some(event(device, Leaf::Telemetry, encode(page, "the inventory")?))
}

/// Returns a run's retained state.
pub(crate) fn state(device: &Device, report: &StateReport) -> Option<Publication> {
    let payload = encode(report, &format!("the state of run {}", report.run))?;
    Some(retained(device, Leaf::State(report.run), payload))
}

/// Returns the message that clears the retained state of a removed run.
pub(crate) fn cleared_state(device: &Device, run: RunId) -> Publication {
    retained(device, Leaf::State(run), Vec::new())
}

/// Examines the device and returns the answer to the `Examine` command with this id.
pub(crate) fn examination(device: &Device, command: RunId) -> Option<Publication> {
    let config = device.config();
    let (json, text) = doctor::examine(
        &config.system_root,
        device.facts().gpus(),
        config.scratch.as_deref(),
    )
    .inspect_err(|e| tracing::error!("the device cannot be examined: {e}"))
    .ok()?;
    let payload = encode(&Examined { json, text }, "the result of the examination")?;
    Some(event(device, Leaf::State(command), payload))
}

fn encode(message: &impl Message, what: &str) -> Option<Vec<u8>> {
    message
        .to_frame()
        .inspect_err(|e| tracing::error!("{what} cannot be published: {e}"))
        .ok()
}

/// Returns a publication that the broker retains for later subscribers.
fn retained(device: &Device, leaf: Leaf, payload: Vec<u8>) -> Publication {
    Publication {
        retain: true,
        ..event(device, leaf, payload)
    }
}

/// Returns a publication for present subscribers, delivered at least once.
fn event(device: &Device, leaf: Leaf, payload: Vec<u8>) -> Publication {
    Publication {
        topic: device.topic(leaf),
        payload,
        retain: false,
        at_least_once: true,
    }
}
