//! Making a token: the secret goes to the person who asked, its hash into the store.

use jiff::{SignedDuration, Timestamp};
use regatta_types::DeviceId;
use regatta_wire::enrolment::EnrolmentToken;
use ring::rand::{SecureRandom as _, SystemRandom};

use regatta_fsutil::hash::sha256_hex;

use crate::{
    fleet::printable,
    store::{Store, StoreError},
};

/// Longest name of a device.
const LONGEST_NAME: usize = 64;

/// A token that could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    /// The name cannot be used.
    #[error(
        "`{0}` cannot be a device's name: it is 1 to {LONGEST_NAME} letters, digits, `.`, `_` and `-`, and begins with a letter or digit"
    )]
    Name(String),
    /// Somebody has it.
    #[error("there is a device called `{0}`, or a token for one that has not been used yet")]
    Taken(String),
    /// The system has no randomness.
    #[error("the system gave no randomness for a token")]
    Randomness,
    /// The store failed.
    #[error("the token cannot be kept")]
    Store(#[from] StoreError),
}

/// A token, to be brought to the device.
#[derive(Debug)]
pub(crate) struct NewToken {
    /// The token.
    pub(crate) token: EnrolmentToken,
    /// When it expires, RFC 3339 UTC.
    pub(crate) expires: String,
}

/// What a token is to be good for.
#[derive(Debug)]
pub(crate) struct TokenRequest<'a> {
    /// The device's name.
    pub(crate) name: &'a str,
    /// Host and port at which the device is to enrol.
    pub(crate) place: (String, u16),
    /// SHA-256 of the authority's certificate.
    pub(crate) authority: [u8; 32],
    /// How long it can be used.
    pub(crate) lifetime: SignedDuration,
    /// The member who may have the name already: it enrols once more.
    pub(crate) returning: Option<&'a DeviceId>,
}

/// Makes a token for a device.
///
/// # Errors
/// [`TokenError`].
pub(crate) fn issue(store: &Store, requested: &TokenRequest<'_>) -> Result<NewToken, TokenError> {
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
        if store.is_name_taken(name, returning)? {
            return Ok(Err(TokenError::Taken(name.to_owned())));
        }
        store.add_token(&sha256_hex(&secret), name, &expires)?;
        Ok(Ok(()))
    })??;
    let token = EnrolmentToken {
        host: requested.place.0.clone(),
        port: requested.place.1,
        authority,
        secret,
    };
    Ok(NewToken { token, expires })
}

/// Whether a name can be a device's.
///
/// # Errors
/// [`TokenError::Name`].
pub(crate) fn check_name(name: &str) -> Result<(), TokenError> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if name.len() > LONGEST_NAME || !begins_well || !name.bytes().all(allowed) {
        return Err(TokenError::Name(printable(name, LONGEST_NAME)));
    }
    Ok(())
}
