//! Whose commands count: in a lab with keys, those that its coordinator has signed for this device, each once. The key was
//! pinned when the device enrolled, so that no broker and nobody on it can command the device. What a command asks for is
//! not looked at here.

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

/// The file that holds the newest number, in the state directory.
const FILE: &str = "commands.number";

/// Opens commands.
#[derive(Debug)]
pub(crate) struct Trust {
    /// The coordinator's key; `None` on a device that is not enrolled, which obeys whoever reaches its broker.
    coordinator: Option<[u8; 32]>,
    path: PathBuf,
    newest: u64,
}

/// A command that is not obeyed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    /// Nobody has signed it.
    #[error("it is not signed, and this device is enrolled")]
    Unsigned,
    /// It was not signed by the coordinator, or not for this device and run, or was changed.
    #[error("its signature is not the coordinator's for this device and run")]
    Forged,
    /// It came before, or is older than one that came before.
    #[error("its number {number} is not above {newest}: it has been sent again, or by somebody else")]
    Repeated {
        /// The command's number.
        number: u64,
        /// The newest that was obeyed.
        newest: u64,
    },
    /// The signed command around it does not read.
    #[error("it does not read")]
    Envelope(#[source] FrameError),
}

impl Trust {
    /// Trusts this coordinator, and remembers what it has said before.
    ///
    /// # Errors
    /// When the file of the newest number cannot be read: without it, old commands would count again.
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

    /// Opens a command. The inner result is for commands of the coordinator that this agent cannot read.
    ///
    /// # Errors
    /// [`TrustError`]: it is to be dropped, and nobody is owed an answer.
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

    /// The newest number that was obeyed.
    pub(crate) const fn newest(&self) -> u64 {
        self.newest
    }

    /// Keeps a number on disk before the command is obeyed. On a full disk it is kept in memory: a device that cannot be
    /// told to end or forget a run would stay full.
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
    fn nobody_elses_command_counts() {
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
        let stranger = Lab {
            key: Ed25519KeyPair::from_seed_unchecked(&[4; 32]).unwrap(),
            ..Lab::new()
        };
        let stranger = SignedCommand {
            signature: stranger.signed(9, &Command::Forget).signature,
            ..good
        };
        let stranger = stranger.to_frame().unwrap();
        assert!(matches!(
            trust.open(&lab.device, lab.run, &stranger),
            Err(TrustError::Forged)
        ));
        // Every bit of a good one matters, and nothing that is flipped makes the device panic or forget its place.
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
    fn a_device_that_is_not_enrolled_obeys_whoever_reaches_its_broker() {
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
