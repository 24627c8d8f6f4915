//! The fleet: devices' descriptions of themselves, and their effect on runs. `admission` decides which devices are admitted.

mod admission;
mod engines;
mod inventory;
mod sessions;

pub use admission::{Admission, follow};
pub use engines::{
    default_engine, default_engine_obstacles, engine_obstacle, health_check_engine, unavailable_engines,
};
pub use inventory::Inventories;
use regatta_text::escape_start;
use regatta_types::DeviceId;
use regatta_wire::message::Hello;
pub use sessions::{IdentityUse, Sessions};

use regatta_lab_store::{self as store, Store};

/// The maximum length of a device's label in characters.
const LABEL: usize = 64;

/// An error in the identity of a hello.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The hello is on another device's topic.
    #[error("it calls itself {0}")]
    OtherTopic(DeviceId),
    /// The id is not the fingerprint of the key.
    #[error("its id is not the fingerprint of its key")]
    Fingerprint,
}

/// Checks that a hello's device id matches its topic and its key.
///
/// # Errors
/// Returns [`IdentityError`] when the hello contradicts itself or its topic.
pub fn check_identity(topic: &DeviceId, hello: &Hello) -> Result<(), IdentityError> {
    if hello.device != *topic {
        return Err(IdentityError::OtherTopic(hello.device.clone()));
    }
    if DeviceId::of_public_key(&hello.public_key) != hello.device {
        return Err(IdentityError::Fingerprint);
    }
    Ok(())
}

/// Stores a device's hello.
///
/// # Errors
/// Returns an error when the store fails.
pub fn take_hello(store: &Store, hello: &Hello, retained: bool) -> store::Result<()> {
    // An enrolled device has the name of its token. The name in its hello could be another device's.
    let name = store.members().get(&hello.device)?.map(|member| member.name);
    let hello = &Hello {
        name: name.unwrap_or_else(|| escape_start(&hello.name, LABEL)),
        agent: escape_start(&hello.agent, LABEL),
        ..hello.clone()
    };
    let was_online = store
        .devices()
        .get(&hello.device)?
        .is_some_and(|device| device.online);
    match (was_online, hello.online) {
        (false, true) => {
            tracing::info!(device = %hello.device, agent = %hello.agent, "{} connected", hello.name)
        }
        (true, false) => tracing::info!(device = %hello.device, "{} disconnected", hello.name),
        _ => {}
    }
    store.all_or_nothing(|store| {
        if !hello.online {
            return if store.devices().get(&hello.device)?.is_some() {
                store.devices().mark_offline(&hello.device)
            } else {
                store.devices().record_hello(hello)
            };
        }
        store.devices().record_hello(hello)?;
        store.devices().clear_other_version(&hello.device)?;
        if retained {
            return Ok(());
        }
        for run in &hello.runs {
            // The device still has the run, so a sent `Forget` was lost. The inventory reports the same for all of its runs.
            store.runs().clear_sent_marks(&hello.device, *run, true)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_lab_store::{Entry, NewCertificate, Renaming};

    fn hello(public_key: [u8; 32]) -> Hello {
        Hello {
            device: DeviceId::of_public_key(&public_key),
            name: "boat".to_owned(),
            public_key,
            online: true,
            agent: "0.1.0".to_owned(),
            engines: Vec::new(),
            facts_json: b"{}".to_vec(),
            runs: Vec::new(),
        }
    }

    #[test]
    fn an_enrolled_device_keeps_its_enrolled_name() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("db")).unwrap();
        let hello = hello([7; 32]);
        let certificate = NewCertificate {
            serial: &[1],
            not_after: "2100-01-01T00:00:00Z",
        };
        store
            .enrollment_tokens()
            .add("hash", "boat-3", "2100-01-01T00:00:00Z")
            .unwrap();
        let entry = store
            .members()
            .enroll(
                "hash",
                &hello.device,
                &hello.public_key,
                certificate,
                Renaming::Refused,
            )
            .unwrap();
        assert_eq!(entry, Entry::Granted("boat-3".to_owned()));
        let impostor = Hello {
            name: "boat-1".to_owned(),
            ..hello.clone()
        };
        take_hello(&store, &impostor, false).unwrap();
        assert_eq!(
            store.devices().get(&hello.device).unwrap().unwrap().name,
            "boat-3"
        );
    }

    #[test]
    fn an_id_is_the_fingerprint_of_its_key() {
        let honest = hello([7; 32]);
        assert_eq!(check_identity(&honest.device, &honest), Ok(()));
        let other = hello([8; 32]);
        assert!(matches!(
            check_identity(&honest.device, &other),
            Err(IdentityError::OtherTopic(_))
        ));
        let forged = Hello {
            public_key: [8; 32],
            ..honest
        };
        assert_eq!(
            check_identity(&forged.device.clone(), &forged),
            Err(IdentityError::Fingerprint)
        );
    }
}
