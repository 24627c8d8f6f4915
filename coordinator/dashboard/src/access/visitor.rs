//! The sender of a request, and the actions that the page offers to that person.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;

use super::sessions::Session;
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
