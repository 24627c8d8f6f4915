//! Issues tokens. The user gets the secret, and the store keeps its hash.

use jiff::{SignedDuration, Timestamp};
use regatta_fsutil::hash::sha256_hex;
use regatta_text::escape_start;
use regatta_types::{DeviceId, ErrorKind};
use regatta_wire::enrollment::EnrollmentToken;
use ring::rand::{SecureRandom as _, SystemRandom};

use regatta_lab_store::{Store, StoreError};

/// The maximum length of a device's name in bytes.
const MAX_NAME: usize = 64;

/// An error of issuing a token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The name cannot be used.
    #[error(
        "`{0}` cannot be a device's name: it is 1 to {MAX_NAME} letters, digits, `.`, `_` and `-`, and begins with a letter or digit"
    )]
    Name(String),
    /// Another device or token has the name.
    #[error("there is a device called `{0}`, or a token for one that has not been used yet")]
    Taken(String),
    /// The system provides no random numbers.
    #[error("the system has no random bytes for a token")]
    Randomness,
    /// The store failed.
    #[error("the token cannot be stored")]
    Store(#[from] StoreError),
}

impl TokenError {
    /// Returns who has to act.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Name(_) | Self::Taken(_) => ErrorKind::Usage,
            _ => ErrorKind::Internal,
        }
    }
}

/// A token for a device.
#[derive(Debug)]
pub struct NewToken {
    pub token: EnrollmentToken,
    /// The time when it expires, RFC 3339 UTC.
    pub expires: String,
}

/// The parameters of a token.
#[derive(Debug)]
pub struct TokenRequest<'a> {
    /// The device's name.
    pub name: &'a str,
    /// The host and port where the device enrolls.
    pub place: (String, u16),
    /// SHA-256 of the authority's certificate.
    pub authority: [u8; 32],
    /// The time for which the token is valid.
    pub lifetime: SignedDuration,
    /// The member that may already have the name, because it enrolls again.
    pub returning: Option<&'a DeviceId>,
}

/// Issues a token for a device.
///
/// # Errors
/// Returns [`TokenError`].
pub fn issue(store: &Store, requested: &TokenRequest<'_>) -> Result<NewToken, TokenError> {
    let &TokenRequest {
        name,
        authority,
        lifetime,
        returning,
        ..
    } = requested;
    check_name(name)?;
    let mut secret = [0; 16];
    SystemRandom::new()
        .fill(&mut secret)
        .map_err(|_| TokenError::Randomness)?;
    let expires = Timestamp::now()
        .saturating_add(lifetime)
        .unwrap_or(Timestamp::MAX)
        .to_string();
    store.all_or_nothing(|store| {
        if store.members().is_name_taken(name, returning)? {
            return Ok(Err(TokenError::Taken(name.to_owned())));
        }
        store
            .enrollment_tokens()
            .add(&sha256_hex(&secret), name, &expires)?;
        Ok(Ok(()))
    })??;
    let token = EnrollmentToken {
        host: requested.place.0.clone(),
        port: requested.place.1,
        authority,
        secret,
    };
    Ok(NewToken { token, expires })
}

/// Checks that a name is valid for a device.
///
/// # Errors
/// Returns [`TokenError::Name`].
pub fn check_name(name: &str) -> Result<(), TokenError> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if name.len() > MAX_NAME || !begins_well || !name.bytes().all(allowed) {
        return Err(TokenError::Name(escape_start(name, MAX_NAME)));
    }
    Ok(())
}
