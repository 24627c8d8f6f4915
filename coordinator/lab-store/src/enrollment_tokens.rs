//! The tokens with which devices enroll. A token is valid for one device, which becomes a member when it uses the token.

use regatta_types::DeviceId;
use rusqlite::{OptionalExtension as _, params};

use super::{Entry, Renaming, Result, Store, members::MemberRow, now};

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
        self.store.connection.execute(
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
        Ok(self
            .store
            .connection
            .execute("DELETE FROM tokens WHERE name = ?1 AND device IS NULL", [name])?)
    }

    /// Returns the names and expiry times of the valid tokens that no device has used, ordered by name.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn pending(&self) -> Result<Vec<(String, String)>> {
        let mut statement = self.store.connection.prepare_cached(
            "SELECT name, expires FROM tokens WHERE device IS NULL AND expires > ?1 ORDER BY name",
        )?;
        let rows = statement.query_map([now()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the rights that a token would grant to a device now. The call is read-only, because anyone can make it.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn look_up(&self, secret_sha256: &str, device: &DeviceId, renaming: Renaming) -> Result<Entry> {
        let mut statement = self
            .store
            .connection
            .prepare_cached("SELECT name, expires, device FROM tokens WHERE secret_sha256 = ?1")?;
        let token: Option<(String, String, Option<String>)> = statement
            .query_row([secret_sha256], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((name, expires, used_by)) = token else {
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
        let is_taken = self.store.connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM members WHERE name = ?1 AND removed IS NULL AND device <> ?2)",
            [name.as_str(), device.as_str()],
            |row| row.get(0),
        )?;
        Ok(if is_taken {
            Entry::NameTaken(name)
        } else {
            Entry::Granted(name)
        })
    }
}
