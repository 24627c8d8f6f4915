//! Issues tokens of the live page. The user gets the secret, and the store keeps its hash.

use jiff::{SignedDuration, Timestamp};
use regatta_types::ErrorKind;

use super::secret::{NoRandomness, Secret};
use regatta_lab_store::{NewPageToken, PageRole, Store, StoreError};

/// The longest name in bytes.
const MAX_NAME: usize = 64;

/// An error of issuing a token.
#[derive(Debug, thiserror::Error)]
pub enum PageTokenError {
    /// The name cannot be used.
    #[error(
        "`{0}` cannot be the name of a token: it is 1 to {MAX_NAME} letters, digits, `.`, `_`, `-` and `@`, and begins with a letter or digit"
    )]
    Name(String),
    /// Another token has the name.
    #[error("there is a valid token of `{0}`")]
    Taken(String),
    /// The system provides no random numbers.
    #[error("cannot create a token")]
    Randomness(#[from] NoRandomness),
    /// The store failed.
    #[error("the token cannot be stored")]
    Store(#[from] StoreError),
}

impl PageTokenError {
    /// Returns who has to act.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Name(_) | Self::Taken(_) => ErrorKind::Usage,
            _ => ErrorKind::Internal,
        }
    }
}

/// A new token.
pub struct NewToken {
    /// Its text, which nothing keeps.
    pub token: String,
    /// The time when it expires.
    pub expires: Timestamp,
}

/// Issues a token.
///
/// # Errors
/// Returns [`PageTokenError`].
pub fn issue(
    store: &Store,
    name: &str,
    role: PageRole,
    lifetime: SignedDuration,
) -> Result<NewToken, PageTokenError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    let begins_well = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    if name.len() > MAX_NAME || !begins_well || !name.bytes().all(allowed) {
        return Err(PageTokenError::Name(name.chars().take(MAX_NAME).collect()));
    }
    let secret = Secret::new()?;
    let expires = Timestamp::now()
        .saturating_add(lifetime)
        .unwrap_or(Timestamp::MAX);
    let is_new = store.page_tokens().add(&NewPageToken {
        name,
        role,
        secret_sha256: secret.sha256(),
        expires,
    })?;
    if !is_new {
        return Err(PageTokenError::Taken(name.to_owned()));
    }
    Ok(NewToken {
        token: secret.token_text(),
        expires,
    })
}
