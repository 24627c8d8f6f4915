//! Members of the fleet: the admitted devices and their certificates. `devices` contains their descriptions from hellos.

use regatta_types::{DeviceId, documents::end_reason};

use super::{Result, Store, now, values};
use crate::database::{Row, params};

/// An enrolled device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRow {
    /// The device's id.
    pub device: DeviceId,
    /// The name from its token.
    pub name: String,
    /// Its Ed25519 public key.
    pub public_key: [u8; 32],
    /// The time when it enrolled.
    pub enrolled: String,
    /// The time when its newest certificate expires.
    pub not_after: String,
    /// The time when it was removed, if it was.
    pub removed: Option<String>,
}

/// The result of a device's enrollment request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// The device is enrolled under this name.
    Granted(String),
    /// The token does not exist.
    UnknownToken,
    /// The token has expired.
    Expired,
    /// Another device has used the token.
    Used,
    /// The device was removed earlier. Its key cannot enroll again.
    Removed { name: String },
    /// The device is enrolled under another name, and must not be renamed.
    OtherName {
        /// The name under which it is enrolled.
        enrolled: String,
        /// The token's name.
        token: String,
    },
    /// Another device is enrolled under the token's name.
    NameTaken(String),
}

/// Whether a token may change the name of an enrolled device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renaming {
    /// It may not: a second token on one device is usually a mistake.
    Refused,
    /// It may, because the user of the device requests it.
    Allowed,
}

/// An issued certificate.
#[derive(Debug, Clone, Copy)]
pub struct NewCertificate<'a> {
    pub serial: &'a [u8],
    /// The time when it expires.
    pub not_after: &'a str,
}

fn member(row: &Row<'_>) -> Result<MemberRow> {
    Ok(MemberRow {
        device: values::parsed(row, "device")?,
        name: row.get("name")?,
        public_key: row.get("public_key")?,
        enrolled: row.get("enrolled")?,
        not_after: row.get("not_after")?,
        removed: row.get("removed")?,
    })
}

/// The numbers of members. They change when a device is enrolled or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MembersVersion {
    all: u64,
    removed: u64,
}

/// The admitted devices and their certificates.
#[derive(Debug)]
pub struct Members<'a> {
    pub(super) store: &'a Store,
}

impl Members<'_> {
    /// Returns whether a name is taken, by a member other than `except` or by a valid unused token.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn is_name_taken(&self, name: &str, except: Option<&DeviceId>) -> Result<bool> {
        self.store.row(
            "SELECT EXISTS (SELECT 1 FROM members WHERE name = ?1 AND removed IS NULL AND device <> ?3)
             OR EXISTS (SELECT 1 FROM tokens WHERE name = ?1 AND device IS NULL AND expires > ?2)",
            params![name, now(), except.map_or("", DeviceId::as_str)],
            |row| row.get(0),
        )
    }

    /// Enrolls a device with a token. The same device may use the token again until it expires, because an answer can get lost.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn enroll(
        &self,
        secret_sha256: &str,
        device: &DeviceId,
        public_key: &[u8; 32],
        certificate: NewCertificate<'_>,
        renaming: Renaming,
    ) -> Result<Entry> {
        self.store.all_or_nothing(|store| {
            let entry = store
                .enrollment_tokens()
                .look_up(secret_sha256, device, renaming)?;
            let Entry::Granted(name) = &entry else {
                return Ok(entry);
            };
            store.execute(
                "UPDATE tokens SET device = ?2 WHERE secret_sha256 = ?1",
                params![secret_sha256, device.as_str()],
            )?;
            store.execute(
                "INSERT INTO members (device, name, public_key, enrolled, not_after) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (device) DO UPDATE SET name = ?2",
                params![device.as_str(), name, public_key, now(), certificate.not_after],
            )?;
            store.members().add_certificate(device, certificate)?;
            Ok(entry)
        })
    }

    /// Stores a member's new certificate.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn add_certificate(&self, device: &DeviceId, certificate: NewCertificate<'_>) -> Result<()> {
        self.store.execute(
            "INSERT INTO certificates (serial, device) VALUES (?1, ?2)",
            params![certificate.serial, device.as_str()],
        )?;
        self.store.execute(
            "UPDATE members SET not_after = ?2 WHERE device = ?1",
            params![device.as_str(), certificate.not_after],
        )?;
        Ok(())
    }

    /// Returns one member, removed or not.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn get(&self, device: &DeviceId) -> Result<Option<MemberRow>> {
        self.store.optional(
            "SELECT * FROM members WHERE device = ?1",
            params![device.as_str()],
            member,
        )
    }

    /// Returns every member, removed or not, by name.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn all(&self) -> Result<Vec<MemberRow>> {
        self.store
            .rows("SELECT * FROM members ORDER BY name, device", params![], member)
    }

    /// Returns a value that changes when a device is enrolled or removed. Rows of members are never deleted, and a removal is final.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn version(&self) -> Result<MembersVersion> {
        let version = |row: &Row<'_>| {
            Ok(MembersVersion {
                all: values::unsigned(row, "all_members")?,
                removed: values::unsigned(row, "removed")?,
            })
        };
        self.store.row(
            "SELECT count(*) AS all_members, count(removed) AS removed FROM members",
            params![],
            version,
        )
    }

    /// Removes a device permanently: its key, its certificates, and its runs without a record. It gets no command any more, so no abort of it
    /// is pending.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn remove(&self, device: &DeviceId, name: &str, public_key: &[u8; 32]) -> Result<()> {
        self.store.all_or_nothing(|store| {
            store.execute(
                "INSERT INTO members (device, name, public_key, enrolled, not_after, removed)
                     VALUES (?1, ?2, ?3, ?4, ?4, ?4) ON CONFLICT (device) DO UPDATE
                     SET removed = ?4 WHERE members.removed IS NULL",
                params![device.as_str(), name, public_key, now()],
            )?;
            store.devices().mark_offline(device)?;
            store.unknown_runs().forget(device)?;
            for run in store.runs().open()?.iter().filter(|run| run.device == *device) {
                store.runs().request_abort(run.id, end_reason::DEVICE_REMOVED)?;
                store.runs().mark_lost(run.id, "the device was removed")?;
            }
            for (run, _) in store.runs().pending_aborts(device)? {
                store.runs().confirm_abort(run)?;
            }
            Ok(())
        })
    }

    /// Returns the serial numbers of removed devices' certificates.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn revoked_serials(&self) -> Result<Vec<Vec<u8>>> {
        self.store.rows(
            "SELECT serial FROM certificates JOIN members USING (device)
                 WHERE removed IS NOT NULL ORDER BY serial",
            params![],
            |row| row.get(0),
        )
    }
}
