//! Encodes and signs what the daemon publishes: topic, payload and quality of service of each message. It does not decide when
//! they are due.

use regatta_loadgen_official::SearchPath;
use regatta_types::{RunId, documents::DeviceFacts};
use regatta_wire::{
    FrameKind, frame,
    message::{Examined, Heartbeat, Hello, Inventory, Message, StateReport},
    signed_report::SignedReport,
    topic::Leaf,
};

use super::{onnxruntime, software::software_facts};
use crate::{
    build_info::AGENT_VERSION,
    daemon::{device::Device, link::Publication, runs::run_delivery::StreamMessage},
    doctor,
};

/// Returns the retained hello. `online` is `false` in the last will and in the last message of a stopping daemon.
pub(crate) fn hello(device: &Device, runs: Vec<RunId>, online: bool) -> Option<Publication> {
    let facts = DeviceFacts {
        onnxruntime: onnxruntime::library(),
        heartbeat_ms: u64::try_from(device.config().heartbeat.as_millis()).ok(),
        assets_max_bytes: Some(device.config().assets_max_bytes),
        state_helper: Some(device.config().state_socket.exists()),
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
        engines: regatta_engines::kinds().collect(),
        facts_json: serde_json::to_vec(&facts).unwrap_or_default(),
        runs,
    };
    // The hello lists as many of the newest runs as fit. The inventory lists all of them.
    let fits = |frame: &Result<Vec<u8>, _>| {
        frame
            .as_ref()
            .is_ok_and(|frame| frame.len() <= SignedReport::MAX_MESSAGE)
    };
    while !hello.runs.is_empty() && !fits(&hello.to_frame()) {
        hello.runs.drain(..hello.runs.len().div_ceil(2));
    }
    retained(report(device, Leaf::Hello, &hello))
}

/// Returns the heartbeat. It is neither acknowledged nor signed, because the next one replaces it.
pub(crate) fn heartbeat(device: &Device, heartbeat: &Heartbeat) -> Option<Publication> {
    let message = encode(&Leaf::Telemetry, heartbeat)?;
    Some(Publication {
        at_least_once: false,
        ..event(device, Leaf::Telemetry, message)
    })
}

pub(crate) fn inventory_page(device: &Device, page: &Inventory) -> Option<Publication> {
    report(device, Leaf::Telemetry, page)
}

/// Returns a run's retained state.
pub(crate) fn state(device: &Device, state: &StateReport) -> Option<Publication> {
    retained(report(device, Leaf::State(state.run), state))
}

/// Returns the message that clears the retained state of a removed run.
pub(crate) fn cleared_state(device: &Device, run: RunId) -> Publication {
    Publication {
        retain: true,
        ..event(device, Leaf::State(run), Vec::new())
    }
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
    report(device, Leaf::State(command), &Examined { json, text })
}

/// Returns a message about a stream. An end is signed. Chunks are not, because the end has the hash of all of them.
pub(crate) fn stream_message(device: &Device, run: RunId, message: StreamMessage) -> Option<Publication> {
    let leaf = Leaf::Log(run, message.stream);
    if frame::stated_kind(&message.payload) == Some(FrameKind::Chunk) {
        return Some(event(device, leaf, message.payload));
    }
    signed(device, leaf, &message.payload)
}

/// Returns a message as a signed publication.
fn report(device: &Device, leaf: Leaf, message: &impl Message) -> Option<Publication> {
    let message = encode(&leaf, message)?;
    signed(device, leaf, &message)
}

fn encode(leaf: &Leaf, message: &impl Message) -> Option<Vec<u8>> {
    message
        .to_frame()
        .inspect_err(|e| tracing::error!("a message on {leaf:?} cannot be published: {e}"))
        .ok()
}

fn signed(device: &Device, leaf: Leaf, message: &[u8]) -> Option<Publication> {
    let payload = device
        .identity()
        .sign_report(&leaf, message)
        .inspect_err(|e| tracing::error!("a message on {leaf:?} cannot be published: {e}"))
        .ok()?;
    Some(event(device, leaf, payload))
}

/// Makes the broker retain a publication for later subscribers.
fn retained(publication: Option<Publication>) -> Option<Publication> {
    publication.map(|publication| Publication {
        retain: true,
        ..publication
    })
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
