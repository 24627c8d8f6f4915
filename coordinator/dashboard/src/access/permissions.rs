//! The tokens, sessions and attempts of one listener, and the visitors' right to read. It does not see requests.

use std::{net::IpAddr, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use super::{
    guesses::{Guesses, Peer},
    secret::Secret,
    sessions::{Session, Sessions},
    token_follower::TokenFollower,
    token_list::TokenList,
    visitor::Visitor,
};
use regatta_lab_net::fair_slots::{Eviction, FairSlots, Slot};
use regatta_lab_store::{PageToken, Store};

/// The interval at which the end of a right to read is checked. Nothing else shows that a program's token has expired, or that the tokens can no
/// longer be read.
const CHECK: Duration = Duration::from_millis(500);
/// The largest number of live views of readers with tokens. It is less than the number of connections, and less than the hub's views.
const MAX_LIVE_VIEWS: usize = 48;
/// The largest number of live views of one token. The oldest ends when there is one more.
const MAX_LIVE_VIEWS_OF_TOKEN: usize = 16;

/// The tokens, sessions and attempts of one listener.
pub(crate) struct Access {
    /// Whether readers log in.
    pub(super) requires_login: bool,
    tokens: Arc<TokenList>,
    follower: TokenFollower,
    pub(super) sessions: Arc<Sessions>,
    guesses: Guesses,
    /// The open live views by token.
    live_views: Arc<FairSlots<i64>>,
    /// Notified when a token or session may have ended.
    changes: watch::Sender<()>,
}

/// The right to an open live view, and the notice of its end.
pub(super) type LiveView = (Slot<i64>, Eviction);

/// The reason why a token is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenRefusal {
    /// The token is unknown, expired or revoked.
    Unknown,
    /// The address sent too many wrong tokens.
    TooManyAttempts,
    /// The tokens cannot be read, so a revocation would not be noticed.
    Unreadable,
    Internal,
}

impl Access {
    /// Reads the tokens and follows them, so that a revoked token ends its sessions. It blocks.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(crate) fn new(store: Store, requires_login: bool) -> anyhow::Result<Arc<Self>> {
        let tokens = Arc::new(TokenList::new(store.page_tokens().all()?));
        let (sessions, changes) = (Arc::new(Sessions::default()), watch::Sender::new(()));
        let changed = {
            let (tokens, sessions, changes) = (Arc::clone(&tokens), Arc::clone(&sessions), changes.clone());
            move || {
                sessions.keep_those_of(|token| tokens.is_valid(token));
                changes.send_replace(());
            }
        };
        Ok(Arc::new(Self {
            requires_login,
            follower: TokenFollower::start(store, Arc::clone(&tokens), changed)?,
            tokens,
            sessions,
            guesses: Guesses::new(),
            live_views: FairSlots::new(MAX_LIVE_VIEWS, MAX_LIVE_VIEWS_OF_TOKEN),
            changes,
        }))
    }

    /// Returns the valid token that a text is. A wrong one counts against its address.
    pub(super) async fn verify(&self, text: &str, from: Peer) -> Result<PageToken, TokenRefusal> {
        if !self.has_current_tokens().await {
            return Err(TokenRefusal::Unreadable);
        }
        let secret = Secret::parse_token(text);
        let known = || secret.as_ref().and_then(|secret| self.tokens.find(secret));
        let mut found = known();
        if found.is_none() {
            if !self.guesses.try_one(from) {
                return Err(TokenRefusal::TooManyAttempts);
            }
            // It may be newer than the last look at the store.
            if secret.is_some() && !self.follower.refresh().await {
                self.guesses.forget_one(from);
                return Err(TokenRefusal::Unreadable);
            }
            found = known();
            if found.is_some() {
                self.guesses.forget_one(from);
            }
        }
        let from = from.0.ip();
        let Some(token) = found else {
            tracing::warn!(%from, "a wrong token for the live page");
            return Err(TokenRefusal::Unknown);
        };
        self.valid(token, from)
    }

    /// Returns whether the tokens were compared with the store within the last few seconds.
    pub(super) fn are_tokens_current(&self) -> bool {
        self.tokens.is_current()
    }

    /// Does the same, but reads the store first if it was not read recently, for example because the process was suspended.
    pub(super) async fn has_current_tokens(&self) -> bool {
        self.tokens.is_current() || self.follower.refresh().await
    }

    /// Returns a token if it is valid. An expired token is not a guess: it counts against separate attempts, so that a program that still sends it
    /// does not lock out others at the same address.
    fn valid(&self, token: PageToken, from: IpAddr) -> Result<PageToken, TokenRefusal> {
        if token.is_valid(Timestamp::now()) {
            self.follower.note_use(token.number);
            return Ok(token);
        }
        if !self.guesses.try_ended_token(token.number) {
            return Err(TokenRefusal::TooManyAttempts);
        }
        tracing::warn!(%from, "the token of {} for the live page has expired", token.name);
        Err(TokenRefusal::Unknown)
    }

    /// Opens a live view of a reader with a token, which ends the token's oldest one when it has too many.
    pub(super) fn open_live_view(&self, visitor: &Visitor) -> Option<LiveView> {
        visitor.token().map(|token| self.live_views.take(token))
    }

    pub(super) fn end(&self, session: &Session) {
        self.sessions.end(session);
        self.changes.send_replace(());
    }

    /// Waits until a visitor may read no longer.
    pub(super) async fn ended(self: Arc<Self>, visitor: Visitor) {
        let mut changes = self.changes.subscribe();
        while self.admits(&visitor) {
            let check = Instant::now() + CHECK;
            let end = visitor.ends().map_or(check, |end| end.min(check));
            // The end of the time limit is seen by the condition, and the sender lives as long as this.
            let _ = timeout_at(end, changes.changed()).await;
        }
    }

    /// Returns whether a visitor may still read.
    pub(super) fn admits(&self, visitor: &Visitor) -> bool {
        match visitor {
            Visitor::Local => !self.requires_login,
            Visitor::Unknown => false,
            Visitor::User(session) => {
                self.tokens.is_current() && self.sessions.has(session) && self.tokens.is_valid(session.token)
            }
            Visitor::Program(token) => {
                self.tokens.is_current()
                    && self.tokens.is_valid(token.number)
                    && token.is_valid(Timestamp::now())
            }
        }
    }
}
