//! The SSH logins by which devices were deployed to. A power session starts the official client there.

use regatta_types::DeviceId;

use super::{Devices, Result};
use crate::database::params;

impl Devices<'_> {
    /// Stores the login `user@host[:port]` of a device's newest deployment.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn set_login(&self, device: &DeviceId, destination: &str) -> Result<()> {
        self.store.execute(
            "INSERT INTO logins (device, destination) VALUES (?1, ?2)
             ON CONFLICT (device) DO UPDATE SET destination = ?2",
            params![device.as_str(), destination],
        )?;
        Ok(())
    }

    /// Returns the login of a device's newest deployment. `None` when it was not deployed over SSH from here.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn login(&self, device: &DeviceId) -> Result<Option<String>> {
        self.store.optional(
            "SELECT destination FROM logins WHERE device = ?1",
            params![device.as_str()],
            |row| row.get(0),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[test]
    fn the_newest_deployment_gives_the_login() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("regatta.db")).unwrap();
        let device: DeviceId = "1c61500a84dec57d86b5e1f3caa2abe2".parse().unwrap();
        assert_eq!(store.devices().login(&device).unwrap(), None);
        for login in ["nvidia@orin", "nvidia@orin:2222"] {
            store.devices().set_login(&device, login).unwrap();
            assert_eq!(store.devices().login(&device).unwrap().as_deref(), Some(login));
        }
    }
}
