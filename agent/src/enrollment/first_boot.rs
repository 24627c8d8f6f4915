//! Enrollment at first boot. `regatta device image` stores a token in the state directory before a board is flashed. The
//! daemon uses it when the coordinator can be reached, and then deletes the file. A refused token is renamed and kept
//! for inspection, because another attempt would be refused too.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use regatta_fsutil::regular_file;
use regatta_wire::enrollment::EnrollmentToken;

use super::command::{Renaming, use_token};
use crate::identity::{DeviceIdentity, KEY_FILE};

/// The token's file name in the state directory.
pub(crate) const TOKEN_FILE: &str = "enrollment-token";
/// The file name of a refused token.
const REFUSED_FILE: &str = "enrollment-token.refused";
/// Pause between two attempts while the coordinator cannot be reached or cannot answer.
const PAUSE: Duration = Duration::from_secs(5);

/// Attempts to use a stored token.
#[derive(Debug)]
pub(crate) struct FirstBoot {
    state_dir: PathBuf,
    next: Option<Instant>,
    last_error: Option<String>,
}

impl FirstBoot {
    /// Returns the attempts for a state directory. The first one is due immediately.
    pub(crate) fn new(state_dir: &Path) -> Self {
        Self {
            state_dir: state_dir.to_owned(),
            next: None,
            last_error: None,
        }
    }

    /// Uses the token if there is one and an attempt is due. Blocks until the coordinator answers or its timeout of 10
    /// s without a response expires.
    pub(crate) fn attempt(&mut self) {
        if self.next.is_some_and(|next| Instant::now() < next) {
            return;
        }
        let path = self.state_dir.join(TOKEN_FILE);
        let text = match regular_file::read_text(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return,
            Err(e) => return self.say(format!("the token in {} cannot be read: {e}", path.display())),
        };
        self.next = Some(Instant::now() + PAUSE);
        match self.enroll(&text) {
            Ok(done) => {
                tracing::info!("{done}");
                // A used token is worthless. The daemon no longer looks for it.
                let _ = fs::remove_file(&path);
            }
            Err(Attempt::Refused(why)) => {
                tracing::error!("{why}; the token is kept as {REFUSED_FILE}");
                // If the rename fails, the next attempt gives the same refusal.
                let _ = fs::rename(&path, self.state_dir.join(REFUSED_FILE));
            }
            Err(Attempt::NotYet(why)) => self.say(why),
        }
    }

    fn enroll(&self, text: &str) -> Result<String, Attempt> {
        let refused = |why: &dyn std::fmt::Display| {
            Attempt::Refused(format!("enrollment with the waiting token failed: {why}"))
        };
        let not_yet = |error: anyhow::Error| Attempt::NotYet(format!("{error:#}; trying again"));
        let token: EnrollmentToken = text.parse().map_err(|e| refused(&e))?;
        let identity = DeviceIdentity::load_or_create(&self.state_dir.join(KEY_FILE))
            .map_err(|error| not_yet(error.into()))?;
        match use_token(token, &self.state_dir, &identity, Renaming::Refused) {
            Ok(enrollment) => Ok(format!("enrolled as {} ({})", enrollment.name, identity.id())),
            Err(error) if error.is_passing() => Err(not_yet(error.into())),
            Err(error) => Err(refused(&error)),
        }
    }

    /// Logs a message, but not twice in a row.
    fn say(&mut self, why: String) {
        if self.last_error.as_ref() != Some(&why) {
            tracing::warn!("{why}");
            self.last_error = Some(why);
        }
    }
}

/// Why an attempt did not enroll the device.
enum Attempt {
    /// The coordinator cannot be reached or cannot answer yet, or this device's disk is full.
    NotYet(String),
    /// The token will never work.
    Refused(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_token_file_is_set_aside_once() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(TOKEN_FILE), "no token").unwrap();
        FirstBoot::new(dir.path()).attempt();
        assert!(!dir.path().join(TOKEN_FILE).exists());
        assert_eq!(fs::read(dir.path().join(REFUSED_FILE)).unwrap(), b"no token");
    }

    #[test]
    fn a_coordinator_that_is_not_there_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let token = format!(
            "regatta-enroll://127.0.0.1:{port}/{}/{}",
            "ab".repeat(32),
            "cd".repeat(16)
        );
        fs::write(dir.path().join(TOKEN_FILE), &token).unwrap();
        let mut first_boot = FirstBoot::new(dir.path());
        first_boot.attempt();
        assert_eq!(fs::read_to_string(dir.path().join(TOKEN_FILE)).unwrap(), token);
    }
}
