//! Compares a board's identity with the device that the store has under its name. A different device is refused before anything on the
//! board is changed.

use regatta_fsutil::hash::hex;
use regatta_ssh::{Board, LinkLost, Root, Script};
use regatta_text::escape_start;
use regatta_types::DeviceId;
use serde::Deserialize;

use super::board_installation::Places;
use regatta_lab_store::{self as store, Store};

/// The output of `regatta-agent identity`.
#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The device's id. `None` before its first start.
    #[serde(default)]
    pub device: Option<DeviceId>,
    /// The lab that the device is enrolled in.
    #[serde(default)]
    pub enrollment: Option<EnrolledIn>,
    /// Whether the board has a key but no agent that can report its id.
    #[serde(default)]
    pub unanswered: bool,
}

/// The lab that a board is enrolled in.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
pub(crate) struct EnrolledIn {
    /// Its name in that lab.
    pub name: String,
    /// That lab's broker.
    pub broker: String,
    /// SHA-256 of that lab's authority, in hexadecimal.
    pub authority_sha256: String,
}

impl Identity {
    /// Queries the board's identity. A board without a working agent has an empty one.
    ///
    /// # Errors
    /// Returns [`LinkLost`].
    pub(crate) fn of(board: &dyn Board, root: Option<&Root>, places: &Places) -> Result<Self, LinkLost> {
        let script = Script {
            doing: "asking who it is",
            text: include_str!("scripts/identity.sh"),
            words: &[&places.program, &places.config, &places.state, places.owner],
        };
        let output = script.run_as(root, board, &mut std::io::empty())?;
        Ok(serde_json::from_str(&output.out).unwrap_or_default())
    }
}

/// The reason why a board is not deployed to.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The name belongs to a device with another key.
    #[error("{name} is {known}, and this board is {}: it was set up again, or is another board", or_nobody(.found))]
    Changed {
        name: String,
        /// The id in the store.
        known: DeviceId,
        /// The board's id. `None` without a key.
        found: Option<DeviceId>,
    },
    /// The board is in the lab under another name.
    #[error("this board is {device} and already called {known}")]
    OtherName {
        device: DeviceId,
        /// Its name in the lab.
        known: String,
    },
    /// The board was removed from the lab.
    #[error("this board was removed as {known} ({device}), and its key stays refused")]
    Removed {
        device: DeviceId,
        /// Its name at that time.
        known: String,
    },
    /// The board belongs to another lab.
    #[error("this board is enrolled in another lab, as {name} with the broker {broker}")]
    OtherLab {
        /// Its name in that lab.
        name: String,
        /// That lab's broker.
        broker: String,
    },
    /// The store failed.
    #[error("the enrolled devices cannot be read from the store")]
    Store(#[from] store::StoreError),
}

fn or_nobody(found: &Option<DeviceId>) -> String {
    found
        .as_ref()
        .map_or_else(|| "nobody yet".to_owned(), ToString::to_string)
}

impl IdentityError {
    /// Returns the hint for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Changed { name, .. } => Some(format!(
                "`regatta device remove {name}` frees the name, if the earlier device never returns"
            )),
            Self::OtherName { known, .. } => Some(format!(
                "deploy to it as {known}; `regatta device add NAME` here and `regatta-agent enroll --rename TOKEN` on it rename it"
            )),
            Self::Removed { .. } => Some(
                "`regatta device add NAME` here and `regatta-agent enroll --new-identity TOKEN` on it give it a new key; then deploy to NAME"
                    .to_owned(),
            ),
            Self::OtherLab { .. } => Some("--take-over enrolls it here".to_owned()),
            Self::Store(_) => None,
        }
    }
}

/// The enrollment state of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnrollmentState {
    /// The board is enrolled in this lab under this name, and can connect.
    Enrolled,
    /// The board must be enrolled. A device that is already a member keeps its id.
    ToEnroll,
    /// The agent must be repaired before it can report the state.
    Unanswered,
}

