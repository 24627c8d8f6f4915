//! A copy of the tokens in memory, so that a check costs no query. The store is authoritative, and [`super::token_follower`] follows it.

use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use subtle::ConstantTimeEq as _;

use super::secret::Secret;
use regatta_lab_store::PageToken;

/// The tokens, valid or not.
pub(super) struct TokenList(RwLock<Arc<[PageToken]>>);

impl TokenList {
    /// Creates a list of these tokens.
    pub(super) fn new(tokens: Vec<PageToken>) -> Self {
        Self(RwLock::new(tokens.into()))
    }

    /// Replaces the tokens. Returns whether they have changed.
    pub(super) fn replace(&self, tokens: Vec<PageToken>) -> bool {
        let mut present = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_changed = **present != *tokens;
        *present = tokens.into();
        is_changed
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
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}
