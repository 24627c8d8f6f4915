//! Tables of devices.

use comfy_table::{ContentArrangement, Table};
use jiff::Timestamp;
use regatta_text::escape;
use regatta_types::documents::{DeviceFacts, GpuFacts};
use regatta_wire::frame;

use super::{cell, facts_table, fits, keep_whole, table};
use regatta_lab_net::fleet::{default_engine, engine_obstacle, health_check_engine, unavailable_engines};
use regatta_lab_store::{DeviceLabel, DeviceRow, HealthOrigin, OtherVersion, PendingToken, WallRatio};
use regatta_lab_views::wording::{self, device_state, state_and_health};

/// Formats devices, one line each, and the devices whose hello could not be read or that have not enrolled yet.
pub(crate) fn devices(devices: &[DeviceRow], refused: &[OtherVersion], pending: &[PendingToken]) -> String {
    let mut parts = Vec::new();
    match (devices, refused) {
        ([], []) if !pending.is_empty() => {}
        ([], []) => parts.push("no device has connected yet: start `regatta-agent serve` on one".to_owned()),
        ([], _) => {}
        _ => parts.push(known(devices)),
    }
    parts.extend(refused.iter().map(|device| {
        format!(
            "{} was refused: its agent speaks wire version {}, this coordinator {} to {}; update the older of the two",
            device.device,
            device.wire,
            frame::MIN_VERSION,
            frame::VERSION
        )
    }));
    parts.extend(pending.iter().map(|token| {
        format!(
            "{} has not enrolled yet; its token is valid until {}",
            escape(&token.name),
            wording::time(&token.expires)
        )
    }));
    parts.join("\n")
}

/// Formats one line per device, or three lines on a narrow terminal.
fn known(devices: &[DeviceRow]) -> String {
    let now = Timestamp::now();
    let wide = a_line_each(devices, now);
    if fits(&wide) {
        wide
    } else {
        three_lines_each(devices, now)
    }
}

pub(super) fn a_line_each(devices: &[DeviceRow], now: Timestamp) -> String {
    let gpus: Vec<String> = devices.iter().map(gpus_of).collect();
    // Boards of a kind have the same GPUs. A fleet without GPUs needs no column.
    let has_gpus = gpus.iter().any(|gpus| !gpus.is_empty());
    let has_labels = devices.iter().any(|device| !device.labels.is_empty());
    let (before, behind) = (["name", "state", "engines"], ["agent", "last seen", "id"]);
    let mut table = table(
        before
            .into_iter()
            .chain(has_labels.then_some("labels"))
            .chain(has_gpus.then_some("GPUs"))
            .chain(behind),
    );
    table.set_content_arrangement(ContentArrangement::Disabled);
    for (device, gpus) in devices.iter().zip(gpus) {
        let before = [
            escape(&device.name).into_owned(),
            state_and_health(device),
            engines(device),
        ];
        let behind = [
            escape(version(device)).into_owned(),
            wording::ago(&device.last_seen, now),
            short_id(device),
        ];
        table.add_row(
            before
                .into_iter()
                .chain(has_labels.then(|| joined(&device.labels)))
                .chain(has_gpus.then_some(gpus))
                .chain(behind),
        );
    }
    table.trim_fmt()
}

/// Returns the beginning of a device's id, which names the device in commands.
fn short_id(device: &DeviceRow) -> String {
    device.id.as_str().chars().take(8).collect()
}

pub(super) fn three_lines_each(devices: &[DeviceRow], now: Timestamp) -> String {
    let mut table = table(["name", "state, engines, agent, last seen", "id"]);
    for device in devices {
        let mut gpus = gpus_of(device);
        if !gpus.is_empty() {
            gpus.push('\n');
        }
        let labels = match device.labels.as_slice() {
            [] => String::new(),
            labels => format!("labels {}\n", joined(labels)),
        };
        table.add_row([
            escape(&device.name).into_owned(),
            format!(
                "{}\n{}\n{labels}{gpus}{}, {}",
                state_and_health(device),
                engines(device),
                escape(version(device)),
                wording::ago(&device.last_seen, now)
            ),
            short_id(device),
        ]);
    }
    keep_whole(&mut table, 2);
    table.trim_fmt()
}

