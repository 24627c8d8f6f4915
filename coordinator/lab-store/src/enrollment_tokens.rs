//! The tokens with which devices enroll. A token is valid for one device, which becomes a member when it uses the token.

use regatta_types::DeviceId;

use super::{Entry, Renaming, Result, Store, members::MemberRow, now};
use crate::database::{Row, params};

/// A valid token that no device has used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingToken {
    /// The name of the device that it is for.
    pub name: String,
    /// The time when it expires, RFC 3339 UTC.
    pub expires: String,
}

/// A token of the store.
struct KnownToken {
    name: String,
    expires: String,
    /// The device that used it.
    device: Option<String>,
}

#[derive(Debug)]
pub struct EnrollmentTokens<'a> {
    pub(super) store: &'a Store,
}

impl EnrollmentTokens<'_> {
    /// Stores a new token.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn add(&self, secret_sha256: &str, name: &str, expires: &str) -> Result<()> {
        self.store.execute(
            "INSERT INTO tokens (secret_sha256, name, created, expires) VALUES (?1, ?2, ?3, ?4)",
            params![secret_sha256, name, now(), expires],
        )?;
        Ok(())
    }

    /// Deletes the unused tokens for a name and returns their number.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn delete_unused(&self, name: &str) -> Result<usize> {
        self.store.execute(
            "DELETE FROM tokens WHERE name = ?1 AND device IS NULL",
            params![name],
        )
    }

    /// Returns the valid tokens that no device has used, ordered by name.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn pending(&self) -> Result<Vec<PendingToken>> {
        self.store.rows(
            "SELECT name, expires FROM tokens WHERE device IS NULL AND expires > ?1 ORDER BY name",
            params![now()],
            |row| {
                Ok(PendingToken {
                    name: row.get("name")?,
                    expires: row.get("expires")?,
                })
            },
        )
    }

    /// Returns the rights that a token would grant to a device now. The call is read-only, because anyone can make it.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn look_up(&self, secret_sha256: &str, device: &DeviceId, renaming: Renaming) -> Result<Entry> {
        let token = |row: &Row<'_>| {
            Ok(KnownToken {
                name: row.get("name")?,
                expires: row.get("expires")?,
                device: row.get("device")?,
            })
        };
        let token = self.store.optional(
            "SELECT name, expires, device FROM tokens WHERE secret_sha256 = ?1",
            params![secret_sha256],
            token,
        )?;
        let Some(KnownToken {
            name,
            expires,
            device: used_by,
        }) = token
        else {
            return Ok(Entry::UnknownToken);
        };
        if expires <= now() {
            return Ok(Entry::Expired);
        }
        if used_by.is_some_and(|other| other != device.as_str()) {
            return Ok(Entry::Used);
        }
        match self.store.members().get(device)? {
            Some(MemberRow {
                removed: Some(_),
                name,
                ..
            }) => return Ok(Entry::Removed { name }),
            Some(member) if member.name != name && renaming == Renaming::Refused => {
                return Ok(Entry::OtherName {
                    enrolled: member.name,
                    token: name,
                });
            }
            _ => {}
        }
        // A token for a returning device has the name of that device.
        let is_taken = self.store.row(
            "SELECT EXISTS (SELECT 1 FROM members WHERE name = ?1 AND removed IS NULL AND device <> ?2)",
            params![name.as_str(), device.as_str()],
            |row| row.get(0),
        )?;
        Ok(if is_taken {
            Entry::NameTaken(name)
        } else {
            Entry::Granted(name)
        })
    }
}
