//! The directories of the quickstart: the coordinator's workspace and the device's directory, each with its own configuration. Both can
//! be used afterwards.

use std::{
    fs, io,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use crate::exit::Failure;
use regatta_fsutil::atomic_file::AtomicFile;
use regatta_lab_net::keys::Keys;
use regatta_lab_store::workspace::{CONFIG_FILE, Config, KEYS, NewConfig, Workspace};

/// The device's name.
pub(super) const DEVICE: &str = "quickstart";

/// The quickstart's directory.
pub(super) struct QuickstartDirectory {
    root: PathBuf,
    /// The addresses of the broker and of the enrollment listener.
    listen: [SocketAddr; 2],
}

impl QuickstartDirectory {
    /// Creates the directory, or reuses one of an earlier quickstart.
    ///
    /// # Errors
    /// Returns a usage failure when the directory has other content.
    pub(super) fn lay_out(root: &Path) -> Result<Self, Failure> {
        let place = Self {
            listen: free_addresses()?,
            root: root.to_owned(),
        };
        let entries = match fs::read_dir(&place.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(unusable(&place.root, error)),
            Ok(entries) => entries.count(),
        };
        let is_ours = place.workspace().join(CONFIG_FILE).exists() && place.agent_config().exists();
        if entries > 0 && !is_ours {
            return Err(
                Failure::misuse(format!("{} contains something else", place.root.display()))
                    .hint("name an empty or a new directory with --dir"),
            );
        }
        for directory in [place.device(), place.workspace()] {
            fs::create_dir_all(&directory).map_err(|error| unusable(&directory, error))?;
        }
        if !place.keys().exists() {
            Keys::create(&place.keys())?;
        }
        // The ports of an earlier quickstart may be in use now.
        AtomicFile::new(&place.workspace().join(CONFIG_FILE)).write(place.regatta_toml().as_bytes())?;
        AtomicFile::new(&place.agent_config()).write(place.agent_toml().as_bytes())?;
        Ok(place)
    }

    /// Returns the coordinator's workspace.
    pub(super) fn workspace(&self) -> PathBuf {
        self.root.join("coordinator")
    }

    /// Returns the directory of the rehearsal: tree, originals, package.
    pub(super) fn rehearsal(&self) -> PathBuf {
        self.root.join("rehearsal")
    }

    /// Returns the directory of the rehearsed power session.
    pub(super) fn power_rehearsal(&self) -> PathBuf {
        self.root.join("power-rehearsal")
    }

    fn keys(&self) -> PathBuf {
        self.workspace().join(KEYS)
    }

    /// Returns the path of the device's enrollment.
    pub(super) fn enrollment(&self) -> PathBuf {
        self.device().join("state").join("enrollment.json")
    }

    pub(super) fn open(&self) -> Result<Workspace, Failure> {
        Ok(Workspace::open(&self.workspace())?)
    }

    /// Returns the device's directory.
    pub(super) fn device(&self) -> PathBuf {
        self.root.join("device")
    }

    /// Returns the path of the agent's configuration.
    pub(super) fn agent_config(&self) -> PathBuf {
        self.device().join("agent.toml")
    }

    /// Returns the path of the agent's log.
    pub(super) fn agent_log(&self) -> PathBuf {
        self.device().join("agent.log")
    }

    /// Returns the device's directory of models and data.
    pub(super) fn device_scratch(&self) -> PathBuf {
        self.device().join("scratch")
    }

    /// Returns the directory of a run's files on the device.
    pub(super) fn device_files(&self, run: regatta_types::RunId) -> PathBuf {
        self.device()
            .join("state")
            .join("runs")
            .join(run.to_string())
            .join("files")
    }

    fn regatta_toml(&self) -> String {
        // The user's own scratch directory is not used.
        format!(
            "{}dashboard_listen = \"off\"\n\n# Labels for accuracy.\nscratch = \"scratch\"\n",
            Config::template(&NewConfig {
                external: None,
                listen: self.listen[0],
                enroll_listen: self.listen[1],
                // The device is on this machine and downloads no assets.
                assets_listen: SocketAddr::from(([127, 0, 0, 1], 0)),
                host: "127.0.0.1".to_owned(),
            })
        )
    }

    fn agent_toml(&self) -> String {
        format!(
            "# The device of a quickstart. Paths are relative to this file.\n\
             name = \"{DEVICE}\"\n\
             state_dir = \"state\"\n\
             scratch = \"scratch\"\n\
             broker = \"mqtts://{}\"\n\
             min_free_mib = 64\n",
            self.listen[0]
        )
    }
}

/// Returns two free loopback ports.
fn free_addresses() -> anyhow::Result<[SocketAddr; 2]> {
    // Both are bound at once, so that they differ.
    let bound = || TcpListener::bind(("127.0.0.1", 0));
    let addresses = bound().and_then(|first| {
        let second = bound()?;
        Ok([first.local_addr()?, second.local_addr()?])
    });
    addresses.context("cannot find free ports on 127.0.0.1")
}

fn unusable(directory: &Path, error: io::Error) -> Failure {
    let error = anyhow::Error::new(error).context(format!("cannot use {}", directory.display()));
    Failure::from(error).hint("name with --dir a directory that can be created and written")
}

#[cfg(test)]
mod tests {
    use regatta_types::ExitCode;

    use super::*;

    #[test]
    fn takes_up_its_own_directory_and_refuses_a_foreign_one() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("own");
        QuickstartDirectory::lay_out(&own).unwrap();
        QuickstartDirectory::lay_out(&own).unwrap();

        let foreign = dir.path().join("foreign");
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("thesis.tex"), "...").unwrap();
        let refused = QuickstartDirectory::lay_out(&foreign).err().unwrap();
        assert_eq!(refused.code(), ExitCode::Usage);
        assert_eq!(
            fs::read_dir(&foreign).unwrap().count(),
            1,
            "nothing was laid there"
        );
        let refused = QuickstartDirectory::lay_out(Path::new("/proc/regatta"))
            .err()
            .unwrap();
        assert_eq!(refused.code(), ExitCode::Failed);
        assert!(refused.to_string().contains("name with --dir"), "{refused}");
    }
}
