//! Predicts the space that a preparation needs on this machine and on devices. Refuses a preparation that does not fit before anything is done.

use std::{
    collections::BTreeMap,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use regatta_fsutil::free_space::free_bytes;
use regatta_types::{assets::DEFAULT_MAX_MIB, samples::Form};

use super::{
    inventory::Subject,
    plan::{Action, Facts, Step},
};
use crate::{cli::asset::places, exit::Failure};
use regatta_lab_store::{DeviceRow, workspace::Workspace};
use regatta_lab_views::wording;

/// The space that steps need on one disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DiskNeed {
    /// A directory on the disk.
    pub(super) directory: PathBuf,
    /// The sum of the known sizes.
    pub(super) bytes: u64,
    /// The bytes that may be used.
    pub(super) available: u64,
}

/// Adds up the space that the steps need on each disk.
///
/// # Errors
/// Returns an error when a disk cannot be read.
pub(super) fn needs<'a>(
    steps: impl Iterator<Item = &'a Step>,
    scratch: &Path,
    workspace: &Workspace,
) -> Result<Vec<DiskNeed>, Failure> {
    let mut disks: BTreeMap<u64, DiskNeed> = BTreeMap::new();
    for step in steps {
        let directory = match step.action {
            Action::AddAssets { .. } => workspace.root(),
            _ => scratch,
        };
        let directory = existing(directory);
        let disk = directory
            .metadata()
            .map_err(|error| unreadable(directory, &error.to_string()))?
            .dev();
        let need = match disks.entry(disk) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => new.insert(DiskNeed {
                directory: directory.to_owned(),
                bytes: 0,
                available: available(directory, workspace)?,
            }),
        };
        need.bytes = need.bytes.saturating_add(step.bytes.unwrap_or(0));
    }
    Ok(disks.into_values().collect())
}

/// Returns the nearest existing parent directory.
fn existing(directory: &Path) -> &Path {
    let mut ancestors = directory.ancestors();
    let found = ancestors.find(|path| path.is_dir());
    found.unwrap_or(Path::new("."))
}

/// Returns the free space in bytes, minus the space that the workspace reserves for logs.
fn available(directory: &Path, workspace: &Workspace) -> Result<u64, Failure> {
    let free = free_bytes(directory).map_err(|error| unreadable(directory, &error.to_string()))?;
    Ok(free.saturating_sub(workspace.min_free_bytes()))
}

fn unreadable(directory: &Path, error: &str) -> Failure {
    Failure::could_not(format!(
        "cannot read the disk of {}: {error}",
        directory.display()
    ))
}

/// Checks that the steps fit on their disks.
///
/// # Errors
/// Returns an error with the disk, and the required and the free space.
pub(super) fn expect_fits(needs: &[DiskNeed]) -> Result<(), Failure> {
    match needs.iter().find(|need| need.bytes > need.available) {
        None => Ok(()),
        Some(need) => Err(Failure::could_not(format!(
            "the disk of {} is too small: the steps add {}, and {} may be used",
            need.directory.display(),
            wording::bytes(need.bytes),
            wording::bytes(need.available)
        ))
        .hint(
            "make room, or put the scratch directory on a larger disk (`scratch` in regatta.toml); --dry-run shows each step",
        )),
    }
}

/// Checks that no device's samples are larger than its limit on assets.
///
/// # Errors
/// Returns an error with the device and the samples.
pub(super) fn expect_fits_on<'a>(
    devices: &[DeviceRow],
    subjects: impl Iterator<Item = (&'a Subject<'a>, &'a Facts)>,
) -> Result<(), Failure> {
    for (subject, facts) in subjects {
        for &form in &subject.needs.forms {
            let assets = RunAssets::of(subject, facts, form)?;
            let too_small = devices.iter().find_map(|device| {
                let most = assets_max(device);
                (assets.bytes > most).then_some((device, most))
            });
            if let Some((device, most)) = too_small {
                return Err(too_large(subject, &assets, device, most));
            }
        }
    }
    Ok(())
}

fn assets_max(device: &DeviceRow) -> u64 {
    let reported = device
        .reported_facts()
        .ok()
        .and_then(|facts| facts.assets_max_bytes);
    reported.unwrap_or(DEFAULT_MAX_MIB << 20)
}

/// The assets of one run.
struct RunAssets {
    form: Form,
    /// Their total size, as far as it is known.
    bytes: u64,
    /// Whether calibration samples are among them.
    has_calibration: bool,
}

impl RunAssets {
    fn of(subject: &Subject<'_>, facts: &Facts, form: Form) -> Result<Self, Failure> {
        let formed = subject.benchmark.in_form(form).map_err(Failure::usage)?;
        let mut places = places(&formed);
        // Each run of int8 engines has them, because it builds a missing engine.
        places.extend(facts.calibration.iter().map(|set| set.directory.clone()));
        let of_run = facts.assets.iter().filter(|asset| places.contains(&asset.path));
        Ok(Self {
            form,
            bytes: of_run.filter_map(|asset| asset.bytes).sum(),
            has_calibration: facts.calibration.is_some(),
        })
    }
}

fn too_large(subject: &Subject<'_>, assets: &RunAssets, device: &DeviceRow, most: u64) -> Failure {
    let &RunAssets { form, bytes, .. } = assets;
    let parts = match assets.has_calibration {
        true => "they, the calibration samples and the model",
        false => "they and the model",
    };
    let reported = device
        .reported_facts()
        .ok()
        .and_then(|facts| facts.assets_max_bytes);
    let by_default = match reported {
        Some(_) => "",
        None => ", the default: its agent does not report it",
    };
    Failure::could_not(format!(
        "{} is too small for a run of {} with samples as {form}: {parts} have {}, and it keeps {} of assets \
         at most (`assets_max_mib` in its agent.toml{by_default})",
        device.name,
        subject.benchmark.name,
        wording::bytes(bytes),
        wording::bytes(most)
    ))
    .hint(format!(
        "set assets_max_mib = {} there and restart the agent, or use a system whose settings need smaller samples",
        bytes.div_ceil(1 << 20)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_both_sizes() {
        let need = |bytes| DiskNeed {
            directory: "/data".into(),
            bytes,
            available: 10 << 30,
        };
        expect_fits(&[need(10 << 30)]).unwrap();
        let refused = expect_fits(&[need(1), need(60 << 30)]).unwrap_err().to_string();
        assert!(
            refused
                .contains("the disk of /data is too small: the steps add 64.4 GB, and 10.7 GB may be used"),
            "{refused}"
        );
    }
}
