//! Parses the file of `--hosts`: `NAME USER@HOST` on every line, or TOML for boards with more options.
//!
//! ```toml
//! [[device]]
//! name = "boat-1"
//! address = "nvidia@10.0.0.5:2222"
//! identity = "keys/boat-1"      # may be left out
//! jump = "me@gate"              # likewise
//! ```

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use regatta_fsutil::regular_file;
use regatta_ssh::Destination;
use serde::Deserialize;

use crate::exit::Failure;

/// One board of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    /// The device's name.
    pub(super) name: String,
    /// The board's address and login.
    pub(super) destination: Destination,
    /// The key file.
    pub(super) identity: Option<PathBuf>,
    /// The jump host.
    pub(super) jump: Option<Destination>,
}

impl Host {
    pub(super) const fn new(name: String, destination: Destination) -> Self {
        Self {
            name,
            destination,
            identity: None,
            jump: None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    device: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    address: String,
    identity: Option<PathBuf>,
    jump: Option<String>,
}

/// Reads the file.
///
/// # Errors
/// Returns an error with the line for an invalid file, and an error for a duplicate name or an empty file.
pub(super) fn read(path: &Path) -> Result<Vec<Host>, Failure> {
    let text = regular_file::read_text(path)
        .with_context(|| format!("{} cannot be read", path.display()))
        .map_err(Failure::usage)?;
    let hosts = if path.extension().is_some_and(|extension| extension == "toml") {
        from_toml(&text, path.parent().unwrap_or(Path::new("")))
    } else {
        from_lines(&text)
    };
    let hosts = hosts
        .with_context(|| format!("{} is invalid", path.display()))
        .map_err(Failure::usage)?;
    let mut names = BTreeSet::new();
    if let Some(twice) = hosts.iter().find(|host| !names.insert(host.name.as_str())) {
        let name = &twice.name;
        return Err(Failure::misuse(format!(
            "{} names `{name}` twice",
            path.display()
        )));
    }
    if hosts.is_empty() {
        return Err(Failure::misuse(format!("{} names no board", path.display())));
    }
    Ok(hosts)
}

fn from_lines(text: &str) -> anyhow::Result<Vec<Host>> {
    let mut hosts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, destination] = words.as_slice() else {
            anyhow::bail!("line {} is not written NAME USER@HOST", number + 1);
        };
        let destination = destination
            .parse()
            .with_context(|| format!("line {}", number + 1))?;
        hosts.push(Host::new((*name).to_owned(), destination));
    }
    Ok(hosts)
}

fn from_toml(text: &str, base: &Path) -> anyhow::Result<Vec<Host>> {
    let file: File = toml::from_str(text)?;
    let host = |entry: Entry| {
        Ok(Host {
            destination: entry.address.parse().with_context(|| entry.name.clone())?,
            jump: entry
                .jump
                .map(|jump| jump.parse())
                .transpose()
                .with_context(|| entry.name.clone())?,
            identity: entry.identity.map(|identity| base.join(identity)),
            name: entry.name,
        })
    };
    file.device.into_iter().map(host).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let lines = "# the fleet\nboat-1 nvidia@10.0.0.5:2222  # left\n\nboat-2 orin-2\n";
        let toml = "[[device]]\nname = 'boat-1'\naddress = 'nvidia@10.0.0.5:2222'\n[[device]]\nname = 'boat-2'\naddress = 'orin-2'\n";
        assert_eq!(
            from_lines(lines).unwrap(),
            from_toml(toml, Path::new("")).unwrap()
        );
        let more = "[[device]]\nname = 'a'\naddress = 'b'\nidentity = 'key'\njump = 'me@gate'\n";
        let host = from_toml(more, Path::new("/lab")).unwrap().remove(0);
        assert_eq!(host.identity.unwrap(), Path::new("/lab/key"));
        assert_eq!(host.jump.unwrap().host, "gate");
    }

    #[test]
    fn complaints_name_the_place() {
        let dir = tempfile::tempdir().unwrap();
        let error_text = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            let printed = read(&path).unwrap_err().to_string();
            printed.replace(&format!("{}/", dir.path().display()), "")
        };
        let printed = [
            error_text("hosts", "boat-1\n"),
            error_text("hosts", "a b\nboat-1 user@\n"),
            error_text("hosts", "a b\na c\n"),
            error_text("hosts", "# nobody\n"),
            error_text("hosts.toml", "[[device]]\nname = 'a'\n"),
        ];
        insta::assert_snapshot!(printed.join("\n"));
    }
}
