//! The sessions of people who logged in. They are in memory only, so that a restart of the coordinator ends them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use tokio::time::Instant;

use super::secret::{NoRandomness, Secret};
use regatta_lab_store::{PageRole, PageToken};

/// The longest session of an operator: a day's work.
const OPERATOR: Duration = Duration::from_hours(12);
/// The longest session of a reader, which may be a screen on the wall.
const READER: Duration = Duration::from_hours(30 * 24);
/// The largest number of sessions of one token. The oldest ends when there is one more.
const MAX_OF_TOKEN: usize = 16;
/// The largest number of sessions.
const MAX: usize = 256;

/// One person's session.
#[derive(Debug)]
pub(crate) struct Session {
    /// SHA-256 of the id in the cookie.
    id: [u8; 32],
    pub(super) token: i64,
    /// The token's name.
    pub(super) name: String,
    /// The role that the token permits.
    pub(super) role: PageRole,
    /// The secret in its forms, which no other site knows.
    pub(super) form_token: String,
    began: Instant,
    /// The time when it ends by itself.
    pub(super) ends: Instant,
}

/// Every session.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<[u8; 32], Arc<Session>>>);

impl Sessions {
    /// Begins a session. Returns its id for the cookie.
    pub(super) fn begin(&self, token: &PageToken) -> Result<(Secret, Arc<Session>), NoRandomness> {
        let id = Secret::new()?;
        let longest = match token.role {
            PageRole::Operator => OPERATOR,
            PageRole::Reader => READER,
        };
        let left = token.expires.duration_since(Timestamp::now());
        let left = Duration::try_from(left).unwrap_or_default();
        let now = Instant::now();
        let session = Arc::new(Session {
            id: id.sha256(),
            token: token.number,
            name: token.name.clone(),
            role: token.role,
            form_token: Secret::new()?.text(),
            began: now,
            ends: now + longest.min(left),
        });
        let mut sessions = self.lock();
        sessions.retain(|_, session| session.ends > now);
        end_oldest(&mut sessions, MAX_OF_TOKEN, |session| {
            session.token == token.number
        });
        end_oldest(&mut sessions, MAX, |_| true);
        sessions.insert(session.id, Arc::clone(&session));
        Ok((id, session))
    }

    /// Returns the session of a cookie's id.
    pub(super) fn find(&self, id: &Secret) -> Option<Arc<Session>> {
        let sessions = self.lock();
        let session = sessions.get(&id.sha256())?;
        (session.ends > Instant::now()).then(|| Arc::clone(session))
    }

    /// Returns whether a session has not ended.
    pub(super) fn has(&self, session: &Session) -> bool {
        session.ends > Instant::now() && self.lock().contains_key(&session.id)
    }

    pub(super) fn end(&self, session: &Session) {
        self.lock().remove(&session.id);
    }

    /// Ends the sessions of expired and revoked tokens.
    pub(super) fn keep_those_of(&self, is_valid: impl Fn(i64) -> bool) {
        self.lock().retain(|_, session| is_valid(session.token));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the oldest sessions of a kind, so that one more does not exceed `most`.
fn end_oldest(
    sessions: &mut HashMap<[u8; 32], Arc<Session>>,
    most: usize,
    is_meant: impl Fn(&Session) -> bool,
) {
    let mut meant: Vec<_> = sessions.values().filter(|session| is_meant(session)).collect();
    meant.sort_unstable_by_key(|session| session.began);
    let surplus = (meant.len() + 1).saturating_sub(most);
    let ids: Vec<[u8; 32]> = meant.iter().take(surplus).map(|session| session.id).collect();
    for id in ids {
        sessions.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: i64, expires: Timestamp) -> PageToken {
        PageToken {
            number,
            name: format!("user-{number}"),
            role: PageRole::Operator,
            secret_sha256: [0; 32],
            created: String::new(),
            expires,
            last_used: None,
            revoked: None,
        }
    }

    #[test]
    fn sessions_are_bounded_per_token_and_in_all() {
        let sessions = Sessions::default();
        let of = |number| sessions.begin(&token(number, Timestamp::MAX)).unwrap();
        let (first, _) = of(1);
        let newer: Vec<Secret> = (0..MAX_OF_TOKEN).map(|_| of(1).0).collect();
        assert!(sessions.find(&first).is_none(), "the oldest has ended");
        assert!(newer.iter().all(|id| sessions.find(id).is_some()));
        for number in 0..1_000 {
            of(number);
        }
        assert_eq!(sessions.lock().len(), MAX);
    }

    #[test]
    fn a_session_ends_with_its_token_and_on_request() {
        let sessions = Sessions::default();
        let soon = Timestamp::now() + jiff::SignedDuration::from_secs(60);
        let (id, session) = sessions.begin(&token(1, soon)).unwrap();
        assert!(session.ends <= Instant::now() + Duration::from_secs(60));
        sessions.end(&session);
        assert!(sessions.find(&id).is_none() && !sessions.has(&session));
        let (id, _) = sessions.begin(&token(2, soon)).unwrap();
        sessions.keep_those_of(|number| number != 2);
        assert!(sessions.find(&id).is_none());
        let past = Timestamp::now() - jiff::SignedDuration::from_secs(60);
        let (id, _) = sessions.begin(&token(3, past)).unwrap();
        assert!(sessions.find(&id).is_none(), "an expired token has no time left");
    }
}
