//! The sender of a request, and the actions that the page offers to that person.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;

use super::{permissions::Access, sessions::Session};
use regatta_lab_store::{PageRole, PageToken};

/// The sender of a request.
#[derive(Debug, Clone)]
pub(crate) enum Visitor {
    /// A reader on this machine, without a login.
    Local,
    /// A browser without a session.
    Unknown,
    /// A browser with a session.
    User(Arc<Session>),
    /// A program with a bearer token.
    Program(PageToken),
}

/// The operator who performs an action. Only the gate makes one, after all its checks.
#[derive(Clone)]
pub(crate) struct Operator {
    name: String,
    /// The session or the token that permits the action.
    visitor: Visitor,
    access: Arc<Access>,
}

/// The controls that a visitor gets for actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Controls {
    /// Forms of the session contain this token.
    Session(String),
    /// An operator's token in each form.
    TokenEach,
    /// No actions: the visitor is a reader.
    None,
}

/// The reader whose requests count together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ReaderKey {
    /// Everybody on this machine, without a login.
    Local,
    /// The sessions and programs of a token, by its number.
    Token(i64),
}

impl Visitor {
    /// Returns the reader. `None` before the login.
    pub(crate) fn reader_key(&self) -> Option<ReaderKey> {
        match self {
            Self::Local => Some(ReaderKey::Local),
            Self::User(_) | Self::Program(_) => self.token().map(ReaderKey::Token),
            Self::Unknown => None,
        }
    }

    /// Returns the number of the token that the visitor used.
    pub(super) fn token(&self) -> Option<i64> {
        match self {
            Self::User(session) => Some(session.token),
            Self::Program(token) => Some(token.number),
            Self::Local | Self::Unknown => None,
        }
    }

    /// Returns the name and the form token of a visitor who has logged in.
    pub(crate) fn account(&self) -> Option<(&str, &str)> {
        match self {
            Self::User(session) => Some((&session.name, &session.form_token)),
            Self::Local | Self::Unknown | Self::Program(_) => None,
        }
    }

    /// Returns this visitor's controls for actions.
    pub(crate) fn controls(&self) -> Controls {
        match self {
            Self::Local => Controls::TokenEach,
            Self::User(session) if session.role == PageRole::Operator => {
                Controls::Session(session.form_token.clone())
            }
            Self::User(_) | Self::Unknown | Self::Program(_) => Controls::None,
        }
    }

    /// Returns the time at which the right to read ends by itself.
    pub(super) fn ends(&self) -> Option<Instant> {
        match self {
            Self::Local | Self::Unknown => None,
            Self::User(session) => Some(session.ends),
            Self::Program(token) => {
                let left = token.expires.duration_since(Timestamp::now());
                // The clock of timers cannot represent an end in centuries.
                let left = Duration::try_from(left).unwrap_or_default();
                Some(Instant::now() + left.min(Duration::from_hours(24)))
            }
        }
    }
}

impl Operator {
    /// Creates the operator who owns a token, as long as `visitor` is admitted.
    pub(super) fn of(name: &str, visitor: Visitor, access: &Arc<Access>) -> Self {
        Self {
            name: name.to_owned(),
            visitor,
            access: Arc::clone(access),
        }
    }

    /// Returns whether the operator may still act: the action may have waited for its turn while the token was revoked.
    pub(crate) fn may_act(&self) -> bool {
        self.access.admits(&self.visitor)
    }

    /// Returns the author of a change in the logs of the lab. It cannot be mistaken for a user of the command line, or for the coordinator.
    pub(crate) fn author(&self) -> String {
        format!("{} (live page)", self.name)
    }
}
