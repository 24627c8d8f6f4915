//! The lab's keys: its authority, and the coordinator's own key. Made once by `regatta init`, readable by their owner
//! only, and read by everything that issues certificates, signs commands or opens TLS connections.
//!
//! ```text
//! keys/ca.key            the authority's private key: who has it can make devices
//! keys/ca.pem            the authority's certificate: what devices and brokers trust
//! keys/coordinator.key   the coordinator's private key: who has it can command devices
//! ```
//!
//! Certificates of the coordinator and of the embedded broker are issued anew at every start, so that none of them can run
//! out unnoticed and none lies on the disk. All keys are Ed25519.

mod authority;
mod private_key;
mod tls;

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

pub(crate) use authority::{Authority, COORDINATOR, Identity, IssueError, Issued};
use regatta_fsutil::{atomic_file::sync_directory, regular_file};
use regatta_types::{DeviceId, RunId};
use regatta_wire::signed_command::SignedCommand;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
pub(crate) use tls::{broker_server, client, enrolment_server, public_key_of};

const CA_KEY: &str = "ca.key";
const CA_CERTIFICATE: &str = "ca.pem";
const COORDINATOR_KEY: &str = "coordinator.key";

/// Keys that cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    /// A file cannot be read or written.
    #[error("cannot use {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Others may read it.
    #[error("{} can be read by others (mode {mode:o}): run `chmod 600` on it, and think about who may have read it", .path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Others may replace it.
    #[error("{} can be written by others (mode {mode:o}): run `chmod go-w` on it, and think about who may have written there", .path.display())]
    Writable {
        /// The file or directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It belongs to another user.
    #[error("{} belongs to the user with the number {owner}, who can change it: run `chown` on it, and think about what is in it", .path.display())]
    Foreign {
        /// The file or directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// The authority's two halves do not fit.
    #[error("{} is not the certificate of {CA_KEY}: restore both from one copy; devices trust the certificate that they enrolled with", .0.display())]
    Mismatched(
        /// The certificate.
        PathBuf,
    ),
    /// It holds something else than belongs there.
    #[error("{} holds no {what} in PEM: restore it from a copy", .path.display())]
    Malformed {
        /// What belongs there.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// No certificate could be made.
    #[error("no certificate could be made")]
    Issue(#[from] IssueError),
}

/// The lab's keys, loaded.
pub(crate) struct Keys {
    authority: Authority,
    coordinator_pem: String,
    coordinator: Ed25519KeyPair,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(..)")
    }
}

impl Keys {
    /// Makes a new lab's keys in `directory`, which must not hold any.
    ///
    /// # Errors
    /// [`KeysError`]. Keys that are there are never replaced.
    pub(crate) fn create(directory: &Path) -> Result<Self, KeysError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| KeysError::Io { path, source }
        };
        DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(directory)
            .map_err(io(directory))?;
        let (authority, key) = Authority::create()?;
        let coordinator = authority::new_key()?;
        for (name, text, mode) in [
            (CA_KEY, key.as_str(), 0o600),
            (CA_CERTIFICATE, authority.pem(), 0o644),
            (COORDINATOR_KEY, coordinator.as_str(), 0o600),
        ] {
            let path = directory.join(name);
            write_new(&path, text, mode).map_err(io(&path))?;
        }
        sync_directory(directory).map_err(io(directory))?;
        Self::load(directory)
    }

    /// Reads a lab's keys.
    ///
    /// # Errors
    /// [`KeysError`], also when others may read a private key.
    pub(crate) fn load(directory: &Path) -> Result<Self, KeysError> {
        // Who can rename the directory can put another in its place.
        if let Some(parent) = directory.parent() {
            check_writers(parent, 0o002)?;
        }
        check_writers(directory, 0o022)?;
        let malformed = |name: &str| KeysError::Malformed {
            what: if name == CA_CERTIFICATE {
                "certificate"
            } else {
                "Ed25519 key"
            },
            path: directory.join(name),
        };
        let key = read_private(&directory.join(CA_KEY))?;
        let path = directory.join(CA_CERTIFICATE);
        check_writers(&path, 0o022)?;
        let certificate = regular_file::read_text(&path).map_err(|source| KeysError::Io {
            path: path.clone(),
            source,
        })?;
        let authority = Authority::load(&certificate, &key).map_err(|error| match error {
            IssueError::Library(rcgen::Error::CouldNotParseCertificate) => malformed(CA_CERTIFICATE),
            _ => malformed(CA_KEY),
        })?;
        if public_key_of(authority.der()).as_ref() != Some(&authority.public_key()) {
            return Err(KeysError::Mismatched(path));
        }
        let coordinator_pem = read_private(&directory.join(COORDINATOR_KEY))?;
        let coordinator = private_key::private_key(&coordinator_pem)
            .ok()
            .and_then(|der| Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der()).ok())
            .ok_or_else(|| malformed(COORDINATOR_KEY))?;
        Ok(Self {
            authority,
            coordinator_pem,
            coordinator,
        })
    }

    /// The lab's authority.
    pub(crate) const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The coordinator's public key: what devices know it by.
    pub(crate) fn coordinator_public_key(&self) -> [u8; 32] {
        let mut key = [0; 32];
        key.copy_from_slice(self.coordinator.public_key().as_ref());
        key
    }

    /// The coordinator's identity towards a broker: a certificate of today over its key.
    ///
    /// # Errors
    /// When no certificate could be made.
    pub(crate) fn coordinator_identity(&self) -> Result<Identity, IssueError> {
        self.authority
            .coordinator(self.coordinator_public_key(), &self.coordinator_pem)
    }

    /// Signs a command's frame for one device and run.
    pub(crate) fn sign_command(
        &self,
        device: &DeviceId,
        run: RunId,
        number: u64,
        command: Vec<u8>,
    ) -> SignedCommand {
        let statement = SignedCommand::statement(device, run, number, &command);
        let signature = self.coordinator.sign(&statement).as_ref().to_vec();
        SignedCommand {
            number,
            command,
            signature,
        }
    }
}

/// Writes a file that must not be there yet, with its final mode from the first byte on.
pub(crate) fn write_new(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Expects a file or directory that only its owner can change, who is this user or root. `bits` are the rights that others may
/// not have. In a directory with the sticky bit others cannot replace what is not theirs.
fn check_writers(path: &Path, bits: u32) -> Result<(), KeysError> {
    // A relative workspace's parent is the present directory.
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let metadata = fs::metadata(path).map_err(|source| KeysError::Io {
        path: path.to_owned(),
        source,
    })?;
    let mode = metadata.permissions().mode() & 0o7777;
    let is_sticky = metadata.is_dir() && mode & 0o1000 != 0;
    if mode & bits != 0 && !is_sticky {
        return Err(KeysError::Writable {
            path: path.to_owned(),
            mode,
        });
    }
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    // root serves whose workspace it likes.
    if owner != user && owner != 0 && user != 0 {
        return Err(KeysError::Foreign {
            path: path.to_owned(),
            owner,
        });
    }
    Ok(())
}

fn read_private(path: &Path) -> Result<String, KeysError> {
    let io = |source| KeysError::Io {
        path: path.to_owned(),
        source,
    };
    let mode = fs::metadata(path).map_err(io)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeysError::Exposed {
            path: path.to_owned(),
            mode,
        });
    }
    check_writers(path, 0o022)?;
    regular_file::read_text(path).map_err(io)
}

#[cfg(test)]
mod tests;
