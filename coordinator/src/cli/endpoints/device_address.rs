//! The address at which this machine reaches the model server of a device.

use std::net::ToSocketAddrs as _;

use regatta_lab_store::{DeviceRow, Store};
use regatta_ssh::{AccessOptions, Destination, SshConfig};

use crate::exit::Failure;

/// What to do when the address is not known.
const HINT: &str = "name the device's address in the network with --host";

/// Returns the URL of a port of the device. Without a name it is the host of the device's newest deployment over SSH.
pub(super) fn url(
    named: Option<&str>,
    device: &DeviceRow,
    port: u16,
    store: &Store,
) -> Result<String, Failure> {
    let host = match named {
        Some(host) => host.to_owned(),
        None => deployment_host(device, store)?,
    };
    // Before the server is started: loading a model can take long.
    let resolved = (host.trim_matches(['[', ']']), port).to_socket_addrs();
    if let Err(error) = resolved {
        return Err(Failure::misuse(format!("{host} has no address: {error}")).hint(HINT));
    }
    Ok(match host.contains(':') && !host.starts_with('[') {
        true => format!("http://[{host}]:{port}"),
        false => format!("http://{host}:{port}"),
    })
}

fn deployment_host(device: &DeviceRow, store: &Store) -> Result<String, Failure> {
    let login = store.devices().login(&device.id)?;
    let login = login.ok_or_else(|| {
        Failure::misuse(format!("{} was not deployed over SSH from here", device.name)).hint(HINT)
    })?;
    let destination: Destination = login.parse().map_err(Failure::usage)?;
    let access = SshConfig::of_user()?
        .access(&destination, &AccessOptions::default())
        .map_err(Failure::usage)?;
    match access.jump {
        None => Ok(access.host),
        Some(jump) => {
            Err(Failure::misuse(format!("SSH reaches {} through {}", device.name, jump.host)).hint(HINT))
        }
    }
}
