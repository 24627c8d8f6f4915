//! The rights of one connection in the embedded broker. Each connection has its own `AuthProvider`, so its rights follow from how it was
//! accepted, not from what the client states. The broker checks them for every message, so a removed device loses them immediately.

use std::{
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use mqtt5::{
    broker::{AuthProvider, AuthResult},
    error::Result,
    packet::connect::ConnectPacket,
    types::{ReasonCode, WillMessage, WillProperties},
};
use regatta_types::DeviceId;
use regatta_wire::topic::{Leaf, ROOT, Topic, agent_client_id};

use super::pace::Pace;
use crate::{fleet::Admission, handshake_limiter::HandshakeSlot};

/// The peer of a connection, as the acceptor knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Peer {
    /// A client without a certificate, on plain TCP. By default that is a user of this machine. It may publish in the name of any admitted
    /// device, whose signature its messages need, and read everything. It may not command devices.
    Unproven,
    /// A device that has proven possession of its key.
    Device(DeviceId),
    /// The coordinator, through its own connector or with its certificate.
    Coordinator,
}

/// A connection's rights.
#[derive(Debug)]
pub(super) struct Rights {
    pub(super) peer: Peer,
    pub(super) admission: Arc<Admission>,
    pub(super) pace: Arc<Pace>,
    /// Whether all connections for devices are in use, so that this one is refused.
    pub(super) is_full: bool,
    /// The connection's slot of the handshake limiter, until its CONNECT is accepted.
    pub(super) handshake_slot: Mutex<Option<HandshakeSlot>>,
}

impl Rights {
    /// Returns whether the peer may connect with this client id and last will. A device has one client id, so it can take over no session
    /// but its own. A last will bypasses the hook, so it may go only to the hello topic of a device for which the peer may publish, and has
    /// no MQTT properties: the broker would store up to 64 KiB of them with the will, and could delay it.
    fn may_connect(&self, client_id: &str, will: Option<&WillMessage>) -> bool {
        let known = match &self.peer {
            Peer::Unproven | Peer::Coordinator => true,
            Peer::Device(id) => self.admission.admits(id) && client_id == agent_client_id(id),
        };
        let is_hello = |topic: &str| Topic::parse(topic).is_ok_and(|topic| topic.leaf == Leaf::Hello);
        let may_leave = |will: &WillMessage| {
            is_hello(&will.topic) && self.may_publish(&will.topic) && has_no_properties(will)
        };
        known && will.is_none_or(may_leave)
    }

    /// Releases the slot of the handshake limiter. Returns `false` for a connection that was already evicted.
    fn ends_handshake(&self) -> bool {
        let mut slot = self.handshake_slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.take().is_none_or(HandshakeSlot::free)
    }

    fn may_publish(&self, topic: &str) -> bool {
        let Ok(topic) = Topic::parse(topic) else {
            return false;
        };
        let is_of_devices = matches!(
            topic.leaf,
            Leaf::Hello | Leaf::Telemetry | Leaf::State(_) | Leaf::Log(..)
        );
        let is_own = match &self.peer {
            Peer::Coordinator => true,
            Peer::Unproven => is_of_devices,
            Peer::Device(id) => is_of_devices && topic.device == *id,
        };
        is_own && self.admission.admits(&topic.device)
    }

    fn may_subscribe(&self, filter: &str) -> bool {
        match &self.peer {
            Peer::Unproven | Peer::Coordinator => filter
                .strip_prefix(ROOT)
                .is_some_and(|rest| rest.starts_with('/')),
            Peer::Device(id) => {
                Topic::device_subscriptions(id).iter().any(|own| own == filter) && self.admission.admits(id)
            }
        }
    }
}

