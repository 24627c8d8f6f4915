//! Selects the package and install method for a board, from its survey alone, before anything is copied.

use super::{
    install_method::InstallMethod,
    package::Package,
    survey::{Sudo, Survey},
};

/// The oldest glibc that the agent supports: JetPack 5's.
const MIN_GLIBC: (u32, u32) = (2, 31);
/// The space that must stay free, in KiB.
const SPARE_KIB: u64 = 16 * 1024;

/// The reason why the agent cannot be installed on a board.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompatibilityError {
    /// There is no package for its architecture.
    #[error("this board is {machine}, and the available packages are for {at_hand}")]
    Architecture {
        /// The board's architecture.
        machine: String,
        /// The architectures of the packages.
        at_hand: String,
    },
    /// The board's glibc is too old.
    #[error(
        "this board has glibc {}.{}{}, and the agent needs {}.{} (JetPack 5) or later",
        .found.0, .found.1, .jetpack, MIN_GLIBC.0, MIN_GLIBC.1
    )]
    OldGlibc {
        /// Its version.
        found: (u32, u32),
        /// ` (JetPack 4.6.1)`, or empty.
        jetpack: String,
    },
    /// The board has another C library than glibc.
    #[error("this board has no glibc, which the agent needs")]
    NoGlibc,
    /// A disk has too little free space.
    #[error("{place} has {free_kib} KiB free, and {needed_kib} KiB are needed")]
    Disk {
        /// The directory.
        place: String,
        /// The free space in KiB.
        free_kib: u64,
        /// The required space in KiB.
        needed_kib: u64,
    },
    /// The system directories are read-only.
    #[error("/usr is read-only on this board, and the system service is installed there")]
    ReadOnlyUsr,
    /// Root rights are required and not available.
    #[error("{user} has no sudo on this board, and the system service needs root's rights")]
    NoSudo {
        /// The login's user.
        user: String,
    },
    /// The user install is requested for root, which it does not support.
    #[error("the login is root's, and the agent of a user runs without root's rights")]
    RootAsUser,
    /// The board has no dpkg or no systemd for the system package.
    #[error("this board has no dpkg or no systemd, and the system service needs both")]
    NoDpkg,
}

impl CompatibilityError {
    /// Returns the hint for the user.
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Architecture { .. } => Some("the agent is made for arm64 and amd64"),
            Self::OldGlibc { .. } => Some("flash JetPack 5 or later"),
            Self::NoGlibc => None,
            Self::Disk { .. } => Some("free space there and run this again"),
            Self::ReadOnlyUsr => {
                Some("--as user installs into the login's home; or: sudo mount -o remount,rw /usr")
            }
            Self::NoSudo { .. } => Some("--as user installs for that login alone, without root"),
            Self::RootAsUser => Some("log in as that user, or leave --as out"),
            Self::NoDpkg => Some("--as user installs for an ordinary login, without either"),
        }
    }
}

/// Returns the install method: the requested one, or the system's where root rights, dpkg and systemd are available.
///
/// # Errors
/// Returns [`CompatibilityError`] when the requested method is not possible.
pub(crate) fn way(
    survey: &Survey,
    requested: Option<InstallMethod>,
) -> Result<InstallMethod, CompatibilityError> {
    let has_root = survey.is_root || survey.sudo != Sudo::None;
    let has_system = survey.dpkg.is_some() && survey.systemd;
    match requested {
        Some(InstallMethod::System) if !has_root => Err(CompatibilityError::NoSudo {
            user: survey.user.clone(),
        }),
        Some(InstallMethod::System) if !has_system => Err(CompatibilityError::NoDpkg),
        Some(InstallMethod::System) if survey.is_usr_read_only => Err(CompatibilityError::ReadOnlyUsr),
        Some(InstallMethod::User) if survey.is_root => Err(CompatibilityError::RootAsUser),
        Some(way) => Ok(way),
        None if has_root && has_system && !survey.is_usr_read_only => Ok(InstallMethod::System),
        None if survey.is_root && has_system => Err(CompatibilityError::ReadOnlyUsr),
        None if survey.is_root => Err(CompatibilityError::NoDpkg),
        None => Ok(InstallMethod::User),
    }
}

/// Checks that the board's C library is new enough for the agent.
///
/// # Errors
/// Returns [`CompatibilityError`].
pub(crate) fn check_glibc(survey: &Survey) -> Result<(), CompatibilityError> {
    match survey.glibc {
        None => Err(CompatibilityError::NoGlibc),
        Some(found) if found < MIN_GLIBC => {
            let jetpack = match (&survey.jetpack, &survey.l4t) {
                (Some(jetpack), _) => format!(" (JetPack {jetpack})"),
                (None, Some(l4t)) => format!(" ({l4t})"),
                (None, None) => String::new(),
            };
            Err(CompatibilityError::OldGlibc { found, jetpack })
        }
        Some(_) => Ok(()),
    }
}

/// Returns the package for the board's architecture.
///
/// # Errors
/// Returns [`CompatibilityError::Architecture`].
pub(crate) fn package<'a>(
    survey: &Survey,
    way: InstallMethod,
    packages: &'a [Package],
) -> Result<&'a Package, CompatibilityError> {
    let architecture = survey.architecture();
    packages
        .iter()
        .find(|package| package.way == way && package.architecture == architecture)
        .ok_or_else(|| CompatibilityError::Architecture {
            machine: architecture.to_owned(),
            at_hand: at_hand(packages, way),
        })
}

