//! Authentication of commands. An enrolled device accepts each command once, if its coordinator has signed it for this
//! device. The coordinator's key was pinned at enrollment, so the broker and its other clients cannot command the
//! device. This module does not interpret commands.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use regatta_fsutil::atomic_file::AtomicFile;
use regatta_types::{DeviceId, RunId};
use regatta_wire::{
    frame::{self, FrameError},
    message::{Command, Message as _},
    signed_command::SignedCommand,
};
use ring::signature::{ED25519, UnparsedPublicKey};

/// The file in the state directory that stores the newest command number.
const FILE: &str = "commands.number";

/// Verifies and opens commands.
#[derive(Debug)]
pub(crate) struct Trust {
    /// The coordinator's public key. `None` on a device that is not enrolled, which accepts all commands from its
    /// broker.
    coordinator: Option<[u8; 32]>,
    path: PathBuf,
    newest: u64,
}

/// Why a command is rejected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    /// The command is not signed.
    #[error("it is not signed, and this device is enrolled")]
    Unsigned,
    /// The coordinator did not sign it, or signed it for another device or run, or the command was modified.
    #[error("its signature is not the coordinator's for this device and run")]
    Forged,
    /// The command is a repetition, or older than one that was accepted.
    #[error("its number {number} is not above {newest}: it was sent again, or by another sender")]
    Repeated {
        /// The command's number.
        number: u64,
        /// The newest accepted number.
        newest: u64,
    },
    /// The signed envelope does not parse.
    #[error("it cannot be decoded")]
    Envelope(#[source] FrameError),
}

impl Trust {
    /// Loads the newest command number and pins the coordinator's key.
    ///
    /// # Errors
    /// When the file with the number cannot be read. Without the number, old commands would be accepted again.
    pub(crate) fn load(state_dir: &Path, coordinator: Option<[u8; 32]>) -> io::Result<Self> {
        let path = state_dir.join(FILE);
        let newest = match fs::read_to_string(&path) {
            Ok(text) => text.trim().parse().map_err(io::Error::other)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => 0,
            Err(e) => return Err(e),
        };
        Ok(Self {
            coordinator,
            path,
            newest,
        })
    }

    /// Verifies and opens a command. The inner result is an error if an authentic command does not parse.
    ///
    /// # Errors
    /// [`TrustError`]: the caller must drop the command without an answer.
    pub(crate) fn open(
        &mut self,
        device: &DeviceId,
        run: RunId,
        payload: &[u8],
    ) -> Result<Result<Command, FrameError>, TrustError> {
        if frame::stated_kind(payload) != Some(SignedCommand::KIND) {
            return match self.coordinator {
                Some(_) => Err(TrustError::Unsigned),
                None => Ok(Command::from_frame(payload)),
            };
        }
        let signed = SignedCommand::from_frame(payload).map_err(TrustError::Envelope)?;
        if let Some(coordinator) = &self.coordinator {
            let statement = SignedCommand::statement(device, run, signed.number, &signed.command);
            UnparsedPublicKey::new(&ED25519, coordinator)
                .verify(&statement, &signed.signature)
                .map_err(|_| TrustError::Forged)?;
            self.remember(signed.number)?;
        }
        Ok(Command::from_frame(&signed.command))
    }

    /// Returns the newest accepted number.
    pub(crate) const fn newest(&self) -> u64 {
        self.newest
    }

