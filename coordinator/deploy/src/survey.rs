//! Surveys a board once before any decision: its hardware, its system, and its installed software. It makes no decision.

use std::collections::BTreeMap;

use regatta_ssh::{Board, LinkLost, Script};
use regatta_tensorrt::Version;
use regatta_text::escape;

use super::package::Package;

/// A failed survey.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    #[error(transparent)]
    Link(#[from] LinkLost),
    /// The board has no usable shell.
    #[error("the board does not answer like a Linux system: {0}")]
    Strange(String),
}

/// The availability of sudo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sudo {
    /// sudo is not installed.
    None,
    /// sudo requires no password.
    Free,
    /// sudo requires a password, or does not know the user.
    Asks,
}

/// The result of a survey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Survey {
    /// The machine name of the kernel: `aarch64`, `x86_64`.
    pub machine: String,
    /// dpkg's architecture. `None` without dpkg.
    pub dpkg: Option<String>,
    /// The glibc version. `None` with another C library.
    pub glibc: Option<(u32, u32)>,
    /// The L4T release from the first line of `/etc/nv_tegra_release`, for example `L4T 35.4.1`.
    pub l4t: Option<String>,
    /// The version of NVIDIA's JetPack meta-package.
    pub jetpack: Option<String>,
    /// The model in the device tree.
    pub model: Option<String>,
    /// The board's host name.
    pub hostname: String,
    /// The login's user.
    pub user: String,
    /// Whether the login is root.
    pub is_root: bool,
    /// The login's home directory.
    pub home: String,
    /// Whether systemd runs the system.
    pub systemd: bool,
    /// The availability of sudo.
    pub sudo: Sudo,
    /// The directory for copied packages.
    pub cache: String,
    /// dpkg's status letters and version of the agent's package, for example `ii  0.1.0`. Empty when dpkg does not know it.
    pub package: String,
    /// The newest installed TensorRT.
    pub tensorrt: Option<Version>,
    /// The directory of TensorRT's headers.
    pub tensorrt_headers: Option<String>,
    /// Whether /usr is mounted read-only.
    pub is_usr_read_only: bool,
    /// Free space in the home directory, in KiB.
    pub free_home_kib: u64,
    /// Free space in /usr, in KiB.
    pub free_usr_kib: u64,
    /// Free space in KiB in /var/lib, where the agent of the system package stores models and samples.
    pub free_state_kib: u64,
    /// SHA-256 of each existing file, by the requested path.
    pub hashes: BTreeMap<String, String>,
}

impl Survey {
    /// Surveys the board, and hashes the files of `package` and its copy there.
    ///
    /// # Errors
    /// Returns [`SurveyError`].
    pub(crate) fn of(board: &dyn Board, package: Option<&Package>) -> Result<Self, SurveyError> {
        let mut words = Vec::new();
        if let Some(package) = package {
            words.push(Package::copy_name(package.way));
            words.extend(package.files.iter().map(|(path, _)| path.as_str()));
        }
        let script = Script {
            doing: "looking at it",
            text: include_str!("scripts/survey.sh"),
            words: &words,
        };
        let output = script.run(board, &mut std::io::empty())?;
        Self::from_lines(&output.out).ok_or_else(|| SurveyError::Strange(output.error_text()))
    }

    /// Parses the script's output. Returns `None` when the output has another format.
    fn from_lines(lines: &str) -> Option<Self> {
        let mut values = BTreeMap::new();
        let mut hashes = BTreeMap::new();
        let mut tensorrt = None;
        // A login shell may print a greeting first.
        for (key, value) in lines.lines().filter_map(|line| line.split_once('=')) {
            match (key, value.split_once(' ')) {
                ("sha256", Some((hash, path))) => {
                    hashes.insert(path.to_owned(), hash.to_owned());
                }
                // One line per version, because there may be several.
                ("tensorrt", _) => tensorrt = tensorrt.max(tensorrt_version(value)),
                _ => {
                    values.insert(key, value.trim());
                }
            }
        }
        let text = |key: &str| values.get(key).copied().filter(|value| !value.is_empty());
        let number = |key: &str| text(key).and_then(|value| value.parse().ok());
        Some(Self {
            machine: text("machine")?.to_owned(),
            dpkg: text("dpkg").map(str::to_owned),
            glibc: text("glibc").and_then(glibc_version),
            l4t: text("l4t").and_then(l4t_version),
            jetpack: text("jetpack").map(str::to_owned),
            model: text("board").map(str::to_owned),
            hostname: text("hostname").unwrap_or("board").to_owned(),
            user: text("user")?.to_owned(),
            is_root: text("uid")? == "0",
            home: text("home")?.to_owned(),
            systemd: text("systemd").is_some(),
            sudo: match text("sudo") {
                Some("free") => Sudo::Free,
                Some(_) => Sudo::Asks,
                None => Sudo::None,
            },
            cache: text("cache")?.to_owned(),
            package: text("package").unwrap_or_default().to_owned(),
            free_home_kib: number("free_home_kib").unwrap_or(u64::MAX),
            tensorrt,
            tensorrt_headers: text("tensorrt_headers").map(str::to_owned),
            is_usr_read_only: text("usr") == Some("read-only"),
            free_usr_kib: number("free_usr_kib").unwrap_or(u64::MAX),
            free_state_kib: number("free_state_kib").unwrap_or(u64::MAX),
            hashes,
        })
    }

