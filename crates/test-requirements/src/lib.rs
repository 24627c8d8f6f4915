//! Requirements of tests that a machine may not meet, such as a program, root or published results. A test whose requirement is
//! missing is skipped and recorded, so that `./test` can list it; under CI (`CI=true`) the test fails, unless CI cannot provide the requirement.
//!
//! ```no_run
//! use regatta_test_requirements::program;
//!
//! # fn a_test() {
//! let Some(openssl) = program("openssl", "openssl") else { return };
//! # }
//! ```

#![expect(clippy::print_stderr, reason = "a test prints why it is skipped")]
#![expect(clippy::panic, reason = "a test fails by a panic")]

mod record;

use std::{
    env,
    ffi::OsStr,
    fmt::Display,
    path::{Path, PathBuf},
    process::Command,
};

/// A kind of thing that a test needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// A program or library that `./test` installs from a package registry.
    Package,
    /// A right of this user: root, mounts, namespaces, tracing.
    Right,
    /// Published results, in public repositories.
    PublishedResults,
    /// The official power programs, in a public repository.
    PowerPrograms,
    /// The recorded output of the official tools for published results, which nobody publishes.
    OfficialAnswers,
    /// Checkouts of the official tools, which are on no registry.
    OfficialTools,
    /// A property of the machine, such as a second processor.
    Machine,
}

impl Requirement {
    /// Returns whether it may be missing in CI: always, or because `.ci/run` could not reach its source and reports that at its end.
    fn may_be_missing_in_ci(self) -> bool {
        match self {
            Self::Package | Self::Right => false,
            Self::PublishedResults => env::var_os("REGATTA_CORPUS_UNREACHABLE").is_some(),
            Self::PowerPrograms => env::var_os("REGATTA_POWER_DEV_UNREACHABLE").is_some(),
            Self::OfficialAnswers => env::var_os("REGATTA_ANSWERS_UNREACHABLE").is_some(),
            Self::OfficialTools | Self::Machine => true,
        }
    }
}

/// Records that the current test, or a part of it, is skipped. `reason` says what is missing and how to get it.
///
/// # Panics
/// Panics under CI when CI must have it.
pub fn skip(requirement: Requirement, reason: impl Display) {
    let in_ci = env::var_os("CI").is_some_and(|value| value == "true");
    if in_ci && !requirement.may_be_missing_in_ci() {
        panic!("no test is skipped under CI: {reason}");
    }
    eprintln!("skipped: {reason}");
    record::record(&reason.to_string());
}

/// Returns `true` if `is_met`, and records a skipped test otherwise.
///
/// # Panics
/// Panics as [`skip`].
#[must_use]
pub fn require(is_met: bool, requirement: Requirement, reason: impl Display) -> bool {
    if !is_met {
        skip(requirement, reason);
    }
    is_met
}

/// Finds a program of a Debian package, also in the directories of daemons, which may be missing from a user's `PATH`. If it is missing, records a
/// skipped test.
///
/// # Panics
/// Panics as [`skip`].
#[must_use]
pub fn program(name: &str, package: &str) -> Option<PathBuf> {
    let found = find_program(name);
    if found.is_none() {
        skip(
            Requirement::Package,
            format_args!("{name} is not installed (Debian: {package})"),
        );
    }
    found
}

/// Finds the official tools: `REGATTA_OFFICIAL_TOOLS` names a directory with a checkout of mlcommons/inference per revision
/// (`tests/oracles/inference/checkouts.sh`). Returns the path of `part` there. Records a skipped test when it is missing.
#[must_use]
pub fn official_tools(part: impl AsRef<Path>) -> Option<PathBuf> {
    let part = part.as_ref();
    let Some(tools) = env::var_os("REGATTA_OFFICIAL_TOOLS") else {
        skip(
            Requirement::OfficialTools,
            "REGATTA_OFFICIAL_TOOLS names no checkouts of the official tools",
        );
        return None;
    };
    let path = Path::new(&tools).join(part);
    let reason = format_args!("REGATTA_OFFICIAL_TOOLS has no {}", part.display()).to_string();
    require(path.exists(), Requirement::OfficialTools, reason).then_some(path)
}

/// Returns whether this user can make the namespaces that `unshare` makes with these options. Records a skipped test otherwise.
///
/// # Panics
/// Panics as [`skip`].
#[must_use]
pub fn namespaces<S: AsRef<OsStr>>(options: &[S]) -> bool {
    let made = Command::new("unshare").args(options).arg("true").status();
    require(
        made.is_ok_and(|status| status.success()),
        Requirement::Right,
        "this user cannot make the namespaces of the test",
    )
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let of_daemons = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path)
        .chain(of_daemons)
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
}
