//! The tokens, sessions and attempts of one listener, and the visitors' right to read. It does not see requests.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use super::{
    guesses::{Guesses, Peer},
    secret::Secret,
    sessions::{Session, Sessions},
    token_list::TokenList,
    visitor::Visitor,
};
use crate::store::{PageToken, Store};

/// The interval at which new and revoked tokens are read from the store.
const REFRESH: Duration = Duration::from_millis(500);

/// The tokens, sessions and attempts of one listener.
pub(in crate::dashboard) struct Access {
    /// Whether readers log in.
    pub(super) requires_login: bool,
    tokens: TokenList,
    pub(super) sessions: Sessions,
    guesses: Guesses,
    /// Notified when a token or session may have ended.
    changes: watch::Sender<()>,
}

/// The reason why a token is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenRefusal {
    /// The token is unknown, expired or revoked.
    Unknown,
    /// The address sent too many wrong tokens.
    TooManyAttempts,
    /// The store failed.
    Internal,
}

impl Access {
    /// Reads the tokens. It blocks.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(in crate::dashboard) fn new(store: Store, requires_login: bool) -> crate::store::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            requires_login,
            tokens: TokenList::read(store)?,
            sessions: Sessions::default(),
            guesses: Guesses::new(),
            changes: watch::Sender::new(()),
        }))
    }

    /// Follows the store, for ever, so that a revoked token ends its sessions.
    pub(in crate::dashboard) async fn follow(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(REFRESH);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.refresh().await;
        }
    }

    /// Reads the tokens again if the store has changed. Returns whether the store could be read.
    async fn refresh(self: &Arc<Self>) -> bool {
        let access = Arc::clone(self);
        let refreshed = tokio::task::spawn_blocking(move || access.tokens.refresh()).await;
        match refreshed {
            Ok(Ok(false)) => true,
            Ok(Ok(true)) => {
                self.sessions.keep_those_of(|token| self.tokens.is_valid(token));
                self.changes.send_replace(());
                true
            }
            Ok(Err(error)) => {
                let error = anyhow::Error::from(error);
                tracing::error!("the live page's tokens cannot be read: {error:#}");
                false
            }
            Err(error) => {
                tracing::error!("the live page's tokens cannot be read: {error}");
                false
            }
        }
    }

    /// Returns the valid token that a text is. A wrong one counts against its address.
    pub(super) async fn verify(self: &Arc<Self>, text: &str, from: Peer) -> Result<PageToken, TokenRefusal> {
        if !self.guesses.try_one(from) {
            return Err(TokenRefusal::TooManyAttempts);
        }
        let secret = Secret::parse_token(text);
        let known = |secret: &Secret| self.tokens.find(secret);
        let found = match &secret {
            None => None,
            Some(secret) => match known(secret) {
                Some(found) => Some(found),
                // It may be newer than the last look at the store.
                None if self.refresh().await => known(secret),
                None => {
                    self.guesses.forget_one(from);
                    return Err(TokenRefusal::Internal);
                }
            },
        };
        let Some(token) = found else {
            tracing::warn!(from = %from.0.ip(), "a wrong token for the live page");
            return Err(TokenRefusal::Unknown);
        };
        self.guesses.forget_one(from);
        let (access, number) = (Arc::clone(self), token.number);
        tokio::task::spawn_blocking(move || access.tokens.note_use(number));
        Ok(token)
    }

    /// Ends a session.
    pub(super) fn end(&self, session: &Session) {
        self.sessions.end(session);
        self.changes.send_replace(());
    }

    /// Waits until a visitor may read no longer.
    pub(super) async fn ended(self: Arc<Self>, visitor: Visitor) {
        let mut changes = self.changes.subscribe();
        while self.admits(&visitor) {
            let end = visitor.ends().unwrap_or_else(|| Instant::now() + REFRESH);
            // The end of the time limit is seen by the condition, and the sender lives as long as this.
            let _ = timeout_at(end, changes.changed()).await;
        }
    }

    /// Returns whether a visitor may still read.
    pub(super) fn admits(&self, visitor: &Visitor) -> bool {
        match visitor {
            Visitor::Local => !self.requires_login,
            Visitor::Unknown => false,
            Visitor::User(session) => self.sessions.has(session) && self.tokens.is_valid(session.token),
            Visitor::Program(token) => self.tokens.is_valid(token.number) && token.is_valid(Timestamp::now()),
        }
    }
}
