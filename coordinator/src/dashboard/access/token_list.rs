//! A copy of the tokens in memory, so that a check costs no query. The store is authoritative.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};

use jiff::Timestamp;
use subtle::ConstantTimeEq as _;

use super::secret::Secret;
use crate::store::{self, PageToken, Store};

/// The longest wait to store a use. Readings never wait for a writer, but they share the connection.
const PATIENCE: Duration = Duration::from_millis(500);

/// The tokens.
pub(super) struct TokenList {
    store: Mutex<Store>,
    tokens: RwLock<Arc<[PageToken]>>,
    /// The store's version at the last look.
    seen: Mutex<Option<i64>>,
}

impl TokenList {
    /// Reads the tokens.
    pub(super) fn read(store: Store) -> store::Result<Self> {
        store.set_patience(PATIENCE)?;
        Ok(Self {
            tokens: RwLock::new(store.page_tokens()?.into()),
            store: Mutex::new(store),
            seen: Mutex::default(),
        })
    }

    /// Reads the tokens again if the store has changed. Returns whether they have changed. It blocks.
    pub(super) fn refresh(&self) -> store::Result<bool> {
        // Held to the end, so that an older reading never replaces a newer one.
        let store = lock(&self.store);
        let version = store.data_version()?;
        if lock(&self.seen).replace(version) == Some(version) {
            return Ok(false);
        }
        let present: Arc<[PageToken]> = store.page_tokens()?.into();
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        let is_changed = *tokens != present;
        *tokens = present;
        Ok(is_changed)
    }

    /// Returns the valid token of a secret. The time that it takes depends on the number of tokens only.
    pub(super) fn find(&self, secret: &Secret) -> Option<PageToken> {
        let (sha256, now) = (secret.sha256(), Timestamp::now());
        let mut found = None;
        for token in self.tokens().iter() {
            if bool::from(token.secret_sha256.ct_eq(&sha256)) && token.is_valid(now) {
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

    /// Stores the use of a token. It blocks.
    pub(super) fn note_use(&self, number: i64) {
        if let Err(error) = lock(&self.store).page_token_is_used(number) {
            let error = anyhow::Error::from(error);
            tracing::warn!("the use of a token of the live page is not stored: {error:#}");
        }
    }

    fn tokens(&self) -> Arc<[PageToken]> {
        Arc::clone(&self.tokens.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Locks a mutex. Its data is replaced as a whole, so a panic elsewhere leaves nothing half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