/// Formats one device with its own description and its ratios to the rails: of a plug or USB meter, and of a listed one.
pub(crate) fn device(device: &DeviceRow, ratios: [Option<&WallRatio>; 2]) -> String {
    let mut table = facts_table();
    let rows = [
        ("name", device.name.clone()),
        ("device", device.id.to_string()),
        ("state", device_state(device).to_owned()),
        ("health", health(device)),
        ("labels", labels(&device.labels)),
        ("engines", engines(device)),
        ("default", default_engine_text(device)),
        ("agent", device.agent.clone()),
        ("first seen", wording::time(&device.first_seen)),
        ("last seen", wording::time(&device.last_seen)),
    ];
    for (name, value) in rows {
        table.add_row([cell(name), cell(value)]);
    }
    let named = [("wall/rails", "runs"), ("meter/rails", "power sessions")];
    for ((name, kind), ratio) in named.into_iter().zip(ratios) {
        if let Some(ratio) = ratio {
            let WallRatio {
                runs,
                median,
                least,
                most,
            } = ratio;
            let text = format!("{median:.3} (median; {least:.3} to {most:.3} in {runs} of its {kind})");
            table.add_row([cell(name), cell(text)]);
        }
    }
    for (engine, reason) in unavailable_engines(device) {
        table.add_row([cell("cannot run"), cell(format!("{engine}: {reason}"))]);
    }
    match device.reported_facts() {
        Ok(facts) => add_facts(&mut table, &facts),
        Err(error) => {
            table.add_row([cell("facts"), cell(format!("cannot be parsed here: {error}"))]);
        }
    }
    table.trim_fmt()
}

/// Formats the labels of a device.
pub(crate) fn labels(labels: &[DeviceLabel]) -> String {
    match labels {
        [] => "no labels".to_owned(),
        labels => joined(labels),
    }
}

fn joined(labels: &[DeviceLabel]) -> String {
    let words: Vec<String> = labels.iter().map(ToString::to_string).collect();
    words.join(", ")
}

fn add_facts(table: &mut Table, facts: &DeviceFacts) {
    let rows = [
        ("host", facts.hostname.clone()),
        ("board", facts.model.clone()),
        (
            "system",
            format!("{} ({}, kernel {})", facts.os, facts.arch, facts.kernel),
        ),
        ("CPUs", facts.cpus.to_string()),
        ("memory", wording::bytes(facts.memory_bytes)),
    ];
    for (name, value) in rows.into_iter().filter(|(_, value)| !value.is_empty()) {
        table.add_row([cell(name), cell(value)]);
    }
    let software = facts.software.iter();
    let software = software.flat_map(|software| {
        [
            ("JetPack", &software.jetpack),
            ("TensorRT", &software.tensorrt),
            ("ONNX Runtime", &software.onnxruntime),
            ("agent SHA-256", &software.agent_sha256),
        ]
    });
    for (name, value) in software {
        if let Some(value) = value {
            table.add_row([cell(name), cell(value.clone())]);
        }
    }
    let loadgens = ["native".to_owned()].into_iter();
    let loadgens = loadgens.chain(
        facts
            .loadgens
            .iter()
            .map(|revision| format!("official:{revision}")),
    );
    table.add_row([cell("LoadGens"), cell(loadgens.collect::<Vec<_>>().join(", "))]);
    for (number, gpu) in facts.gpus.iter().enumerate() {
        let whose = if gpu.integrated { "shared" } else { "its own" };
        let memory = wording::bytes(gpu.memory_bytes);
        let text = format!(
            "{}, {} SMs, compute capability {}, {memory} of {whose} memory",
            gpu.name, gpu.multiprocessors, gpu.compute_capability
        );
        table.add_row([cell(format!("GPU {number}")), cell(text)]);
    }
}

/// Formats a device's GPUs. Returns `?` when this coordinator cannot parse the device's description, which `device show` explains.
fn gpus_of(device: &DeviceRow) -> String {
    device
        .reported_facts()
        .map_or_else(|_| "?".to_owned(), |facts| gpus(&facts.gpus))
}

/// Groups equal GPUs by name: `2 x NVIDIA L4`.
fn gpus(gpus: &[GpuFacts]) -> String {
    let kinds = gpus.chunk_by(|one, next| one.name == next.name);
    let words = kinds.map(|kind| match kind {
        [one] => one.name.clone(),
        several => format!("{} x {}", several.len(), several[0].name),
    });
    escape(&words.collect::<Vec<_>>().join(", ")).into_owned()
}

/// Returns the agent's version without the program's name, which is the same on every line.
fn version(device: &DeviceRow) -> &str {
    let agent = device.agent.as_str();
    agent.strip_prefix("regatta-agent ").unwrap_or(agent)
}

/// Formats a device's health with its time and cause.
fn health(device: &DeviceRow) -> String {
    let HealthOrigin { since, cause, .. } = device.health.shown();
    let since = since.map_or_else(String::new, |since| format!(" since {}", wording::time(since)));
    let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
    format!("{}{since}{cause}", device.health.health().as_str())
}

/// Formats the engine of runs that do not name one.
fn default_engine_text(device: &DeviceRow) -> String {
    default_engine(device).map_or_else(
        || {
            format!(
                "no engine computes answers; `device check` uses {}",
                health_check_engine(device)
            )
        },
        |engine| format!("{engine}, for runs without --engine"),
    )
}

/// Formats the engines that run on a device. `device show` has those of its agent that do not, with the reason.
fn engines(device: &DeviceRow) -> String {
    let engines = device.engines.iter();
    let runnable = engines.filter(|engine| engine_obstacle(device, **engine).is_none());
    runnable
        .map(|engine| engine.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}
