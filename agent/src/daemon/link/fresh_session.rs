//! A session store that lets a new MQTT client resume the session that the broker has kept for the device.

use std::pin::Pin;

use rumqttc::{PersistedAckMode, PersistedSession, SessionStore, SessionStoreError, SessionStoreKey};

use super::session_parameters::{IN_FLIGHT, SESSION_EXPIRY_S};

/// The return type of the session store's methods.
type SessionStoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, SessionStoreError>> + Send + 'a>>;

/// Tells a new client that it may resume the broker's session with no messages in flight. This is correct, because the
/// outbox restarts with every connection. Without it, the client would refuse the session and lose the commands in it.
#[derive(Debug)]
pub(super) struct NothingUnderWay;

impl SessionStore for NothingUnderWay {
    fn load<'a>(&'a self, key: &'a SessionStoreKey) -> SessionStoreFuture<'a, Option<PersistedSession>> {
        let session = PersistedSession {
            format_version: 1,
            client_id: key.client_id().to_owned(),
            clean_start: false,
            session_expiry_interval: Some(SESSION_EXPIRY_S),
            outgoing_inflight_upper_limit: Some(IN_FLIGHT),
            ack_mode: PersistedAckMode::Manual,
            last_pkid: 0,
            last_puback: 0,
            replay: Vec::new(),
            incoming_qos2: Vec::new(),
        };
        Box::pin(async { Ok(Some(session)) })
    }

    fn save<'a>(&'a self, _: &'a SessionStoreKey, _: &'a PersistedSession) -> SessionStoreFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn clear<'a>(&'a self, _: &'a SessionStoreKey) -> SessionStoreFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }
}
