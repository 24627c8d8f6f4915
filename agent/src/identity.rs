//! The device's identity: an Ed25519 key on its disk, and the id, which is the key's fingerprint. It signs evidence,
//! requests and TLS handshakes. It does not decide who may connect.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use regatta_fsutil::atomic_file::AtomicFile;
use regatta_types::DeviceId;
use regatta_wire::{
    frame::FrameError,
    signed_report::SignedReport,
    topic::{Leaf, Topic},
};
use ring::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use rustls::pki_types::PrivatePkcs8KeyDer;

/// The key's file name in the state directory.
pub(crate) const KEY_FILE: &str = "device.key";

/// A device's key and id.
pub(crate) struct DeviceIdentity {
    key: Ed25519KeyPair,
    pkcs8: Vec<u8>,
    public_key: [u8; 32],
    id: DeviceId,
}

impl std::fmt::Debug for DeviceIdentity {
    /// Formats the id only, because the key is secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DeviceIdentity({})", self.id)
    }
}

/// Why the key cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IdentityError {
    /// The file cannot be read or written.
    #[error("the device's key {} cannot be {what}", .path.display())]
    File {
        /// The key file.
        path: PathBuf,
        /// `read` or `written`.
        what: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Other users can read the key file.
    #[error("the device's key {} can be read by others (mode {mode:o}); hint: run `chmod 600` on it, or delete it for a new \
             identity if somebody had access", .path.display())]
    Exposed {
        /// The key file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file is not an Ed25519 key.
    #[error("{} is not an Ed25519 key in PKCS #8; hint: restore it, or delete it for a new identity", .path.display())]
    Malformed {
        /// The key file.
        path: PathBuf,
    },
    /// The system provides no random numbers.
    #[error("the system has no random bytes for a new key")]
    Randomness,
}

impl DeviceIdentity {
    /// Reads the key at `path`. If the file does not exist, creates a key that only its owner can read.
    ///
    /// # Errors
    /// [`IdentityError`]. An existing key is never replaced.
    pub(crate) fn load_or_create(path: &Path) -> Result<Self, IdentityError> {
        let file = |what| {
            move |source| IdentityError::File {
                path: path.to_owned(),
                what,
                source,
            }
        };
        let pkcs8 = match fs::read(path) {
            Ok(pkcs8) => {
                let mode = fs::metadata(path).map_err(file("read"))?.permissions().mode() & 0o777;
                if mode & 0o077 != 0 {
                    return Err(IdentityError::Exposed {
                        path: path.to_owned(),
                        mode,
                    });
                }
                pkcs8
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
                    .map_err(|_| IdentityError::Randomness)?
                    .as_ref()
                    .to_vec();
                AtomicFile::new(path)
                    .mode(0o600)
                    .write(&pkcs8)
                    .map_err(file("written"))?;
                pkcs8
            }
            Err(e) => return Err(file("read")(e)),
        };
        let malformed = || IdentityError::Malformed {
            path: path.to_owned(),
        };
        let key = Ed25519KeyPair::from_pkcs8(&pkcs8).map_err(|_| malformed())?;
        let public_key: [u8; 32] = key.public_key().as_ref().try_into().map_err(|_| malformed())?;
        Ok(Self {
            key,
            pkcs8,
            public_key,
            id: DeviceId::of_public_key(&public_key),
        })
    }

    /// Returns the device's id.
    pub(crate) const fn id(&self) -> &DeviceId {
        &self.id
    }

    /// Returns the Ed25519 public key.
    pub(crate) const fn public_key(&self) -> [u8; 32] {
        self.public_key
    }

    /// Returns the private key, for TLS on this device.
    pub(crate) fn private_key(&self) -> PrivatePkcs8KeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.pkcs8.clone())
    }

    /// Returns the signature of `message`, 64 bytes.
    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.key.sign(message).as_ref().to_vec()
    }

    /// Returns a message of this device in its signed frame, to publish on `leaf`.
    ///
    /// # Errors
    /// [`FrameError::Length`] when the message is too large.
    pub(crate) fn sign_report(&self, leaf: &Leaf, message: &[u8]) -> Result<Vec<u8>, FrameError> {
        let topic = Topic {
            device: self.id.clone(),
            leaf: leaf.clone(),
        };
        let signature = self.key.sign(&SignedReport::statement(&topic, message));
        let mut report = SignedReport {
            public_key: self.public_key,
            signature: [0; 64],
            message,
        };
        report.signature.copy_from_slice(signature.as_ref());
        report.to_frame()
    }
}

#[cfg(test)]
mod tests {
    use regatta_fsutil::hash::sha256_hex;
    use ring::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    #[test]
    fn a_key_is_made_once_and_kept_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("device.key");
        let first = DeviceIdentity::load_or_create(&path).unwrap();
        let again = DeviceIdentity::load_or_create(&path).unwrap();
        assert_eq!(first.id(), again.id());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(sha256_hex(&first.public_key()).starts_with(first.id().as_str()));
        let signature = again.sign(b"evidence");
        let key = UnparsedPublicKey::new(&ED25519, first.public_key());
        assert!(key.verify(b"evidence", &signature).is_ok());
        assert!(key.verify(b"Evidence", &signature).is_err());
    }

    #[test]
    fn an_exposed_or_broken_key_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("device.key");
        AtomicFile::new(&path).mode(0o600).write(b"no key").unwrap();
        assert!(matches!(
            DeviceIdentity::load_or_create(&path),
            Err(IdentityError::Malformed { .. })
        ));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(
            DeviceIdentity::load_or_create(&path),
            Err(IdentityError::Exposed { mode: 0o644, .. })
        ));
        assert_eq!(fs::read(&path).unwrap(), b"no key");
    }
}
