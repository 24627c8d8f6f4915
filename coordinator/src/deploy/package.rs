//! The agent's two packages as `cross/package.sh` makes them, read without dpkg: for which processor, which version, and the
//! SHA-256 that each installed file is to have. That is how a board is known to have the package already.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use flate2::read::GzDecoder;

use crate::hex::{hex, sha256, sha256_of_file};

/// Nothing in a package of ours is larger; what claims to be is none.
const LARGEST_FILE: u64 = 256 << 20;

/// A package that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PackageError {
    /// It does not read.
    #[error("the package {} cannot be read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is something else.
    #[error("{} is no package of the agent: {what}", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is missing.
        what: &'static str,
    },
}

/// How a package is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// The Debian package, as root.
    System,
    /// The archive, for one user.
    User,
}

/// One package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    /// Where it lies here.
    pub(crate) path: PathBuf,
    /// How it is installed.
    pub(crate) way: Way,
    /// Debian's name for the processor.
    pub(crate) architecture: String,
    /// Its version.
    pub(crate) version: String,
    /// Bytes of the package.
    pub(crate) length: u64,
    /// SHA-256 of the package, hexadecimal.
    pub(crate) sha256: String,
    /// Bytes of what is in it.
    pub(crate) unpacked: u64,
    /// Path on the board (`~/` is the user's home) and SHA-256 of each file that makes a difference.
    pub(crate) files: Vec<(String, String)>,
}

impl Package {
    /// Reads a package.
    ///
    /// # Errors
    /// [`PackageError`].
    pub(crate) fn open(path: &Path) -> Result<Self, PackageError> {
        let unreadable = |source| PackageError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let foreign = |what| PackageError::Foreign {
            path: path.to_owned(),
            what,
        };
        let (length, hash) = sha256_of_file(path).map_err(unreadable)?;
        let mut magic = [0; 8];
        let read = File::open(path)
            .and_then(|mut file| file.read(&mut magic))
            .map_err(unreadable)?;
        let contents = if magic.get(..read) == Some(b"!<arch>\n") {
            debian(path).map_err(unreadable)?
        } else {
            archive(path).map_err(unreadable)?
        };
        let Contents {
            way,
            architecture,
            version,
            unpacked,
            files,
        } = contents
            .ok_or_else(|| foreign("it is neither the Debian package nor the archive of cross/package.sh"))?;
        if !files.iter().any(|(path, _)| path.ends_with("bin/regatta-agent")) {
            return Err(foreign("there is no regatta-agent in it"));
        }
        Ok(Self {
            path: path.to_owned(),
            way,
            architecture,
            version,
            length,
            sha256: hex(&hash),
            unpacked,
            files,
        })
    }

    /// Every package in a directory, the newest version of each kind and processor.
    ///
    /// # Errors
    /// When the directory or a package in it cannot be read.
    pub(crate) fn all_in(directory: &Path) -> Result<Vec<Self>, PackageError> {
        let unreadable = |source| PackageError::Unreadable {
            path: directory.to_owned(),
            source,
        };
        let mut packages: Vec<Self> = Vec::new();
        for entry in fs::read_dir(directory).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("regatta-agent") && (name.ends_with(".deb") || name.ends_with(".tar.gz")) {
                packages.push(Self::open(&path)?);
            }
        }
        packages.sort_by_key(|package| {
            (
                package.way,
                package.architecture.clone(),
                std::cmp::Reverse(numbers(&package.version)),
            )
        });
        packages.dedup_by(|later, first| later.way == first.way && later.architecture == first.architecture);
        Ok(packages)
    }

    /// The name that its copy on the board gets: chosen by us, whatever the file is called here.
    pub(crate) const fn copy_name(way: Way) -> &'static str {
        match way {
            Way::System => "regatta-agent.deb",
            Way::User => "regatta-agent.tar.gz",
        }
    }
}

/// The numbers in a version, to order versions by.
fn numbers(version: &str) -> Vec<u64> {
    version
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|part| part.parse().ok())
        .collect()
}

struct Contents {
    way: Way,
    architecture: String,
    version: String,
    unpacked: u64,
    files: Vec<(String, String)>,
}

