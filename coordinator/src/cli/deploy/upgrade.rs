//! `regatta device upgrade`: brings the newest agent onto deployed boards by their stored logins, wave by wave. This module has the command
//! line and selects the devices; [`super::rollout`] works through the waves, and the work on a board is that of [`super::deploy`].

use std::sync::Mutex;

use regatta_text::HumanDuration;

use super::{
    DeployFlags, Host, PackagePlaces, deploy,
    rollout::{Job, Rollout, RolloutOptions, outcome},
    rollout_document, tasks,
    waves::{Portion, sizes},
};
use crate::{
    cli::{Context, target_devices::TargetDevices},
    exit::{CommandResult, Failure},
};
use regatta_deploy::{Package, PackageSource as _};
use regatta_lab_store::{DeviceActivity, DeviceRow, RolloutRow, Store, workspace::LockError};

/// The flags of a new upgrade, which one that is continued has already.
const NEW: [&str; 7] = [
    "device",
    "device_label",
    "waves",
    "stop_after",
    "pause",
    "check",
    "force",
];

/// Flags of `device upgrade`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta device upgrade --device all --waves 1,10%,100% --stop-after 5% --check --package dist-out
      one device, then a tenth, then all; stop when a twentieth of a wave fails; check each device with two known runs
  regatta device upgrade --continue --package dist-out
      continue with the devices that remain")]
pub(in crate::cli) struct UpgradeArgs {
    #[command(flatten)]
    devices: TargetDevices,
    /// How many devices are upgraded after each wave, as numbers or percentages of all
    #[arg(
        long,
        value_name = "N,P%,...",
        value_delimiter = ',',
        default_value = "1,100%"
    )]
    waves: Vec<Portion>,
    /// Stop after this many failures, or when this percentage of a wave has failed
    #[arg(long, value_name = "N|P%", default_value = "1")]
    stop_after: Portion,
    /// How long the devices of a wave must stay connected before the next wave begins
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pause: HumanDuration,
    /// Check each upgraded device with two short known runs (see `device check`)
    #[arg(long)]
    check: bool,
    /// Include devices that have a run; the run is ended
    #[arg(long)]
    force: bool,
    /// Continue the newest upgrade with the devices that remain
    #[arg(long = "continue", conflicts_with_all = NEW)]
    continued: bool,
    /// Show the newest upgrade: its waves, attempts and causes of failures
    #[arg(long, conflicts_with_all = NEW, conflicts_with = "continued")]
    show: bool,
    #[command(flatten)]
    flags: DeployFlags,
}

struct Upgrade {
    options: RolloutOptions,
    /// The devices with their waves.
    devices: Vec<(DeviceRow, u64)>,
    /// The upgrade that is continued.
    continued: Option<RolloutRow>,
}

/// Upgrades the devices.
pub(in crate::cli) fn upgrade(args: &UpgradeArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    if args.show {
        return rollout_document::show(context, &workspace, &store);
    }
    // An upgrade records its packages when it begins, so none are built later.
    let places = PackagePlaces::find(&args.flags.package, workspace.root())?.without_building();
    let packages = places.at_hand();
    if packages.is_empty() {
        let missing = places.missing("arm64");
        return Err(Failure::misuse("there is no package of the agent to upgrade to").hint(missing.hint));
    }
    let is_recorded = !args.flags.dry_run;
    let lock = is_recorded.then(|| workspace.lock_upgrades()).transpose();
    let _lock = lock.map_err(|error| locked(&error))?;
    let upgrade = match args.continued {
        true => left_over(&packages, &store)?,
        false => requested(args, &store)?,
    };
    let hosts = upgrade
        .devices
        .iter()
        .map(|(device, _)| host(device, &store))
        .collect::<Result<_, _>>()?;
    let tasks = tasks(hosts, None, false, &args.flags)?;
    deploy(
        &tasks,
        &args.flags,
        &workspace,
        context,
        &places,
        |tasks, at_once, work| {
            let jobs: Vec<Job<'_>> = tasks
                .iter()
                .zip(&upgrade.devices)
                .map(|(task, (device, wave))| Job {
                    task,
                    device: &device.id,
                    wave: *wave,
                })
                .collect();
            let number = match is_recorded {
                true => Some(record(&upgrade, &packages, &store)?),
                false => None,
            };
            let rollout = Rollout {
                number,
                options: upgrade.options.clone(),
                store: Mutex::new(workspace.store()?),
                workspace: &workspace,
                context,
            };
            rollout.run(&jobs, at_once, work)
        },
    )
}

