//! Reads the two package formats without dpkg: a Debian package's members and a gzip-compressed tar. [`super::package`] interprets them
//! for a board.

use std::{
    io::{self, Read},
    path::Path,
};

use flate2::read::GzDecoder;
use regatta_fsutil::{hash::sha256_hex, regular_file};

use super::install_method::InstallMethod;

/// The maximum size of a file in a package, in bytes. A larger one is not Regatta's.
const MAX_FILE: u64 = 256 << 20;

/// The content of a package.
pub(super) struct Contents {
    pub(super) way: InstallMethod,
    pub(super) architecture: String,
    pub(super) version: String,
    pub(super) unpacked: u64,
    pub(super) files: Vec<(String, String)>,
}

/// Reads the members of an `ar` archive: a header of 60 bytes, the body, and a padding byte after odd lengths.
pub(super) fn ar_members(path: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut file = regular_file::open(path)?;
    let mut magic = [0; 8];
    file.read_exact(&mut magic)?;
    let mut members = Vec::new();
    let mut header = [0; 60];
    while file.read_exact(&mut header).is_ok() {
        let text = |range: std::ops::Range<usize>| {
            String::from_utf8_lossy(header.get(range).unwrap_or_default())
                .trim()
                .trim_end_matches('/')
                .to_owned()
        };
        let length: u64 = text(48..58)
            .parse()
            .ok()
            .filter(|&length| length <= MAX_FILE)
            .ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a member of the package has no length",
                )
            })?;
        let mut body = Vec::new();
        (&mut file).take(length).read_to_end(&mut body)?;
        members.push((text(0..16), body));
        if length % 2 == 1 {
            (&mut file).take(1).read_to_end(&mut Vec::new())?;
        }
    }
    Ok(members)
}

/// Reads the regular files of a gzip-compressed tar.
fn files_of(compressed: impl Read) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    let mut archive = tar::Archive::new(GzDecoder::new(compressed));
    for entry in archive.entries()? {
        let entry = entry?;
        if entry.header().entry_type().is_file() {
            let path = entry
                .path()?
                .to_string_lossy()
                .trim_start_matches("./")
                .to_owned();
            let mut body = Vec::new();
            entry.take(MAX_FILE).read_to_end(&mut body)?;
            files.push((path, body));
        }
    }
    Ok(files)
}

/// Reads a Debian package. Returns `None` for another `ar` archive.
///
/// # Errors
/// Returns an error when reading or unpacking fails.
pub(super) fn debian(path: &Path) -> io::Result<Option<Contents>> {
    let members = ar_members(path)?;
    let member = |name: &str| {
        members
            .iter()
            .find(|(member, _)| member == name)
            .map(|(_, body)| body.as_slice())
    };
    let (Some(control), Some(data)) = (member("control.tar.gz"), member("data.tar.gz")) else {
        return Ok(None);
    };
    let control = files_of(control)?;
    let Some((_, fields)) = control.iter().find(|(name, _)| name == "control") else {
        return Ok(None);
    };
    let fields = String::from_utf8_lossy(fields).into_owned();
    let field = |name: &str| {
        fields
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
            .map(str::to_owned)
    };
    let (Some(package), Some(architecture), Some(version)) =
        (field("Package"), field("Architecture"), field("Version"))
    else {
        return Ok(None);
    };
    let data = files_of(data)?;
    // Minimal systems omit documentation, so it does not count.
    let files = data
        .iter()
        .filter(|(name, _)| !name.starts_with("usr/share/doc/"))
        .map(|(name, body)| (format!("/{name}"), sha256_hex(body)))
        .collect();
    Ok((package == "regatta-agent").then(|| Contents {
        way: InstallMethod::System,
        architecture,
        version,
        unpacked: data.iter().map(|(_, body)| body.len() as u64).sum(),
        files,
    }))
}

/// Reads the archive for one user. Returns `None` for another file.
///
/// # Errors
/// Returns an error when reading or unpacking fails.
pub(super) fn archive(path: &Path) -> io::Result<Option<Contents>> {
    let data = match files_of(regular_file::open(path)?) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
        data => data?,
    };
    // regatta-agent-VERSION-ARCHITECTURE/...
    let Some(name) = data.first().and_then(|(name, _)| name.split('/').next()) else {
        return Ok(None);
    };
    let Some((version, architecture)) = name
        .strip_prefix("regatta-agent-")
        .and_then(|rest| rest.rsplit_once('-'))
    else {
        return Ok(None);
    };
    // The agent, the shims beside it, and the unit. The rest is not installed, or belongs to the user afterwards.
    let place = |path: &str| match path.split_once('/')?.1 {
        "regatta-agent.service" => Some("~/.config/systemd/user/regatta-agent.service".to_owned()),
        inside => Some(format!("~/.local/bin/{}", inside.strip_prefix("bin/")?)),
    };
    let files = data
        .iter()
        .filter_map(|(path, body)| Some((place(path)?, sha256_hex(body))))
        .collect();
    Ok(Some(Contents {
        way: InstallMethod::User,
        architecture: architecture.to_owned(),
        version: version.to_owned(),
        unpacked: data.iter().map(|(_, body)| body.len() as u64).sum(),
        files,
    }))
}