/// The members of an `ar` archive: a header of 60 bytes, the body, a byte of padding after odd lengths.
fn ar_members(path: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut file = File::open(path)?;
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
            .filter(|&length| length <= LARGEST_FILE)
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

/// The regular files of a tar in gzip.
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
            entry.take(LARGEST_FILE).read_to_end(&mut body)?;
            files.push((path, body));
        }
    }
    Ok(files)
}

fn debian(path: &Path) -> io::Result<Option<Contents>> {
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
    // Documents are left out by minimal systems, and make no difference.
    let files = data
        .iter()
        .filter(|(name, _)| !name.starts_with("usr/share/doc/"))
        .map(|(name, body)| (format!("/{name}"), hex(&sha256(body))))
        .collect();
    Ok((package == "regatta-agent").then(|| Contents {
        way: Way::System,
        architecture,
        version,
        unpacked: data.iter().map(|(_, body)| body.len() as u64).sum(),
        files,
    }))
}

fn archive(path: &Path) -> io::Result<Option<Contents>> {
    let data = match files_of(File::open(path)?) {
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
    let installed = [
        ("bin/regatta-agent", "~/.local/bin/regatta-agent"),
        (
            "regatta-agent.service",
            "~/.config/systemd/user/regatta-agent.service",
        ),
    ];
    let files = installed
        .iter()
        .filter_map(|(inside, outside)| {
            let (_, body) = data
                .iter()
                .find(|(path, _)| path.ends_with(&format!("/{inside}")))?;
            Some(((*outside).to_owned(), hex(&sha256(body))))
        })
        .collect();
    Ok(Some(Contents {
        way: Way::User,
        architecture: architecture.to_owned(),
        version: version.to_owned(),
        unpacked: data.iter().map(|(_, body)| body.len() as u64).sum(),
        files,
    }))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Both packages around a program of one line, made as users make them.
    pub(crate) fn packages(directory: &Path, version: &str) -> Vec<Package> {
        let program = directory.join("program");
        fs::write(&program, "#!/bin/sh\n").unwrap();
        let made = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../cross/package.sh"))
            .arg("--binary")
            .arg(&program)
            .args(["--arch", "arm64", "--version", version, "--out"])
            .arg(directory)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Package::all_in(directory).unwrap()
    }

    #[test]
    fn both_packages_say_what_they_install() {
        let dir = tempfile::tempdir().unwrap();
        packages(dir.path(), "0.9.9");
        let found = packages(dir.path(), "0.10.0");
        let told: Vec<_> = found
            .iter()
            .map(|package| {
                (
                    package.way,
                    package.architecture.as_str(),
                    package.version.as_str(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [(Way::System, "arm64", "0.10.0"), (Way::User, "arm64", "0.10.0")],
            "the newest of each"
        );
        let program = hex(&sha256(b"#!/bin/sh\n"));
        assert!(
            found[0]
                .files
                .contains(&("/usr/bin/regatta-agent".to_owned(), program.clone()))
        );
        assert!(
            found[1]
                .files
                .contains(&("~/.local/bin/regatta-agent".to_owned(), program))
        );
    }

    #[test]
    fn what_is_no_package_is_told_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("regatta-agent.deb");
        for bytes in [
            &b""[..],
            b"!<arch>\n",
            b"!<arch>\nxxxxxxxxxxxxx",
            b"\x1f\x8b\x08junk",
            b"text",
        ] {
            fs::write(&path, bytes).unwrap();
            assert!(Package::open(&path).is_err(), "{bytes:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_damaged_package_is_read_or_refused(at in 0_usize..4096, byte: u8) {
            static WHOLE: std::sync::LazyLock<Vec<Vec<u8>>> = std::sync::LazyLock::new(|| {
                let dir = tempfile::tempdir().unwrap();
                packages(dir.path(), "0.1.0").iter().map(|package| fs::read(&package.path).unwrap()).collect()
            });
            let dir = tempfile::tempdir().unwrap();
            for whole in WHOLE.iter() {
                let mut bytes = whole.clone();
                let at = at % bytes.len();
                bytes[at] = byte;
                let path = dir.path().join("damaged");
                fs::write(&path, &bytes).unwrap();
                let _ = Package::open(&path);
            }
        }
    }
}
