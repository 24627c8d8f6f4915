//! The agent's two packages as `packaging/package.sh` makes them, read without dpkg. Each has an architecture, a version, and the SHA-256
//! of each installed file. The hashes show whether a board already has the package.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use regatta_fsutil::{hash::sha256_of_file, regular_file};
use regatta_tensorrt::Version;

use super::{
    contents::{self, Contents},
    install_method::InstallMethod,
};

/// A package that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// The package cannot be read.
    #[error("the package {} cannot be read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file is not a package of the agent.
    #[error("{} is not a package of the agent: {what}", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The missing part.
        what: &'static str,
    },
}

/// The end of the agent's path on a board.
const PROGRAM: &str = "bin/regatta-agent";

/// One package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The local path.
    pub path: PathBuf,
    pub way: InstallMethod,
    /// Debian's name of the architecture.
    pub architecture: String,
    pub version: String,
    /// Length of the package in bytes.
    pub length: u64,
    /// SHA-256 of the package, in hexadecimal.
    pub sha256: String,
    /// Unpacked size in bytes.
    pub unpacked: u64,
    /// Path on the board (`~/` is the user's home) and SHA-256 of each file that identifies the package.
    pub files: Vec<(String, String)>,
}

impl Package {
    /// Reads a package.
    ///
    /// # Errors
    /// Returns [`PackageError`].
    pub fn open(path: &Path) -> Result<Self, PackageError> {
        let unreadable = |source| PackageError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let foreign = |what| PackageError::Foreign {
            path: path.to_owned(),
            what,
        };
        let hash = sha256_of_file(path).map_err(unreadable)?;
        let mut magic = [0; 8];
        let read = regular_file::open(path)
            .and_then(|mut file| file.read(&mut magic))
            .map_err(unreadable)?;
        let contents = if magic.get(..read) == Some(b"!<arch>\n") {
            contents::debian(path).map_err(unreadable)?
        } else {
            contents::archive(path).map_err(unreadable)?
        };
        let Contents {
            way,
            architecture,
            version,
            unpacked,
            files,
        } = contents.ok_or_else(|| {
            foreign("it is neither the Debian package nor the archive of packaging/package.sh")
        })?;
        if !files.iter().any(|(path, _)| path.ends_with(PROGRAM)) {
            return Err(foreign("it contains no regatta-agent"));
        }
        Ok(Self {
            path: path.to_owned(),
            way,
            architecture,
            version,
            length: hash.length,
            sha256: hash.hex(),
            unpacked,
            files,
        })
    }

    /// Returns the SHA-256 of the agent's program, in hexadecimal.
    pub fn agent_sha256(&self) -> &str {
        let program = self.files.iter().find(|(path, _)| path.ends_with(PROGRAM));
        program.map_or("", |(_, sha256)| sha256)
    }

    /// Returns the TensorRT versions for which the package has shims.
    pub fn shims(&self) -> Vec<Version> {
        let version = |path: &str| {
            path.rsplit_once("/libregatta_trt-")?
                .1
                .strip_suffix(".so")?
                .parse()
                .ok()
        };
        self.files.iter().filter_map(|(path, _)| version(path)).collect()
    }

    /// Reads the packages in a directory. Returns the newest version of each method and architecture.
    ///
    /// # Errors
    /// Returns an error when the directory or a package in it cannot be read.
    pub fn all_in(directory: &Path) -> Result<Vec<Self>, PackageError> {
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

    /// Returns the file name of the copy on the board. It does not depend on the local file name.
    pub const fn copy_name(way: InstallMethod) -> &'static str {
        match way {
            InstallMethod::System => "regatta-agent.deb",
            InstallMethod::User => "regatta-agent.tar.gz",
        }
    }
}

/// Returns the numbers in a version, for ordering.
fn numbers(version: &str) -> Vec<u64> {
    version
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|part| part.parse().ok())
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use std::process::Command;

    use regatta_fsutil::hash::sha256_hex;

    use super::*;

    /// Returns both packages with a one-line program, made by the packaging script.
    pub(crate) fn packages(directory: &Path, version: &str) -> Vec<Package> {
        let program = directory.join("program");
        fs::write(&program, "#!/bin/sh\n").unwrap();
        let made = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/package.sh"))
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
        let properties: Vec<_> = found
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
            properties,
            [
                (InstallMethod::System, "arm64", "0.10.0"),
                (InstallMethod::User, "arm64", "0.10.0")
            ],
            "the newest of each"
        );
        let program = sha256_hex(b"#!/bin/sh\n");
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
    fn a_file_that_is_no_package_is_refused() {
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
