//! `regatta device upgrade`: brings the newest agent onto deployed boards by their stored logins. The first board goes alone, and failures
//! stop the rollout, so that a bad package costs few boards. The work on a board is that of [`super::deploy`].

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{BoardResult, DeployFlags, Host, all, deploy, tasks};
use crate::{
    cli::{Context, target_devices::TargetDevices},
    exit::{CommandResult, Failure},
    store::{DeviceActivity, DeviceRow, Store},
};

/// Flags of `device upgrade`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct UpgradeArgs {
    #[command(flatten)]
    devices: TargetDevices,
    /// Begin no further board after this many failures
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    stop_after: u16,
    /// Upgrade devices that have a run, too, which ends it
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    flags: DeployFlags,
}

/// Upgrades the devices.
pub(in crate::cli) fn upgrade(args: &UpgradeArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    // Drained and quarantined devices are upgraded as well.
    let devices = args.devices.find_or_only(true, &store)?;
    if !args.force && !args.flags.dry_run {
        refuse_busy(&devices)?;
    }
    let tasks = tasks(hosts(&devices, &store)?, None, false, &args.flags)?;
    let failures = AtomicUsize::new(0);
    let most = usize::from(args.stop_after);
    deploy(
        &tasks,
        &args.flags,
        &workspace,
        context,
        |tasks, at_once, work| {
            let continues =
                |result: &Result<_, _>| result.is_ok() || failures.fetch_add(1, Ordering::Relaxed) + 1 < most;
            let (first, others) = tasks.split_at(tasks.len().min(1));
            let mut results: Vec<BoardResult> = all(first, 1, continues, work);
            if failures.load(Ordering::Relaxed) < most {
                results.extend(all(others, at_once, continues, work));
            } else {
                results.extend(others.iter().map(|_| None));
            }
            results
        },
    )
}

/// Refuses to upgrade devices with a run, because the restart of the agent ends it.
fn refuse_busy(devices: &[DeviceRow]) -> Result<(), Failure> {
    let busy: Vec<&str> = devices
        .iter()
        .filter(|device| device.activity() == DeviceActivity::Busy)
        .map(|device| device.name.as_str())
        .collect();
    match busy.first() {
        None => Ok(()),
        Some(first) => Err(
            Failure::misuse(format!("an upgrade would end the runs of {}", busy.join(", "))).hint(format!(
                "let them finish: `regatta device drain {first}`; or use --force"
            )),
        ),
    }
}

/// Returns the boards with the logins of their newest deployments.
fn hosts(devices: &[DeviceRow], store: &Store) -> Result<Vec<Host>, Failure> {
    devices
        .iter()
        .map(|device| {
            let login = store.login(&device.id)?.ok_or_else(|| {
                Failure::misuse(format!("{} was not deployed over SSH from here", device.name)).hint(format!(
                    "`regatta device deploy {} USER@HOST` does both",
                    device.name
                ))
            })?;
            Ok(Host::new(
                device.name.clone(),
                login.parse().map_err(Failure::usage)?,
            ))
        })
        .collect()
}
