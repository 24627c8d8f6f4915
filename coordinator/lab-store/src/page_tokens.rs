//! The tokens of people and programs that use the live page: their names, roles, ends and hashes. The store has no secret.

use std::{fmt, str::FromStr};

use jiff::{SignedDuration, Timestamp};
use regatta_types::UnknownWord;
use serde::Serialize;

use super::{Result, Store, now, values};
use crate::database::{Row, params};

/// The permissions of a token's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PageRole {
    /// Reads every page.
    Reader,
    /// Also pauses, resumes and retries campaigns, and drains and resumes devices.
    Operator,
}

impl PageRole {
    /// Returns the word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Operator => "operator",
        }
    }
}

impl fmt::Display for PageRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for PageRole {
    type Err = UnknownWord;

    fn from_str(text: &str) -> std::result::Result<Self, UnknownWord> {
        let found = [Self::Reader, Self::Operator]
            .into_iter()
            .find(|role| role.as_str() == text);
        found.ok_or_else(|| UnknownWord {
            kind: "role",
            text: text.to_owned(),
            known: "reader, operator",
        })
    }
}

/// A token to store.
#[derive(Debug)]
pub struct NewPageToken<'a> {
    /// The name of the person or program that has it.
    pub name: &'a str,
    /// The role that it permits.
    pub role: PageRole,
    /// SHA-256 of the secret.
    pub secret_sha256: [u8; 32],
    /// The time when it expires.
    pub expires: Timestamp,
}

/// A stored token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageToken {
    /// Its number. No other token ever has it.
    pub number: i64,
    /// The name of the person or program that has it.
    pub name: String,
    /// The role that it permits.
    pub role: PageRole,
    /// SHA-256 of the secret.
    pub secret_sha256: [u8; 32],
    /// The time when it was made, RFC 3339 UTC.
    pub created: String,
    /// The time when it expires.
    pub expires: Timestamp,
    /// The hour of its last use, RFC 3339 UTC.
    pub last_used: Option<String>,
    /// The time when it was revoked, RFC 3339 UTC.
    pub revoked: Option<String>,
}

impl PageToken {
    /// Returns whether it permits anything at a time.
    pub fn is_valid(&self, at: Timestamp) -> bool {
        self.revoked.is_none() && self.expires > at
    }

    /// Returns its state in a word.
    pub fn state(&self, at: Timestamp) -> &'static str {
        match &self.revoked {
            Some(_) => "revoked",
            None if self.is_valid(at) => "valid",
            None => "expired",
        }
    }
}

fn token(row: &Row<'_>) -> Result<PageToken> {
    Ok(PageToken {
        number: row.get("number")?,
        name: row.get("name")?,
        role: values::parsed(row, "role")?,
        secret_sha256: row.get("secret_sha256")?,
        created: row.get("created")?,
        expires: values::parsed(row, "expires")?,
        last_used: row.get("last_used")?,
        revoked: row.get("revoked")?,
    })
}

/// The tokens that open the live page and its API.
#[derive(Debug)]
pub struct PageTokens<'a> {
    pub(super) store: &'a Store,
}

impl PageTokens<'_> {
    /// Stores a token. Returns `false` when there is a valid one with that name. An expired one with that name counts as revoked.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn add(&self, new: &NewPageToken<'_>) -> Result<bool> {
        self.store.all_or_nothing(|store| {
            let earlier = store.page_tokens().all()?.into_iter();
            let mut named = earlier.filter(|token| token.name == new.name);
            if named.any(|token| token.is_valid(Timestamp::now())) {
                return Ok(false);
            }
            store.page_tokens().revoke(new.name)?;
            store.execute(
                "INSERT INTO page_tokens (name, role, secret_sha256, created, expires)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    new.name,
                    new.role.as_str(),
                    new.secret_sha256,
                    now(),
                    new.expires.to_string()
                ],
            )?;
            Ok(true)
        })
    }

    /// Returns every token, oldest first.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn all(&self) -> Result<Vec<PageToken>> {
        self.store
            .rows("SELECT * FROM page_tokens ORDER BY number", params![], token)
    }

    /// Revokes the token with a name. Returns `false` when there is no valid one.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn revoke(&self, name: &str) -> Result<bool> {
        let revoked = self.store.execute(
            "UPDATE page_tokens SET revoked = ?2 WHERE name = ?1 AND revoked IS NULL",
            params![name, &now()],
        )?;
        Ok(revoked > 0)
    }

    /// Stores that a token was used in this hour. A later use in the same hour writes nothing.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn record_use(&self, number: i64) -> Result<()> {
        let hour = this_hour();
        let last: Option<Option<String>> = self.store.optional(
            "SELECT last_used FROM page_tokens WHERE number = ?1",
            params![number],
            |row| row.get(0),
        )?;
        if last.flatten().as_ref() != Some(&hour) {
            self.store.execute(
                "UPDATE page_tokens SET last_used = ?2 WHERE number = ?1",
                params![number, hour],
            )?;
        }
        Ok(())
    }
}

/// Returns the beginning of this hour, RFC 3339 UTC.
fn this_hour() -> String {
    let now = Timestamp::now();
    let hour = SignedDuration::from_hours(1).as_secs();
    let begin = Timestamp::from_second(now.as_second() / hour * hour);
    begin.unwrap_or(now).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new<'a>(name: &'a str, secret: u8, expires: &str) -> NewPageToken<'a> {
        NewPageToken {
            name,
            role: PageRole::Operator,
            secret_sha256: [secret; 32],
            expires: expires.parse().unwrap(),
        }
    }

    #[test]
    fn a_name_has_one_valid_token_and_its_old_ones_stay_listed() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("regatta.db")).unwrap();
        let (past, future) = ("2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z");
        assert!(store.page_tokens().add(&new("anna", 1, past)).unwrap());
        assert!(store.page_tokens().add(&new("anna", 2, future)).unwrap());
        assert!(!store.page_tokens().add(&new("anna", 3, future)).unwrap());
        assert!(store.page_tokens().add(&new("ben", 4, future)).unwrap());
        let states = || -> Vec<&str> {
            let tokens = store.page_tokens().all().unwrap();
            tokens.iter().map(|token| token.state(Timestamp::now())).collect()
        };
        assert_eq!(states(), ["revoked", "valid", "valid"]);
        assert!(store.page_tokens().revoke("anna").unwrap());
        assert!(!store.page_tokens().revoke("anna").unwrap());
        assert_eq!(states(), ["revoked", "revoked", "valid"]);
    }

    #[test]
    fn the_last_use_is_known_to_the_hour() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("regatta.db")).unwrap();
        let future = "2100-01-01T00:00:00Z";
        assert!(store.page_tokens().add(&new("anna", 1, future)).unwrap());
        let used = || store.page_tokens().all().unwrap().remove(0);
        assert_eq!(used().last_used, None);
        store.page_tokens().record_use(used().number).unwrap();
        let hour = used().last_used.unwrap();
        assert!(hour.ends_with(":00:00Z"), "{hour}");
    }
}
