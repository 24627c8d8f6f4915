//! Checks host keys against OpenSSH's `known_hosts` files, with plain or hashed names. A changed key is refused. The user decides on an
//! unknown one.

use std::{
    env, fs, io,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD},
};
use regatta_fsutil::regular_file::{self, MAX_TEXT};
use ring::hmac;
use sha2::{Digest as _, Sha256};

use crate::config::is_like;

/// The system's file.
const SYSTEM: &str = "/etc/ssh/ssh_known_hosts";

/// A host key in its wire format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostKey {
    /// The key's bytes.
    pub(super) blob: Vec<u8>,
}

impl HostKey {
    /// Returns the key type as in `known_hosts`, for example `ssh-ed25519`: the first string of the blob.
    pub(super) fn kind(&self) -> String {
        let length = self.blob.first_chunk::<4>().map_or(0, |length| {
            usize::try_from(u32::from_be_bytes(*length)).unwrap_or(0)
        });
        let name = self
            .blob
            .get(4..4_usize.saturating_add(length))
            .unwrap_or_default();
        name.iter()
            .filter(|b| b.is_ascii_graphic())
            .map(|&b| char::from(b))
            .collect()
    }

    /// Returns the fingerprint in the format of `ssh-keygen -l`.
    pub(super) fn fingerprint(&self) -> String {
        format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(&self.blob)))
    }
}

/// The result of checking a host's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trust {
    /// The key is the known one.
    Known,
    /// No file has the host.
    Unknown,
    /// A file has another key for the host.
    Changed {
        /// `FILE:LINE`.
        place: String,
    },
    /// The key is marked `@revoked`.
    Revoked {
        /// `FILE:LINE`.
        place: String,
    },
}

/// The lines of all files.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownHosts {
    lines: Vec<Line>,
}

#[derive(Debug, Clone)]
struct Line {
    place: String,
    revoked: bool,
    names: String,
    kind: String,
    key: String,
}

impl KnownHosts {
    /// Reads the user's file and the system's. A missing file has no hosts.
    ///
    /// # Errors
    /// Returns an error when an existing file cannot be read, because a known host would then seem unknown.
    pub(super) fn read() -> io::Result<Self> {
        let mut known = Self::default();
        for path in user_file().into_iter().chain([PathBuf::from(SYSTEM)]) {
            match regular_file::read(&path, MAX_TEXT) {
                Ok(text) => known.add(&path, &String::from_utf8_lossy(&text)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(io::Error::new(
                        error.kind(),
                        format!("{}: {error}", path.display()),
                    ));
                }
            }
        }
        Ok(known)
    }

    fn add(&mut self, path: &Path, text: &str) {
        for (number, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace().peekable();
            let marker = words.next_if(|word| word.starts_with('@'));
            // libssh2 does not support host certificates.
            if marker == Some("@cert-authority") {
                continue;
            }
            if let (Some(names), Some(kind), Some(key)) = (words.next(), words.next(), words.next())
                && !names.starts_with('#')
            {
                self.lines.push(Line {
                    place: format!("{}:{}", path.display(), number + 1),
                    revoked: marker == Some("@revoked"),
                    names: names.to_owned(),
                    kind: kind.to_owned(),
                    key: key.to_owned(),
                });
            }
        }
    }

    /// Returns the key types that a host is known by. Only these are requested, so that another type does not look like a change.
    pub(super) fn kinds(&self, host: &str, port: u16) -> Vec<String> {
        let name = name_of(host, port);
        let mut kinds: Vec<String> = self
            .lines
            .iter()
            .filter(|line| !line.revoked && line.is_for(&name))
            .map(|line| line.kind.clone())
            .collect();
        kinds.dedup();
        kinds
    }

    /// Checks a host's key.
    pub(super) fn judge(&self, host: &str, port: u16, key: &HostKey) -> Trust {
        let name = name_of(host, port);
        let encoded = STANDARD.encode(&key.blob);
        let of_host = || self.lines.iter().filter(|line| line.is_for(&name));
        if let Some(line) = self.lines.iter().find(|line| line.revoked && line.key == encoded) {
            return Trust::Revoked {
                place: line.place.clone(),
            };
        }
        if of_host().any(|line| !line.revoked && line.key == encoded) {
            return Trust::Known;
        }
        let other = of_host().find(|line| !line.revoked);
        other.map_or(Trust::Unknown, |line| Trust::Changed {
            place: line.place.clone(),
        })
    }
}

impl Line {
    fn is_for(&self, name: &str) -> bool {
        if let Some(hashed) = self.names.strip_prefix("|1|") {
            return is_hash_of(hashed, name).unwrap_or(false);
        }
        let mut fits = false;
        for pattern in self.names.split(',') {
            match pattern.strip_prefix('!') {
                Some(pattern) if is_like(name.as_bytes(), pattern.as_bytes()) => return false,
                Some(_) => {}
                None => fits |= is_like(name.as_bytes(), pattern.as_bytes()),
            }
        }
        fits
    }
}