/// Checks that the board has space for the copy and for its content.
///
/// # Errors
/// Returns [`CompatibilityError::Disk`].
pub(crate) fn check_space(survey: &Survey, package: &Package) -> Result<(), CompatibilityError> {
    let copy_kib = package.length / 1024;
    let unpacked_kib = package.unpacked / 1024;
    let (home_kib, usr_kib) = match package.way {
        // The copy, root's own copy of it, the unpacked files, and the previous version.
        InstallMethod::System => (copy_kib, copy_kib + unpacked_kib * 2),
        // The unpacked files, the installed files, and the previous version.
        InstallMethod::User => (copy_kib + unpacked_kib * 3, 0),
    };
    for (place, free_kib, needed_kib) in [
        (survey.home.as_str(), survey.free_home_kib, home_kib),
        ("/usr", survey.free_usr_kib, usr_kib),
    ] {
        let needed_kib = needed_kib + if needed_kib > 0 { SPARE_KIB } else { 0 };
        if free_kib < needed_kib {
            return Err(CompatibilityError::Disk {
                place: format!("the disk of {place}"),
                free_kib,
                needed_kib,
            });
        }
    }
    Ok(())
}

fn at_hand(packages: &[Package], way: InstallMethod) -> String {
    let kinds: Vec<&str> = packages
        .iter()
        .filter(|package| package.way == way)
        .map(|package| package.architecture.as_str())
        .collect();
    match (kinds.is_empty(), way) {
        (false, _) => kinds.join(", "),
        (true, InstallMethod::System) => "other ways (no .deb among them)".to_owned(),
        (true, InstallMethod::User) => "other ways (no .tar.gz among them)".to_owned(),
    }
}

/// Returns whether the board already has exactly the package's files.
pub(crate) fn is_installed(survey: &Survey, package: &Package) -> bool {
    let whole = package
        .files
        .iter()
        .all(|(path, hash)| survey.hashes.get(path) == Some(hash));
    let recorded: Vec<&str> = survey.package.split_whitespace().collect();
    whole && (package.way == InstallMethod::User || recorded == ["ii", package.version.as_str()])
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::survey::tests::{AGX_ORIN, survey};

    fn package_for(way: InstallMethod, architecture: &str) -> Package {
        Package {
            path: PathBuf::from("p"),
            way,
            architecture: architecture.to_owned(),
            version: "0.1.0".to_owned(),
            length: 3 << 20,
            sha256: String::new(),
            unpacked: 6 << 20,
            files: vec![("/usr/bin/regatta-agent".to_owned(), "ab12".to_owned())],
        }
    }

    #[test]
    fn every_refusal_is_a_sentence() {
        let packages = [
            package_for(InstallMethod::System, "arm64"),
            package_for(InstallMethod::User, "amd64"),
        ];
        let decision = |lines: &str, requested| {
            let survey = survey(lines);
            let outcome = way(&survey, requested).and_then(|way| {
                check_glibc(&survey)?;
                let package = package(&survey, way, &packages)?;
                check_space(&survey, package)?;
                Ok(way)
            });
            match outcome {
                Ok(way) => format!("{way:?}"),
                Err(unfit) => format!("{unfit}: {}", unfit.hint().unwrap_or_default()),
            }
        };
        let with = |from: &str, to: &str| AGX_ORIN.replace(from, to);
        let outcomes = [
            decision(AGX_ORIN, None),
            decision(AGX_ORIN, Some(InstallMethod::User)),
            decision(&with("dpkg=arm64", "dpkg=armhf"), None),
            decision(
                &with("glibc=glibc 2.31", "glibc=glibc 2.27").replace("5.1.2-b104", "4.6.1-b110"),
                None,
            ),
            decision(&with("glibc=glibc 2.31", "glibc="), None),
            decision(&with("free_usr_kib=41943040", "free_usr_kib=2048"), None),
            decision(
                &with("package=\n", "usr=read-only\n"),
                Some(InstallMethod::System),
            ),
            decision(&with("package=\n", "usr=read-only\n"), None),
            decision(
                &with("uid=1000", "uid=0").replace("package=\n", "usr=read-only\n"),
                None,
            ),
            decision(&with("sudo=asks\n", ""), Some(InstallMethod::System)),
            decision(&with("sudo=asks\n", ""), None),
            decision(&with("uid=1000", "uid=0"), Some(InstallMethod::User)),
            decision(&with("uid=1000", "uid=0").replace("systemd=yes\n", ""), None),
        ];
        insta::assert_snapshot!(outcomes.join("\n"));
    }

    #[test]
    fn installed_board_is_skipped_and_partial_install_is_repeated() {
        let package = package_for(InstallMethod::System, "arm64");
        assert!(is_installed(
            &survey(&AGX_ORIN.replace("package=", "package=ii  0.1.0")),
            &package
        ));
        for state in [
            "",
            "iU  0.1.0",
            "iF  0.1.0",
            "iHR 0.1.0",
            "rc  0.1.0",
            "ii  0.0.9",
            "ii",
        ] {
            let lines = AGX_ORIN.replace("package=", &format!("package={state}"));
            assert!(!is_installed(&survey(&lines), &package), "{state}");
        }
        let damaged = AGX_ORIN
            .replace("package=", "package=ii  0.1.0")
            .replace("ab12", "cd34");
        assert!(!is_installed(&survey(&damaged), &package));
    }
}