fn has_no_properties(will: &WillMessage) -> bool {
    matches!(
        &will.properties,
        WillProperties {
            will_delay_interval: None,
            payload_format_indicator: None,
            message_expiry_interval: None,
            content_type: None,
            response_topic: None,
            correlation_data: None,
            user_properties,
        } if user_properties.is_empty()
    )
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl AuthProvider for Rights {
    fn authenticate<'a>(
        &'a self,
        connect: &'a ConnectPacket,
        _: SocketAddr,
    ) -> Answer<'a, Result<AuthResult>> {
        Box::pin(async move {
            if let Peer::Device(id) = &self.peer {
                self.pace.connect(id).await;
            }
            let may = self.may_connect(&connect.client_id, connect.will.as_ref());
            Ok(if !may {
                AuthResult::fail(ReasonCode::NotAuthorized)
            } else if self.is_full {
                AuthResult::fail(ReasonCode::QuotaExceeded)
            } else if self.ends_handshake() {
                AuthResult::success()
            } else {
                // The device tries again. The other code would mean that it was removed from the lab.
                AuthResult::fail(ReasonCode::ServerBusy)
            })
        })
    }

    fn authorize_publish<'a>(&'a self, _: &str, _: Option<&'a str>, topic: &'a str) -> Answer<'a, bool> {
        Box::pin(async move { self.may_publish(topic) })
    }

    fn authorize_subscribe<'a>(&'a self, _: &str, _: Option<&'a str>, filter: &'a str) -> Answer<'a, bool> {
        Box::pin(async move { self.may_subscribe(filter) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_lab_store::Store;

    const DEVICE: &str = "0123456789abcdef0123456789abcdef";
    const OTHER: &str = "fedcba9876543210fedcba9876543210";
    const RUN: &str = "01930e7a-6f00-7000-8000-000000000001";

    fn rights(peer: Peer, admission: Arc<Admission>) -> Rights {
        Rights {
            peer,
            admission,
            pace: Arc::default(),
            is_full: false,
            handshake_slot: Mutex::default(),
        }
    }

    #[test]
    fn an_unproven_peer_stays_within_our_topics_and_commands_no_device() {
        let rights = rights(Peer::Unproven, Arc::new(Admission::of_everybody()));
        assert!(rights.may_publish(&format!("regatta/v1/{DEVICE}/hello")));
        for leaf in ["cmd", "ack"] {
            assert!(
                !rights.may_publish(&format!("regatta/v1/{DEVICE}/{leaf}/{RUN}")),
                "{leaf}"
            );
        }
        for topic in [
            "regatta/v1/x/hello",
            "home/light",
            "regatta/v1",
            "$SYS/broker/version",
        ] {
            assert!(!rights.may_publish(topic), "{topic}");
        }
        assert!(rights.may_subscribe("regatta/v1/+/hello"));
        for filter in ["#", "+/v1/#", "regatta/v1", "$SYS/#", "regatta/v11/#"] {
            assert!(!rights.may_subscribe(filter), "{filter}");
        }
    }

    #[test]
    fn a_device_speaks_and_hears_its_own_topics_only() {
        let rights = rights(
            Peer::Device(DEVICE.parse().unwrap()),
            Arc::new(Admission::of_everybody()),
        );
        for leaf in [
            "hello",
            "telemetry",
            &format!("state/{RUN}"),
            &format!("log/{RUN}/a.txt"),
        ] {
            assert!(
                rights.may_publish(&format!("regatta/v1/{DEVICE}/{leaf}")),
                "{leaf}"
            );
            assert!(
                !rights.may_publish(&format!("regatta/v1/{OTHER}/{leaf}")),
                "{leaf}"
            );
        }
        for leaf in [
            &format!("cmd/{RUN}"),
            &format!("ack/{RUN}"),
            "",
            "#",
            "+",
            "hello/x",
            "../x/hello",
        ] {
            assert!(
                !rights.may_publish(&format!("regatta/v1/{DEVICE}/{leaf}")),
                "{leaf}"
            );
        }
        for own in ["cmd/+", "ack/+"] {
            assert!(
                rights.may_subscribe(&format!("regatta/v1/{DEVICE}/{own}")),
                "{own}"
            );
            assert!(
                !rights.may_subscribe(&format!("regatta/v1/{OTHER}/{own}")),
                "{own}"
            );
        }
        for filter in [
            "#",
            "+/#",
            "regatta/#",
            "regatta/v1/#",
            "regatta/v1/+/cmd/+",
            "regatta/v1/+/hello",
            "$SYS/#",
            "$share/group/regatta/v1/#",
            &format!("$share/group/regatta/v1/{DEVICE}/cmd/+"),
            &format!("regatta/v1/{DEVICE}/#"),
            &format!("regatta/v1/{DEVICE}/log/+/+"),
            &"+/".repeat(10_000),
        ] {
            assert!(!rights.may_subscribe(filter), "{filter}");
        }
    }

    #[test]
    fn a_device_takes_over_no_other_session_and_leaves_no_will_elsewhere() {
        let rights = rights(
            Peer::Device(DEVICE.parse().unwrap()),
            Arc::new(Admission::of_everybody()),
        );
        let own = format!("regatta-agent-{DEVICE}");
        let will_on = |topic: String| WillMessage::new(topic, b"x".to_vec());
        let will = |device: &str| will_on(format!("regatta/v1/{device}/hello"));
        assert!(rights.may_connect(&own, Some(&will(DEVICE))));
        for leaf in ["telemetry", &format!("state/{RUN}"), &format!("log/{RUN}/a")] {
            assert!(
                !rights.may_connect(&own, Some(&will_on(format!("regatta/v1/{DEVICE}/{leaf}")))),
                "{leaf}"
            );
        }
        assert!(!rights.may_connect(&own, Some(&will(OTHER))));
        let mut late = will(DEVICE);
        late.properties.will_delay_interval = Some(3_600);
        let mut large = will(DEVICE);
        large.properties.user_properties = vec![("x".to_owned(), "x".repeat(60_000))];
        for will in [late, large] {
            assert!(!rights.may_connect(&own, Some(&will)), "{:?}", will.properties);
        }
        assert!(!rights.may_connect(&format!("regatta-agent-{OTHER}"), None));
        assert!(!rights.may_connect("", None));
    }

    #[test]
    fn a_removed_device_has_no_right_left() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("db")).unwrap();
        let id: DeviceId = DEVICE.parse().unwrap();
        let admission = Arc::new(Admission::of(&store, false).unwrap());
        let rights = rights(Peer::Device(id.clone()), Arc::clone(&admission));
        let (topic, filter) = (
            format!("regatta/v1/{DEVICE}/hello"),
            format!("regatta/v1/{DEVICE}/cmd/+"),
        );
        let may = || {
            [
                rights.may_connect(&format!("regatta-agent-{DEVICE}"), None),
                rights.may_publish(&topic),
                rights.may_subscribe(&filter),
            ]
        };
        assert_eq!(may(), [true; 3]);
        store.members().remove(&id, "boat", &[0; 32]).unwrap();
        admission.refresh(&store).unwrap();
        assert_eq!(may(), [false; 3]);
    }
}