/// Matches `SALT|HASH`, both in base64: HMAC-SHA1 of the name with the salt, as in OpenSSH's hashed names.
fn is_hash_of(hashed: &str, name: &str) -> Option<bool> {
    let (salt, hash) = hashed.split_once('|')?;
    let salt = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &STANDARD.decode(salt).ok()?);
    Some(hmac::sign(&salt, name.as_bytes()).as_ref() == STANDARD.decode(hash).ok()?)
}

/// Returns the host's name in the files.
pub(super) fn name_of(host: &str, port: u16) -> String {
    let host = host.to_ascii_lowercase();
    if port == 22 {
        host
    } else {
        format!("[{host}]:{port}")
    }
}

fn user_file() -> Option<PathBuf> {
    Some(env::home_dir()?.join(".ssh/known_hosts"))
}

/// Adds a host to the user's file and returns the file's path.
///
/// # Errors
/// Returns an error when the user has no home directory or the file cannot be written.
pub(super) fn remember(host: &str, port: u16, key: &HostKey) -> io::Result<PathBuf> {
    let path = user_file().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "this user has no home"))?;
    if let Some(directory) = path.parent().filter(|directory| !directory.exists()) {
        fs::DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(directory)?;
    }
    let before = match regular_file::read(&path, MAX_TEXT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    let newline = if before.is_empty() || before.ends_with(b"\n") {
        ""
    } else {
        "\n"
    };
    let line = format!(
        "{newline}{} {} {}\n",
        name_of(host, port),
        key.kind(),
        STANDARD.encode(&key.blob)
    );
    let mut file = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&path)?;
    file.write_all(line.as_bytes())?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use regatta_test_requirements::{Requirement, skip};

    use super::*;

    fn key(line: &str) -> HostKey {
        let blob = STANDARD.decode(line.split_whitespace().nth(1).unwrap()).unwrap();
        HostKey { blob }
    }

    const ONE: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH8LmsM4ChOJ3kY6gMWUhMEzWFMXlqXLqCr9hy8eS7gE";
    const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

    fn known(text: &str) -> KnownHosts {
        let mut known = KnownHosts::default();
        known.add(Path::new("known_hosts"), text);
        known
    }

    #[test]
    fn host_key_is_bound_to_its_host() {
        let place = |line: u32| format!("known_hosts:{line}");
        let hosts = known(&format!(
            "# comment\norin,10.0.0.5 {ONE}\n[orin]:2222 {OTHER}\n*.lab,!bad.lab {ONE}\n@cert-authority * {ONE}\nbroken\n"
        ));
        assert_eq!(hosts.judge("orin", 22, &key(ONE)), Trust::Known);
        assert_eq!(hosts.judge("ORIN", 22, &key(ONE)), Trust::Known);
        assert_eq!(
            hosts.judge("orin", 22, &key(OTHER)),
            Trust::Changed { place: place(2) }
        );
        assert_eq!(hosts.judge("orin", 2222, &key(OTHER)), Trust::Known);
        assert_eq!(hosts.judge("orin", 2223, &key(ONE)), Trust::Unknown);
        assert_eq!(hosts.judge("a.lab", 22, &key(ONE)), Trust::Known);
        assert_eq!(hosts.judge("bad.lab", 22, &key(ONE)), Trust::Unknown);
        assert_eq!(hosts.kinds("orin", 22), ["ssh-ed25519"]);
        let revoked = known(&format!("orin {ONE}\n@revoked * {ONE}\n"));
        assert_eq!(
            revoked.judge("orin", 22, &key(ONE)),
            Trust::Revoked { place: place(2) }
        );
    }

    #[test]
    fn kinds_and_fingerprints_are_openssh_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(&path)
            .status();
        let Ok(true) = made.map(|status| status.success()) else {
            skip(
                Requirement::Package,
                "ssh-keygen is not installed (Debian: openssh-client)",
            );
            return;
        };
        let public = fs::read_to_string(path.with_extension("pub")).unwrap();
        let key = key(&public);
        let listed = Command::new("ssh-keygen").arg("-lf").arg(&path).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(
            listed.contains(&key.fingerprint()),
            "{listed} {}",
            key.fingerprint()
        );
        assert_eq!(key.kind(), "ssh-ed25519");
        // The same file with names hashed by OpenSSH.
        let file = dir.path().join("known_hosts");
        fs::write(&file, format!("orin {public}\n[orin]:2222 {public}\n")).unwrap();
        let hashed = Command::new("ssh-keygen").arg("-Hf").arg(&file).output().unwrap();
        assert!(hashed.status.success());
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("|1|"), "{text}");
        let hosts = known(&text);
        assert_eq!(hosts.judge("orin", 22, &key), Trust::Known);
        assert_eq!(hosts.judge("orin", 2222, &key), Trust::Known);
        assert_eq!(hosts.judge("boat", 22, &key), Trust::Unknown);
    }

    proptest::proptest! {
        #[test]
        fn any_file_and_any_key_are_judged(text in "(?s).{0,200}", blob: Vec<u8>) {
            let key = HostKey { blob };
            let _ = known(&text).judge("orin", 22, &key);
            let _ = (key.kind(), key.fingerprint());
        }
    }
}
