//! A copy of the tokens in memory, so that a check needs no query. The store is authoritative, and [`super::token_follower`] follows it. A copy that
//! was not compared with the store recently admits nobody, because a token may have been revoked since.

use std::{
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use subtle::ConstantTimeEq as _;

use super::secret::Secret;
use regatta_lab_store::PageToken;

/// The maximum age of the copy. The store is read several times a second, so a command that locks it for a moment does not lock anybody out.
const MAX_AGE: Duration = Duration::from_secs(5);

/// The tokens, valid or not.
pub(super) struct TokenList {
    tokens: RwLock<Arc<[PageToken]>>,
    /// The last time at which the store contained exactly these tokens.
    confirmed: Mutex<Instant>,
}

impl TokenList {
    /// Creates a list of the tokens that the store contains now.
    pub(super) fn new(tokens: Vec<PageToken>) -> Self {
        Self {
            tokens: RwLock::new(tokens.into()),
            confirmed: Mutex::new(Instant::now()),
        }
    }

    /// Replaces the tokens. Returns whether they have changed.
    pub(super) fn replace(&self, tokens: Vec<PageToken>) -> bool {
        let mut present = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        let is_changed = **present != *tokens;
        *present = tokens.into();
        is_changed
    }

    /// Records that the store contained these tokens at `time`.
    pub(super) fn confirm(&self, time: Instant) {
        *self.confirmed.lock().unwrap_or_else(PoisonError::into_inner) = time;
    }

    /// Returns whether the store was read recently enough to rely on the tokens.
    pub(super) fn is_current(&self) -> bool {
        let confirmed = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        confirmed.elapsed() < MAX_AGE
    }

    /// Returns the token of a secret, valid or not. The time that it takes depends on the number of tokens only.
    pub(super) fn find(&self, secret: &Secret) -> Option<PageToken> {
        let sha256 = secret.sha256();
        let mut found = None;
        for token in self.tokens().iter() {
            if bool::from(token.secret_sha256.ct_eq(&sha256)) {
                found = Some(token.clone());
            }
        }
        found
    }

    /// Returns whether a token is valid now.
    pub(super) fn is_valid(&self, number: i64) -> bool {
        let now = Timestamp::now();
        let tokens = self.tokens();
        tokens
            .iter()
            .any(|token| token.number == number && token.is_valid(now))
    }

    fn tokens(&self) -> Arc<[PageToken]> {
        Arc::clone(&self.tokens.read().unwrap_or_else(PoisonError::into_inner))
    }
}