    /// Returns Debian's name of the architecture.
    pub(crate) fn architecture(&self) -> &str {
        match (self.dpkg.as_deref(), self.machine.as_str()) {
            (Some(dpkg), _) => dpkg,
            (None, "aarch64") => "arm64",
            (None, "x86_64") => "amd64",
            (None, other) => other,
        }
    }

    /// Describes the board in one line.
    pub(crate) fn sentence(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.model.clone());
        parts.push(self.architecture().to_owned());
        match (&self.jetpack, &self.l4t) {
            (Some(jetpack), Some(l4t)) => parts.push(format!("JetPack {jetpack} ({l4t})")),
            (Some(jetpack), None) => parts.push(format!("JetPack {jetpack}")),
            (None, Some(l4t)) => parts.push(l4t.clone()),
            (None, None) => {}
        }
        parts.push(match self.glibc {
            Some((major, minor)) => format!("glibc {major}.{minor}"),
            None => "no glibc".to_owned(),
        });
        if let Some(tensorrt) = self.tensorrt {
            parts.push(format!("TensorRT {tensorrt}"));
        }
        parts.push(if self.systemd { "systemd" } else { "no systemd" }.to_owned());
        parts.push(match (self.is_root, self.sudo) {
            (true, _) => "login is root".to_owned(),
            (false, Sudo::Free) => "sudo without password".to_owned(),
            (false, Sudo::Asks) => "sudo with a password".to_owned(),
            (false, Sudo::None) => "no sudo".to_owned(),
        });
        parts.push(format!(
            "{} MiB free",
            self.free_home_kib.min(self.free_usr_kib) / 1024
        ));
        escape(&parts.join(", ")).into_owned()
    }
}

/// Parses `glibc 2.31`.
fn glibc_version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.strip_prefix("glibc ")?.split_once('.')?;
    let minor = minor.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Parses the version in a library's file name or of a Debian package, for example `10.3.0` and `10.3.0.30-1+cuda12.5`.
fn tensorrt_version(text: &str) -> Option<Version> {
    let upstream = text.split(['-', '+', '~']).next()?;
    let numbers: Vec<&str> = upstream.split('.').take(3).collect();
    numbers.join(".").parse().ok()
}

/// Parses `# R35 (release), REVISION: 4.1, GCID: ...`.
fn l4t_version(text: &str) -> Option<String> {
    let (release, rest) = text.strip_prefix("# R")?.split_once(' ')?;
    let revision = rest.split_once("REVISION: ")?.1.split(',').next()?;
    Some(format!("L4T {release}.{}", revision.trim()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const AGX_ORIN: &str = "Welcome to Ubuntu\nmachine=aarch64\nglibc=glibc 2.31\nhostname=orin\nuid=1000\nuser=nvidia\nhome=/home/nvidia\nl4t=# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref, EABI: aarch64\njetpack=5.1.2-b104\nboard=Jetson AGX Orin Developer Kit\nsystemd=yes\ndpkg=arm64\npackage=\nsudo=asks\ncache=/home/nvidia/.cache/regatta\nfree_home_kib=41943040\nfree_usr_kib=41943040\nsha256=ab12 /usr/bin/regatta-agent\n";

    pub(crate) fn survey(lines: &str) -> Survey {
        Survey::from_lines(lines).unwrap()
    }

    #[test]
    fn doctor_identifies_a_jetson() {
        let survey = survey(AGX_ORIN);
        insta::assert_snapshot!(survey.sentence(), @"Jetson AGX Orin Developer Kit, arm64, JetPack 5.1.2-b104 (L4T 35.4.1), glibc 2.31, systemd, sudo with a password, 40960 MiB free");
        assert_eq!(survey.hashes["/usr/bin/regatta-agent"], "ab12");
        assert_eq!(survey.architecture(), "arm64");
    }

    #[test]
    fn the_newest_of_several_versions_of_tensorrt_counts() {
        let lines =
            "tensorrt=10.3.0\ntensorrt=8.6.2\ntensorrt=10.3.0.30-1+cuda12.5\ntensorrt=10\ntensorrt=\n";
        let survey = survey(&format!("{AGX_ORIN}{lines}"));
        assert_eq!(survey.tensorrt.unwrap().to_string(), "10.3.0");
        assert!(survey.sentence().contains("glibc 2.31, TensorRT 10.3.0, systemd"));
    }

    #[test]
    fn board_survey_escapes_control_characters() {
        let hostile = AGX_ORIN.replace("Jetson AGX", "Jetson\x1b[2J\u{202e}AGX");
        let sentence = survey(&hostile).sentence();
        assert!(
            sentence.starts_with(r"Jetson\u{1b}[2J\u{202e}AGX Orin"),
            "{sentence}"
        );
    }

    #[test]
    fn invalid_survey_output_is_rejected() {
        for text in ["", "Windows\r\n", "machine=\nuser=a\n"] {
            assert_eq!(Survey::from_lines(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_answer_is_read_or_refused(text in "(?s).{0,200}") {
            let _ = Survey::from_lines(&text);
            let _ = Survey::from_lines(&format!("{AGX_ORIN}{text}"));
        }
    }
}
