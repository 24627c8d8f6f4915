//! The files that let a new board join the lab at its first boot: the agent's package, its configuration, a token, and a unit that
//! installs them. They come as a tar for the root file system, and as cloud-init user data.
//!
//! The board's own dpkg installs the package at first boot. A flashed board and a deployed one are then equal and are upgraded in the
//! same way. The image does not need the lab's authority: the token has its fingerprint, and the enrollment delivers it.

use std::{fs, io};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::{Compression, write::GzEncoder};

use super::{package::Package, settings::Settings};

/// The directory of the files until they are installed.
const HERE: &str = "usr/lib/regatta-first-boot";
const UNIT: &str = "etc/systemd/system/regatta-first-boot.service";
const SERVICE_LINK: &str = "etc/systemd/system/multi-user.target.wants/regatta-first-boot.service";
const EXAMPLE: &str = include_str!("../../../agent/agent.example.toml");

/// The files for one board.
#[derive(Debug)]
pub struct Image {
    /// The device's name.
    name: String,
    /// Path without the leading slash, mode, and content of each file.
    files: Vec<(String, u32, Vec<u8>)>,
}

impl Image {
    /// Collects the files. `token` is for this board only.
    ///
    /// # Errors
    /// Returns an error when the package cannot be read.
    pub fn new(package: &Package, settings: &Settings, token: &str) -> io::Result<Self> {
        let config = settings.applied_to(EXAMPLE).replace(
            "\nstate_dir = \"state\"\n",
            "\nstate_dir = \"/var/lib/regatta\"\n",
        );
        let script = include_bytes!("first_boot/first-boot").to_vec();
        let unit = include_bytes!("first_boot/regatta-first-boot.service").to_vec();
        Ok(Self {
            name: settings.name.clone(),
            files: vec![
                (
                    format!("{HERE}/regatta-agent.deb"),
                    0o644,
                    fs::read(&package.path)?,
                ),
                (format!("{HERE}/agent.toml"), 0o644, config.into_bytes()),
                (format!("{HERE}/token"), 0o600, format!("{token}\n").into_bytes()),
                (format!("{HERE}/first-boot"), 0o755, script),
                (UNIT.to_owned(), 0o644, unit),
            ],
        })
    }

    /// Returns the overlay as a gzip-compressed tar. It has only Regatta's own files and directory, all owned by root, so that the modes
    /// of existing directories do not change.
    ///
    /// # Errors
    /// Returns no error in practice, because the archive is built in memory.
    pub fn overlay(&self) -> io::Result<Vec<u8>> {
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
        let mut directory = header(0o755, 0);
        directory.set_entry_type(tar::EntryType::Directory);
        archive.append_data(&mut directory, format!("{HERE}/"), io::empty())?;
        for (path, mode, bytes) in &self.files {
            archive.append_data(&mut header(*mode, bytes.len() as u64), path, bytes.as_slice())?;
        }
        let mut link = header(0o777, 0);
        link.set_entry_type(tar::EntryType::Symlink);
        archive.append_link(&mut link, SERVICE_LINK, "../regatta-first-boot.service")?;
        archive.into_inner()?.finish()
    }

    /// Returns cloud-init's `user-data`: the same files, and a command that starts the unit.
    pub fn user_data(&self) -> String {
        let mut text = String::from("#cloud-config\nwrite_files:\n");
        for (path, mode, bytes) in &self.files {
            text.push_str(&format!(
                "  - path: /{path}\n    owner: root:root\n    permissions: '{mode:04o}'\n    encoding: b64\n    content: {}\n",
                STANDARD.encode(bytes)
            ));
        }
        text.push_str("runcmd:\n  - [systemctl, enable, --now, --no-block, regatta-first-boot.service]\n");
        text
    }

    /// Returns cloud-init's `meta-data`, to store beside the user data on a medium labelled CIDATA. `instance` distinguishes this image
    /// from the previous one.
    pub fn meta_data(&self, instance: &str) -> String {
        format!(
            "instance-id: {}-{instance}\nlocal-hostname: {}\n",
            self.name, self.name
        )
    }
}

fn header(mode: u32, length: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_size(length);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}
