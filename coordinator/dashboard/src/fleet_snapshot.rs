//! The fleet at one moment, read from the store: devices, their runs, and whether the broker is connected. It does not sort or render.

use std::collections::BTreeMap;

use jiff::Timestamp;
use regatta_types::{DeviceId, documents::DeviceFacts};

use regatta_lab_store::{self as store, CurrentRun, DeviceRow, Store};

/// A device with its run.
#[derive(Debug, Clone)]
pub struct FleetDevice {
    pub row: DeviceRow,
    /// Its description of itself when it last connected, if this version reads it.
    pub facts: Option<DeviceFacts>,
    /// The run that it executes or delivers.
    pub run: Option<CurrentRun>,
    /// The number of runs that wait for it.
    pub queued: u64,
}

/// The fleet at one moment.
#[derive(Debug, Clone)]
pub struct FleetSnapshot {
    /// The time when it was read.
    pub read: Timestamp,
    /// The devices, by name.
    pub devices: Vec<FleetDevice>,
    /// The number of devices whose agent has another wire version.
    pub refused: usize,
    /// The time when the coordinator lost the broker, RFC 3339 UTC.
    pub broker_lost: Option<String>,
}

impl FleetSnapshot {
    /// Reads the fleet.
    pub fn read(store: &Store) -> store::Result<Self> {
        let mut runs = store.runs().current()?;
        let queued: BTreeMap<DeviceId, u64> = store.runs().count_queued()?;
        let devices = store.devices().all()?.into_iter().map(|row| FleetDevice {
            facts: row.reported_facts().ok(),
            run: runs.remove(&row.id),
            queued: queued.get(&row.id).copied().unwrap_or(0),
            row,
        });
        Ok(Self {
            read: Timestamp::now(),
            devices: devices.collect(),
            refused: store.devices().other_versions()?.len(),
            broker_lost: store.service().state()?.broker_lost,
        })
    }
}
