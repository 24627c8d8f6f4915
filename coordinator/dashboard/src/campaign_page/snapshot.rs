//! A campaign at one moment, read from the store: its progress, combinations, and cells with their newest attempt. It does not render.

use std::collections::BTreeMap;

use regatta_types::{DeviceId, RunId};

use regatta_lab_store::{
    AttemptRow, CampaignLogEntry, CampaignRow, CampaignState, CellRow, CellState, Store,
};
use regatta_lab_views::documents::{CampaignStatus, CellSubject, campaign_status, cell_subject, device_name};

/// The state of a cell for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShownState {
    Good,
    Running,
    Failed,
    Waiting,
    Skipped,
}

/// A campaign at one moment.
pub(crate) struct CampaignSnapshot {
    /// Its progress.
    pub(super) status: CampaignStatus,
    /// The subjects of its combinations, by number.
    pub(super) subjects: Vec<CellSubject>,
    /// The requests of users to it, oldest first.
    pub(super) log: Vec<CampaignLogEntry>,
    /// Whether a user aborted it.
    pub(super) is_aborted: bool,
    cells: Vec<CellRow>,
    /// The newest attempt of each cell that has one.
    newest: BTreeMap<u64, AttemptRow>,
    names: BTreeMap<DeviceId, String>,
    /// The devices that may take a cell.
    devices: Vec<DeviceId>,
}

impl CampaignSnapshot {
    /// Reads a campaign. A coordinator serves its workspace, because this page is a part of it.
    pub(crate) fn read(row: &CampaignRow, store: &Store) -> anyhow::Result<Self> {
        let combinations = store.cells().combinations(&row.name)?;
        let mut cells = store.cells().of_campaign(&row.name)?;
        cells.sort_by_key(|cell| cell.number);
        let attempts = store.attempts().of_campaign(&row.name)?.into_iter();
        let mut devices: Vec<DeviceId> = Vec::new();
        for device in combinations.iter().flat_map(|combination| &combination.devices) {
            if !devices.contains(device) {
                devices.push(device.clone());
            }
        }
        let names = store.devices().names()?;
        devices.sort_by_key(|device| device_name(device, &names));
        Ok(Self {
            status: campaign_status(row, None, store)?,
            subjects: combinations.iter().map(cell_subject).collect(),
            log: store.campaign_log().of_campaign(&row.name)?,
            is_aborted: row.state == CampaignState::Aborted,
            cells,
            // They come by cell and number, so the newest of a cell stays.
            newest: attempts.map(|attempt| (attempt.cell, attempt)).collect(),
            names,
            devices,
        })
    }

    /// Returns the run of a cell's newest attempt.
    pub(super) fn run_of(&self, cell: u64) -> Option<RunId> {
        self.newest.get(&cell)?.run
    }

    /// Returns the devices that may take a cell, with their names, by name.
    pub(super) fn devices(&self) -> impl Iterator<Item = (&DeviceId, String)> {
        self.devices
            .iter()
            .map(|device| (device, device_name(device, &self.names)))
    }

    /// Returns the cells of a combination that are on a device, or on none yet.
    pub(super) fn cells_on(&self, combination: u64, device: Option<&DeviceId>) -> Vec<&CellRow> {
        let cells = self.cells.iter().filter(|cell| cell.combination == combination);
        cells.filter(|cell| self.device_of(cell) == device).collect()
    }

    /// Returns the device of a cell: the one that it is for, or the one of its newest attempt, unless another one may take it.
    fn device_of<'a>(&'a self, cell: &'a CellRow) -> Option<&'a DeviceId> {
        let attempt = self.newest.get(&cell.number);
        let attempt = attempt.filter(|attempt| cell.state != CellState::Waiting || attempt.ended.is_none());
        cell.device
            .as_ref()
            .or_else(|| attempt.map(|attempt| &attempt.device))
    }

    /// Returns the name of the device that failed a cell, or of the one that it is for. `None` for a cell that no device tried.
    pub(super) fn device_name_of(&self, cell: u64) -> Option<String> {
        let cell = self.cells.iter().find(|row| row.number == cell)?;
        let attempt = self.newest.get(&cell.number).map(|attempt| &attempt.device);
        let device = attempt.or(cell.device.as_ref())?;
        Some(device_name(device, &self.names))
    }

    pub(super) fn state(&self, cell: &CellRow) -> ShownState {
        let is_open = self
            .newest
            .get(&cell.number)
            .is_some_and(|attempt| attempt.ended.is_none());
        match cell.state {
            CellState::Good => ShownState::Good,
            CellState::Failed => ShownState::Failed,
            CellState::Skipped => ShownState::Skipped,
            CellState::Waiting if is_open => ShownState::Running,
            CellState::Waiting => ShownState::Waiting,
        }
    }
}