/// Returns the upgrade that the flags request.
fn requested(args: &UpgradeArgs, store: &Store) -> Result<Upgrade, Failure> {
    // Drained and quarantined devices are upgraded as well.
    let devices = args.devices.find_or_only(true, store)?;
    if !args.force && !args.flags.dry_run {
        refuse_busy(&devices, store)?;
    }
    let sizes = sizes(&args.waves, devices.len());
    let waves = sizes
        .iter()
        .zip(1..)
        .flat_map(|(size, wave)| std::iter::repeat_n(wave, *size));
    Ok(Upgrade {
        options: RolloutOptions {
            waves: args.waves.clone(),
            stop_after: args.stop_after,
            pause_ms: args.pause.millis(),
            check: args.check,
            force: args.force,
        },
        devices: devices.into_iter().zip(waves).collect(),
        continued: None,
    })
}

/// Returns the remainder of the newest upgrade.
fn left_over(packages: &[Package], store: &Store) -> Result<Upgrade, Failure> {
    let nothing = || Failure::misuse("no upgrade has devices that are left");
    let newest = store.rollouts().newest()?.ok_or_else(nothing)?;
    if newest.outcome.as_deref() == Some(outcome::COMPLETE) {
        return Err(nothing());
    }
    if newest.packages != hashes(packages) {
        return Err(
            Failure::misuse("these packages are not those of the upgrade to continue")
                .hint("name those with --package, or begin another upgrade without --continue"),
        );
    }
    let options = serde_json::from_str(&newest.options)?;
    let mut devices = Vec::new();
    for device in store.rollouts().devices(newest.number)? {
        if device.attempts.last().is_some_and(|attempt| attempt.is_good()) {
            continue;
        }
        // Removed devices are left out.
        if let Some(row) = store.devices().get(&device.device)? {
            devices.push((row, device.wave));
        }
    }
    if devices.is_empty() {
        return Err(nothing());
    }
    Ok(Upgrade {
        options,
        devices,
        continued: Some(newest),
    })
}

/// Stores a new upgrade, or the continuation of an earlier one. Returns its number.
fn record(upgrade: &Upgrade, packages: &[Package], store: &Store) -> Result<u64, Failure> {
    if let Some(continued) = &upgrade.continued {
        store.rollouts().set_outcome(continued.number, None)?;
        return Ok(continued.number);
    }
    let devices: Vec<_> = upgrade
        .devices
        .iter()
        .map(|(device, wave)| (device.id.clone(), *wave))
        .collect();
    let options = serde_json::to_string(&upgrade.options)?;
    Ok(store.rollouts().add(&hashes(packages), &options, &devices)?)
}

fn hashes(packages: &[Package]) -> Vec<String> {
    let mut hashes: Vec<String> = packages.iter().map(|package| package.sha256.clone()).collect();
    hashes.sort();
    hashes
}

fn locked(error: &LockError) -> Failure {
    match error {
        LockError::HeldSlot { holder } => Failure::could_not(format!(
            "another command{holder} upgrades devices of this workspace"
        ))
        .hint("`regatta device upgrade --show` shows how far it is"),
        LockError::Io { .. } => Failure::could_not(regatta_text::ErrorChain(error)),
    }
}

/// Refuses to upgrade devices with a run or a power session, because the restart of the agent ends it.
fn refuse_busy(devices: &[DeviceRow], store: &Store) -> Result<(), Failure> {
    let mut busy = Vec::new();
    for device in devices {
        if device.activity() == DeviceActivity::Busy || store.meters().leased_device(&device.id)?.is_some() {
            busy.push(device.name.as_str());
        }
    }
    match busy.first() {
        None => Ok(()),
        Some(first) => Err(Failure::misuse(format!(
            "an upgrade would end the runs or power sessions of {}",
            busy.join(", ")
        ))
        .hint(format!(
            "let them finish: `regatta device drain {first} --wait`; or use --force"
        ))),
    }
}

/// Returns the board with the login of its newest deployment.
fn host(device: &DeviceRow, store: &Store) -> Result<Host, Failure> {
    let login = store.devices().login(&device.id)?.ok_or_else(|| {
        Failure::misuse(format!("{} was not deployed over SSH from here", device.name)).hint(format!(
            "deploy it once: `regatta device deploy {} USER@HOST`",
            device.name
        ))
    })?;
    Ok(Host::new(
        device.name.clone(),
        login.parse().map_err(Failure::usage)?,
    ))
}