/// Determines a board's enrollment state. `authority` is this lab's fingerprint.
///
/// # Errors
/// Returns [`IdentityError`].
pub(crate) fn enrollment_state(
    store: &Store,
    name: &str,
    identity: &Identity,
    authority: &[u8; 32],
    take_over: bool,
) -> Result<EnrollmentState, IdentityError> {
    if identity.unanswered {
        return Ok(EnrollmentState::Unanswered);
    }
    let by_name = store
        .members()
        .all()?
        .into_iter()
        .find(|member| member.removed.is_none() && member.name == name);
    let is_ours = |lab: &EnrolledIn| lab.authority_sha256 == hex(authority);
    if let Some(device) = &identity.device
        && let Some(member) = store.members().get(device)?
    {
        let device = device.clone();
        if member.removed.is_some() {
            return Err(IdentityError::Removed {
                device,
                known: member.name,
            });
        }
        if member.name != name {
            return Err(IdentityError::OtherName {
                device,
                known: member.name,
            });
        }
        return match &identity.enrollment {
            Some(lab) if is_ours(lab) => Ok(EnrollmentState::Enrolled),
            Some(lab) if !take_over => Err(other_lab(lab)),
            _ => Ok(EnrollmentState::ToEnroll),
        };
    }
    if let Some(member) = by_name {
        return Err(IdentityError::Changed {
            name: name.to_owned(),
            known: member.device,
            found: identity.device.clone(),
        });
    }
    match &identity.enrollment {
        Some(lab) if !is_ours(lab) && !take_over => Err(other_lab(lab)),
        _ => Ok(EnrollmentState::ToEnroll),
    }
}

fn other_lab(lab: &EnrolledIn) -> IdentityError {
    IdentityError::OtherLab {
        name: escape_start(&lab.name, 80),
        broker: escape_start(&lab.broker, 80),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_lab_store::{NewCertificate, Renaming};

    const OURS: [u8; 32] = [7; 32];

    fn id(byte: u8) -> DeviceId {
        hex(&[byte; 16]).parse().unwrap()
    }

    fn board(device: Option<u8>, authority: Option<[u8; 32]>) -> Identity {
        Identity {
            device: device.map(id),
            enrollment: authority.map(|authority| EnrolledIn {
                name: "boat".to_owned(),
                broker: "mqtts://lab:8883".to_owned(),
                authority_sha256: hex(&authority),
            }),
            unanswered: false,
        }
    }

    fn decision(store: &Store, name: &str, identity: &Identity, take_over: bool) -> String {
        match enrollment_state(store, name, identity, &OURS, take_over) {
            Ok(enrollment_state) => format!("{enrollment_state:?}"),
            Err(error) => format!("{error}"),
        }
    }

    #[test]
    fn each_board_is_distinguished() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("db")).unwrap();
        for (device, name) in [(1, "boat"), (2, "ship"), (3, "wreck")] {
            store.enrollment_tokens().add(name, name, "9999").unwrap();
            let certificate = NewCertificate {
                serial: &[device],
                not_after: "9999",
            };
            store
                .members()
                .enroll(name, &id(device), &[device; 32], certificate, Renaming::Refused)
                .unwrap();
        }
        store.members().remove(&id(3), "wreck", &[3; 32]).unwrap();
        let decisions = [
            decision(&store, "raft", &board(None, None), false),
            decision(&store, "raft", &board(Some(9), None), false),
            decision(&store, "boat", &board(Some(1), Some(OURS)), false),
            decision(&store, "boat", &board(Some(1), None), false),
            decision(&store, "boat", &board(Some(9), None), false),
            decision(&store, "boat", &board(None, None), false),
            decision(&store, "raft", &board(Some(2), Some(OURS)), false),
            decision(&store, "raft", &board(Some(3), None), false),
            decision(&store, "raft", &board(Some(9), Some([8; 32])), false),
            decision(&store, "raft", &board(Some(9), Some([8; 32])), true),
            decision(&store, "wreck", &board(Some(9), None), false),
        ];
        insta::assert_snapshot!(decisions.join("\n"), @r"
        ToEnroll
        ToEnroll
        Enrolled
        ToEnroll
        boat is 01010101010101010101010101010101, and this board is 09090909090909090909090909090909: it was set up again, or is another board
        boat is 01010101010101010101010101010101, and this board is nobody yet: it was set up again, or is another board
        this board is 02020202020202020202020202020202 and already called ship
        this board was removed as wreck (03030303030303030303030303030303), and its key stays refused
        this board is enrolled in another lab, as boat with the broker mqtts://lab:8883
        ToEnroll
        ToEnroll
        ");
    }
}
