//! The lab's keys: its authority's key and the coordinator's own. `regatta init` creates them once, readable by their owner only. They
//! sign certificates and commands, and open TLS connections.
//!
//! ```text
//! keys/ca.key            the authority's private key: who has it can make devices
//! keys/ca.pem            the authority's certificate: what devices and brokers trust
//! keys/coordinator.key   the coordinator's private key: who has it can command devices
//! ```
//!
//! Certificates of the coordinator and of the embedded broker are issued at every start. They therefore cannot expire unnoticed, and none
//! is stored on disk. All keys are Ed25519; `page_authority` has the one that browsers need.

mod authority;
mod page_authority;
mod private_key;
mod tls;
mod validity;

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

pub use authority::{Authority, COORDINATOR, IssueError, Issued, TlsIdentity};
pub use page_authority::{PAGE_CERTIFICATE, PageAuthority};
use regatta_fsutil::{atomic_file::sync_directory, regular_file};
use regatta_types::{DeviceId, RunId};
use regatta_wire::signed_command::SignedCommand;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
pub use tls::{broker_server, client, enrollment_server, public_key_of};

const CA_KEY: &str = "ca.key";
const CA_CERTIFICATE: &str = "ca.pem";
const COORDINATOR_KEY: &str = "coordinator.key";

/// An error of the lab's keys.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// A file cannot be read or written.
    #[error("cannot use {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Other users can read a private key.
    #[error("{} can be read by others (mode {mode:o})", .path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Other users can replace a file.
    #[error("{} can be written by others (mode {mode:o})", .path.display())]
    Writable {
        /// The file or directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A file belongs to another user.
    #[error("{} belongs to the user with the id {owner}, who can change it", .path.display())]
    Foreign {
        /// The file or directory.
        path: PathBuf,
        owner: u32,
    },
    /// The authority's certificate and key do not match.
    #[error("{} is not the certificate of {CA_KEY}", .0.display())]
    Mismatched(
        /// The certificate.
        PathBuf,
    ),
    /// A file has other content than expected.
    #[error("{} has no {what} in PEM", .path.display())]
    Malformed {
        /// The expected content.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// A certificate cannot be issued.
    #[error("cannot create a certificate")]
    Issue(#[from] IssueError),
}

impl KeysError {
    /// Returns what a user can do about it.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Exposed { path, .. } => Some(format!(
                "run `chmod 600 {}`, and consider who may have read it",
                path.display()
            )),
            Self::Writable { path, .. } => Some(format!(
                "run `chmod go-w {}`, and consider who may have written there",
                path.display()
            )),
            Self::Foreign { path, .. } => Some(format!(
                "run `chown` on {}, and check its content",
                path.display()
            )),
            Self::Mismatched(_) => Some(
                "restore both from one copy; devices trust the certificate that they enrolled with"
                    .to_owned(),
            ),
            Self::Malformed { .. } => Some("restore it from a copy".to_owned()),
            Self::Io { .. } | Self::Issue(_) => None,
        }
    }
}

/// The lab's keys, loaded.
pub struct Keys {
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
    /// Creates a new lab's keys in `directory`, which must not have any.
    ///
    /// # Errors
    /// Returns [`KeysError`]. Existing keys are never replaced.
    pub fn create(directory: &Path) -> Result<Self, KeysError> {
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

    /// Loads a lab's keys.
    ///
    /// # Errors
    /// Returns [`KeysError`], also when other users can read a private key.
    pub fn load(directory: &Path) -> Result<Self, KeysError> {
        // A user who can rename the directory could replace it.
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

    /// Returns the lab's authority.
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Returns the coordinator's public key, which devices know.
    pub fn coordinator_public_key(&self) -> [u8; 32] {
        let mut key = [0; 32];
        key.copy_from_slice(self.coordinator.public_key().as_ref());
        key
    }

    /// Issues the coordinator's certificate for a broker, for its own key.
    ///
    /// # Errors
    /// Returns an error when the certificate cannot be issued.
    pub fn coordinator_identity(&self) -> Result<TlsIdentity, IssueError> {
        self.authority
            .coordinator(self.coordinator_public_key(), &self.coordinator_pem)
    }

    /// Signs a command's frame for one device and run.
    pub fn sign_command(
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

/// Writes a new file with its final mode from the first byte on. An existing file is an error.
pub fn write_new(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Checks that only the owner can change a file or directory, and that the owner is this user or root. `bits` are the rights that others
/// must not have. In a directory with the sticky bit, others cannot replace files that are not theirs.
fn check_writers(path: &Path, bits: u32) -> Result<(), KeysError> {
    // The parent of a relative workspace is the current directory.
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
    // root may serve any user's workspace.
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
