//! Flags that select the devices of a command: by name, by label, or all.

use super::device_availability::only_available;
use crate::exit::Failure;
use regatta_lab_store::{DeviceRow, Store};
use regatta_lab_views::lookup::{ALL, add, device, devices, labelled_devices};

/// Flags that select the devices of a command.
#[derive(Debug, clap::Args)]
pub(super) struct TargetDevices {
    /// Devices by name or id, comma separated, or `all` [default: the only device]
    #[arg(long, value_name = "DEVICE", value_delimiter = ',')]
    device: Vec<String>,
    /// Devices with one of these labels, comma separated (see `device label`)
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    device_label: Vec<String>,
}

impl TargetDevices {
    /// Returns the selected devices, each once. None when no flag is used.
    ///
    /// Devices that take no runs are left out of `all` and of labels, unless the user forces runs.
    pub(super) fn find(&self, is_forced: bool, store: &Store) -> Result<Vec<DeviceRow>, Failure> {
        let (all, named): (Vec<_>, Vec<_>) = self.device.iter().cloned().partition(|name| name == ALL);
        let mut found = devices(store, &named)?;
        let mut group = devices(store, &all)?;
        for row in labelled_devices(store, &self.device_label)? {
            add(&mut group, row);
        }
        if !is_forced {
            group = only_available(group, store)?;
        }
        group.into_iter().for_each(|row| add(&mut found, row));
        Ok(found)
    }

    /// Returns the selected devices, or the only one when no flag is used.
    pub(super) fn find_or_only(&self, is_forced: bool, store: &Store) -> Result<Vec<DeviceRow>, Failure> {
        Ok(match self.find(is_forced, store)? {
            none if none.is_empty() => vec![device(store, None)?],
            found => found,
        })
    }
}
