//! Devices as JSON, alone and as the list of the fleet.

use std::{borrow::Cow, collections::BTreeMap};

use regatta_types::RunId;
use regatta_wire::frame;
use serde::Serialize;

use regatta_lab_net::fleet::{default_engine, unavailable_engines};
use regatta_lab_store::{DeviceActivity, DeviceHealth, DeviceLabel, DeviceRow, OtherVersion, WallRatio};

/// The fleet as a JSON document.
#[derive(Serialize)]
pub struct DeviceList<'a> {
    devices: Vec<DeviceDocument<'a>>,
    /// Devices of another wire version.
    refused: Vec<RefusedDocument<'a>>,
}

impl<'a> DeviceList<'a> {
    /// Returns the list of these devices.
    pub fn of(devices: &'a [DeviceRow], refused: &'a [OtherVersion]) -> Self {
        Self {
            devices: devices.iter().map(Into::into).collect(),
            refused: refused.iter().map(Into::into).collect(),
        }
    }
}

/// A device as a JSON document.
#[derive(Serialize)]
pub struct DeviceDocument<'a> {
    device: &'a str,
    name: &'a str,
    online: bool,
    state: DeviceActivity,
    run: Option<RunId>,
    duplicated: bool,
    health: DeviceHealth,
    takes_runs: bool,
    health_cause: Option<&'a str>,
    health_since: Option<&'a str>,
    labels: &'a [DeviceLabel],
    agent: &'a str,
    engines: Vec<&'static str>,
    /// The engine of runs that do not name one.
    default_engine: Option<&'static str>,
    unavailable_engines: BTreeMap<&'static str, Cow<'static, str>>,
    first_seen: &'a str,
    last_seen: &'a str,
    facts: serde_json::Value,
}

impl<'a> From<&'a DeviceRow> for DeviceDocument<'a> {
    fn from(row: &'a DeviceRow) -> Self {
        let health = row.health.shown();
        Self {
            device: row.id.as_str(),
            name: &row.name,
            online: row.online,
            state: row.activity(),
            run: row.open_run,
            duplicated: row.duplicated,
            health: row.health.health(),
            takes_runs: row.health.can_take_runs(),
            health_cause: health.cause,
            health_since: health.since,
            labels: &row.labels,
            agent: &row.agent,
            engines: row.engines.iter().map(|engine| engine.as_str()).collect(),
            default_engine: default_engine(row).map(regatta_types::EngineKind::as_str),
            unavailable_engines: unavailable_engines(row)
                .into_iter()
                .map(|(engine, reason)| (engine.as_str(), reason))
                .collect(),
            first_seen: &row.first_seen,
            last_seen: &row.last_seen,
            // As the device sent it, even if that is no JSON.
            facts: serde_json::from_str(&row.facts).unwrap_or_else(|_| row.facts.as_str().into()),
        }
    }
}

/// A device, with the facts from its runs.
#[derive(Serialize)]
pub struct ShownDevice<'a> {
    #[serde(flatten)]
    device: DeviceDocument<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_over_rails: Option<&'a WallRatio>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meter_over_rails: Option<&'a WallRatio>,
}

impl<'a> ShownDevice<'a> {
    /// Returns the document of a device, with its ratios to the rails: of a plug or USB meter, and of a listed one.
    pub fn of(row: &'a DeviceRow, [wall_over_rails, meter_over_rails]: [Option<&'a WallRatio>; 2]) -> Self {
        Self {
            device: row.into(),
            wall_over_rails,
            meter_over_rails,
        }
    }
}

/// A device of another wire version as a JSON document.
#[derive(Serialize)]
struct RefusedDocument<'a> {
    device: &'a str,
    wire: u16,
    coordinator_wire: [u16; 2],
    last_seen: &'a str,
}

impl<'a> From<&'a OtherVersion> for RefusedDocument<'a> {
    fn from(row: &'a OtherVersion) -> Self {
        Self {
            device: row.device.as_str(),
            wire: row.wire,
            coordinator_wire: [frame::MIN_VERSION, frame::VERSION],
            last_seen: &row.last_seen,
        }
    }
}
