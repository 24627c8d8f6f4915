//! Formats the status of a lab. The same structure is its JSON form.

use std::fmt::Write as _;

use jiff::Timestamp;
use regatta_text::escape;
use regatta_types::RunId;
use serde::Serialize;

use regatta_lab_store::{DeviceActivity, DeviceHealth};

use super::{cell, right, table};
use regatta_lab_views::wording::{self, ago};

#[derive(Debug, Serialize)]
pub(crate) struct LabStatus {
    pub(crate) coordinator: CoordinatorStatus,
    pub(crate) broker: BrokerStatus,
    /// The workspace's disk.
    pub(crate) disk: DiskStatus,
    /// The tokens that no device has used yet.
    pub(crate) tokens: Vec<TokenStatus>,
    /// The number of runs that were not sent yet.
    pub(crate) queued: usize,
    /// The number of sent runs without a record.
    pub(crate) in_progress: usize,
    /// The devices, by name.
    pub(crate) devices: Vec<DeviceStatus>,
    /// The end of the certificate of the lab's authority, RFC 3339 UTC. `None` in a lab without keys.
    pub(crate) authority_until: Option<String>,
    /// The things that need attention.
    pub(crate) attention: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct CoordinatorStatus {
    /// Whether one serves the workspace.
    pub(crate) running: bool,
    /// The time when it began, RFC 3339 UTC.
    pub(crate) since: Option<String>,
    /// The workspace's directory.
    pub(crate) workspace: String,
    /// The URL of the live page.
    pub(crate) page: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct BrokerStatus {
    /// Whether it is part of the coordinator.
    pub(crate) embedded: bool,
    pub(crate) address: String,
    /// Whether the coordinator is connected to it.
    pub(crate) connected: bool,
    /// The time when the coordinator lost it, RFC 3339 UTC.
    pub(crate) lost_since: Option<String>,
}

/// The workspace's disk.
#[derive(Debug, Serialize)]
pub(crate) struct DiskStatus {
    /// Free bytes.
    pub(crate) free_bytes: u64,
    /// Bytes of the disk.
    pub(crate) total_bytes: u64,
    /// Bytes that the coordinator keeps free.
    pub(crate) kept_free_bytes: u64,
    /// Bytes of the delivered files of all runs.
    pub(crate) run_bytes: u64,
}

/// A token that no device has used yet.
#[derive(Debug, Serialize)]
pub(crate) struct TokenStatus {
    /// The name that its device will have.
    pub(crate) name: String,
    /// The time when it expires, RFC 3339 UTC.
    pub(crate) expires: String,
}

/// A device with its run.
#[derive(Debug, Serialize)]
pub(crate) struct DeviceStatus {
    /// Its id.
    pub(crate) device: String,
    pub(crate) name: String,
    pub(crate) state: DeviceActivity,
    pub(crate) health: DeviceHealth,
    pub(crate) run: Option<RunId>,
    /// The scenario and mode of that run.
    pub(crate) subject: Option<String>,
    /// The phase of that run.
    pub(crate) phase: Option<&'static str>,
    /// The number of runs that wait for it.
    pub(crate) queued: usize,
    /// The time of its last message, RFC 3339 UTC.
    pub(crate) last_seen: String,
    /// The end of its certificate, RFC 3339 UTC.
    pub(crate) certificate_until: Option<String>,
}

/// Formats the status for people.
pub(crate) fn status(lab: &LabStatus) -> String {
    status_at(lab, Timestamp::now())
}

pub(super) fn status_at(lab: &LabStatus, now: Timestamp) -> String {
    let running = match &lab.coordinator.since {
        Some(since) => format!("running since {}", wording::time(since)),
        None if lab.coordinator.running => "running".to_owned(),
        None => "not running".to_owned(),
    };
    let kind = if lab.broker.embedded {
        "embedded"
    } else {
        "external"
    };
    let connected = match (lab.broker.connected, &lab.broker.lost_since) {
        (true, _) => "connected".to_owned(),
        (false, Some(since)) => format!("lost {}", ago(since, now)),
        (false, None) => "not in use".to_owned(),
    };
    let certificates = lab
        .devices
        .iter()
        .filter_map(|device| Some((device.certificate_until.as_ref()?, &device.name)));
    let tokens: Vec<String> = lab
        .tokens
        .iter()
        .map(|token| format!("{} until {}", escape(&token.name), wording::time(&token.expires)))
        .collect();
    let mut lines = vec![
        ("workspace", lab.coordinator.workspace.clone()),
        ("coordinator", running),
        (
            "live page",
            lab.coordinator.page.clone().unwrap_or_else(|| "off".to_owned()),
        ),
        ("broker", format!("{} ({kind}), {connected}", lab.broker.address)),
        (
            "disk",
            format!(
                "{} of {} free, {} in runs",
                wording::bytes(lab.disk.free_bytes),
                wording::bytes(lab.disk.total_bytes),
                wording::bytes(lab.disk.run_bytes)
            ),
        ),
        (
            "runs",
            format!("{} in progress, {} queued", lab.in_progress, lab.queued),
        ),
    ];
    if let Some(end) = &lab.authority_until {
        let mut text = format!("lab until {}", wording::day(end));
        if let Some((end, name)) = certificates.min() {
            text.push_str(&format!(
                "; next to expire: {} on {}",
                escape(name),
                wording::day(end)
            ));
        }
        lines.push(("certificates", text));
    }
    lines.push((
        "tokens",
        if tokens.is_empty() {
            "none pending".to_owned()
        } else {
            tokens.join(", ")
        },
    ));
    let mut text: String = lines
        .iter()
        .map(|(label, value)| format!("{label:<13}{value}\n"))
        .collect();
    if !lab.devices.is_empty() {
        // Writing to a `String` cannot fail, here and below.
        let _ = write!(text, "\n{}\n", devices(&lab.devices, now));
    }
    if !lab.attention.is_empty() {
        text.push_str("\nneeds attention:");
        for found in &lab.attention {
            let _ = write!(text, "\n  {}", escape(found));
        }
    }
    text.trim_end().to_owned()
}

fn devices(devices: &[DeviceStatus], now: Timestamp) -> String {
    let mut table = table(["device", "state", "run", "queued", "last seen"]);
    for device in devices {
        table.add_row([
            cell(&device.name),
            // The phase of its run says more than that it is busy.
            cell(format!(
                "{}, {}",
                match device.phase {
                    Some(phase) if device.state == DeviceActivity::Busy => phase,
                    _ => device.state.as_str(),
                },
                device.health.as_str()
            )),
            cell(device.subject.as_deref().unwrap_or("-")),
            right(device.queued),
            cell(ago(&device.last_seen, now)),
        ]);
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, run: bool, last_seen: &str) -> DeviceStatus {
        DeviceStatus {
            device: "ff43306e6aa65ec6a97127b41beb2599".to_owned(),
            name: name.to_owned(),
            state: if run {
                DeviceActivity::Busy
            } else {
                DeviceActivity::Offline
            },
            health: DeviceHealth::Good,
            run: None,
            subject: run.then(|| "SingleStream PerformanceOnly".to_owned()),
            phase: run.then_some("preparing"),
            queued: 3,
            last_seen: last_seen.to_owned(),
            certificate_until: Some("2027-11-23T00:00:00Z".to_owned()),
        }
    }

    #[test]
    fn a_status_fits_into_80_columns() {
        let lab = LabStatus {
            coordinator: CoordinatorStatus {
                running: true,
                since: Some("2026-11-22T07:02:42.5Z".to_owned()),
                workspace: "lab".to_owned(),
                page: Some("http://127.0.0.1:8886".to_owned()),
            },
            broker: BrokerStatus {
                embedded: false,
                address: "mqtts://broker:8883".to_owned(),
                connected: false,
                lost_since: Some("2026-11-22T07:00:00Z".to_owned()),
            },
            disk: DiskStatus {
                free_bytes: 39_804_858_368,
                total_bytes: 270_553_174_016,
                kept_free_bytes: 1 << 30,
                run_bytes: 963_896,
            },
            tokens: vec![TokenStatus {
                name: "boat-9".to_owned(),
                expires: "2026-11-23T07:00:00Z".to_owned(),
            }],
            authority_until: Some("2056-01-01T00:00:00Z".to_owned()),
            queued: 6,
            in_progress: 1,
            devices: vec![
                device("boat-1", true, "2026-11-22T07:03:18Z"),
                device("boat-2", false, "2026-11-20T07:03:18Z"),
            ],
            attention: vec!["the coordinator lost the broker".to_owned()],
        };
        let text = status_at(&lab, "2026-11-22T07:03:20Z".parse().unwrap());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }
}