    /// Writes the number to disk before the command is executed. On a full disk it is only kept in memory. Otherwise the
    /// device would reject commands to abort or forget a run, and would stay full.
    fn remember(&mut self, number: u64) -> Result<(), TrustError> {
        if number <= self.newest {
            return Err(TrustError::Repeated {
                number,
                newest: self.newest,
            });
        }
        self.newest = number;
        if let Err(e) = AtomicFile::new(&self.path)
            .mode(0o600)
            .write(number.to_string().as_bytes())
        {
            tracing::error!("the number of the newest command cannot be kept: {e}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{Ed25519KeyPair, KeyPair as _};

    use super::*;

    const DEVICE: &str = "0123456789abcdef0123456789abcdef";

    struct Lab {
        dir: tempfile::TempDir,
        key: Ed25519KeyPair,
        device: DeviceId,
        run: RunId,
    }

    impl Lab {
        fn new() -> Self {
            Self {
                dir: tempfile::tempdir().unwrap(),
                key: Ed25519KeyPair::from_seed_unchecked(&[3; 32]).unwrap(),
                device: DEVICE.parse().unwrap(),
                run: RunId::now(),
            }
        }

        fn trust(&self) -> Trust {
            let key = self.key.public_key().as_ref().try_into().unwrap();
            Trust::load(self.dir.path(), Some(key)).unwrap()
        }

        fn signed(&self, number: u64, command: &Command) -> SignedCommand {
            let command = command.to_frame().unwrap();
            let statement = SignedCommand::statement(&self.device, self.run, number, &command);
            let signature = self.key.sign(&statement).as_ref().to_vec();
            SignedCommand {
                number,
                command,
                signature,
            }
        }
    }

    #[test]
    fn the_coordinators_commands_count_once_and_in_order_also_after_a_restart() {
        let lab = Lab::new();
        let mut trust = lab.trust();
        let frame = lab.signed(5, &Command::Forget).to_frame().unwrap();
        assert_eq!(
            trust.open(&lab.device, lab.run, &frame).unwrap(),
            Ok(Command::Forget)
        );
        let repeated = |trust: &mut Trust| trust.open(&lab.device, lab.run, &frame);
        assert!(matches!(repeated(&mut trust), Err(TrustError::Repeated { .. })));
        assert!(matches!(
            repeated(&mut lab.trust()),
            Err(TrustError::Repeated { .. })
        ));
        let older = lab.signed(4, &Command::Forget).to_frame().unwrap();
        assert!(matches!(
            trust.open(&lab.device, lab.run, &older),
            Err(TrustError::Repeated { .. })
        ));
        let newer = lab.signed(6, &Command::Forget).to_frame().unwrap();
        assert!(trust.open(&lab.device, lab.run, &newer).is_ok());
    }

    #[test]
    fn commands_signed_by_another_key_are_rejected() {
        let lab = Lab::new();
        let mut trust = lab.trust();
        let plain = Command::Forget.to_frame().unwrap();
        assert!(matches!(
            trust.open(&lab.device, lab.run, &plain),
            Err(TrustError::Unsigned)
        ));
        let good = lab.signed(9, &Command::Forget);
        let frame = good.to_frame().unwrap();
        let elsewhere: DeviceId = "f".repeat(32).parse().unwrap();
        assert!(matches!(
            trust.open(&elsewhere, lab.run, &frame),
            Err(TrustError::Forged)
        ));
        assert!(matches!(
            trust.open(&lab.device, RunId::now(), &frame),
            Err(TrustError::Forged)
        ));
        let renumbered = SignedCommand {
            number: 10,
            ..good.clone()
        };
        let renumbered = renumbered.to_frame().unwrap();
        assert!(matches!(
            trust.open(&lab.device, lab.run, &renumbered),
            Err(TrustError::Forged)
        ));
        let other_lab = Lab {
            key: Ed25519KeyPair::from_seed_unchecked(&[4; 32]).unwrap(),
            ..Lab::new()
        };
        let other_lab = SignedCommand {
            signature: other_lab.signed(9, &Command::Forget).signature,
            ..good
        };
        let other_lab = other_lab.to_frame().unwrap();
        assert!(matches!(
            trust.open(&lab.device, lab.run, &other_lab),
            Err(TrustError::Forged)
        ));
        // Every bit of a valid command matters. A flipped bit must not cause a panic or change the stored number.
        for bit in 0..frame.len() * 8 {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(trust.open(&lab.device, lab.run, &flipped).is_err(), "bit {bit}");
        }
        assert!(
            trust.open(&lab.device, lab.run, &frame).is_ok(),
            "the good one still counts"
        );
    }

    #[test]
    fn an_unenrolled_device_obeys_every_client_of_its_broker() {
        let lab = Lab::new();
        let mut trust = Trust::load(lab.dir.path(), None).unwrap();
        let plain = Command::Forget.to_frame().unwrap();
        let signed = lab.signed(1, &Command::Forget).to_frame().unwrap();
        for frame in [&plain, &signed, &signed] {
            assert_eq!(
                trust.open(&lab.device, lab.run, frame).unwrap(),
                Ok(Command::Forget)
            );
        }
    }
}
