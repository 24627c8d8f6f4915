//! Compiles the TensorRT shim for a board on the workstation. This program contains the shim's sources and scripts. It does not contain the compiler,
//! and Debian 11's C library, which is needed if the board's C library is older than the workstation's.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use regatta_fsutil::hash::sha256_hex;
use regatta_text::escape_start;

/// The sources, with their paths in the repository, because the scripts expect them there.
const SOURCES: [(&str, &str); 7] = [
    (
        "crates/tensorrt/shim/build.sh",
        include_str!("../../../crates/tensorrt/shim/build.sh"),
    ),
    (
        "crates/tensorrt/shim/shim.cc",
        include_str!("../../../crates/tensorrt/shim/shim.cc"),
    ),
    (
        "crates/tensorrt/shim/regatta_trt.h",
        include_str!("../../../crates/tensorrt/shim/regatta_trt.h"),
    ),
    (
        "crates/tensorrt/shim/exports.map",
        include_str!("../../../crates/tensorrt/shim/exports.map"),
    ),
    (
        "crates/tensorrt/shim/cuda/cuda_runtime_api.h",
        include_str!("../../../crates/tensorrt/shim/cuda/cuda_runtime_api.h"),
    ),
    (
        "cross/older_glibc.c",
        include_str!("../../../cross/older_glibc.c"),
    ),
    ("cross/sysroot.sh", include_str!("../../../cross/sysroot.sh")),
];

#[derive(Debug, thiserror::Error)]
pub(crate) enum CompileError {
    /// The compiler is not installed.
    #[error("{compiler}, which compiles the shim, is missing on this machine")]
    NoCompiler {
        /// The name of its program.
        compiler: String,
        /// The Debian package that contains it.
        package: String,
    },
    /// The compiled shim needs a newer C library than the board's, and the older C library could not be fetched.
    #[error("a shim that is compiled here needs glibc {}.{}, and Debian 11's could not be fetched: {sysroot}", .needed.0, .needed.1)]
    NewGlibc {
        /// The version that the shim needs.
        needed: (u32, u32),
        /// The reason why the older C library is missing.
        sysroot: String,
    },
    /// The compiler or the linker failed.
    #[error("the shim cannot be compiled with the board's headers: {0}")]
    Failed(String),
    /// The sources cannot be written, or a script cannot be started.
    #[error("the shim's sources cannot be written")]
    Io(#[from] io::Error),
}

impl From<ScriptError> for CompileError {
    fn from(error: ScriptError) -> Self {
        match error {
            ScriptError::Io(error) => Self::Io(error),
            ScriptError::Failed(reason) => Self::Failed(reason),
        }
    }
}

/// Returns an identifier of the sources. The agent does not accept shims that were compiled from other sources.
pub(crate) fn sources_version() -> String {
    let all: String = SOURCES.iter().map(|(_, text)| *text).collect();
    sha256_hex(all.as_bytes()).chars().take(12).collect()
}

/// Compiles the shim with the headers in `headers`, in the empty directory `work`. Returns its path.
///
/// # Errors
/// Returns [`CompileError`].
pub(crate) fn compile(
    architecture: &str,
    glibc: Option<(u32, u32)>,
    headers: &Path,
    work: &Path,
) -> Result<PathBuf, CompileError> {
    let triple = triple(architecture);
    let compiler = format!("{triple}-g++");
    if !is_in_path(&compiler) {
        let package = if architecture == "amd64" {
            "g++".to_owned()
        } else {
            format!("g++-{triple}")
        };
        return Err(CompileError::NoCompiler { compiler, package });
    }
    for (path, text) in SOURCES {
        let path = work.join(path);
        fs::create_dir_all(path.parent().unwrap_or(work))?;
        fs::write(path, text)?;
    }
    let script = |path: &str| {
        let mut command = Command::new("bash");
        command.arg(work.join(path));
        command
    };
    let sysroot = match path_of(script("cross/sysroot.sh").arg(architecture)) {
        Ok(path) => Ok(path),
        Err(ScriptError::Failed(reason)) => Err(reason),
        Err(ScriptError::Io(error)) => return Err(error.into()),
    };
    let mut build = script("crates/tensorrt/shim/build.sh");
    build.arg("--headers").arg(headers).args(["--cxx", &compiler]);
    build.env("TMPDIR", work).arg("--out").arg(work.join("out"));
    if let Ok(sysroot) = &sysroot {
        build.arg("--sysroot").arg(sysroot);
    }
    let shim = path_of(&mut build)?;
    match (sysroot, newest_glibc(&fs::read(&shim)?), glibc) {
        (Err(sysroot), Some(needed), Some(found)) if needed > found => {
            Err(CompileError::NewGlibc { needed, sysroot })
        }
        _ => Ok(shim),
    }
}

/// Converts Debian's name of an architecture to the compilers' name.
pub(crate) const fn triple(architecture: &str) -> &'static str {
    match architecture.as_bytes() {
        b"amd64" => "x86_64-linux-gnu",
        _ => "aarch64-linux-gnu",
    }
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// The maximum number of lines of a script's output, and of characters of a line, in an error.
const MAX_LINES: usize = 12;
const MAX_LINE: usize = 300;

/// Why a script printed no path.
#[derive(Debug, thiserror::Error)]
enum ScriptError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The script failed. Contains the end of its output.
    #[error("{0}")]
    Failed(String),
}

/// Runs a script that prints a path.
fn path_of(command: &mut Command) -> Result<PathBuf, ScriptError> {
    let output = command.output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    match (output.status.success(), printed.lines().last()) {
        (true, Some(path)) => Ok(PathBuf::from(path)),
        // The scripts print the reason on their last line, after the messages of apt or the compiler, which name its cause.
        _ => Err(ScriptError::Failed(cause(&String::from_utf8_lossy(
            &output.stderr,
        )))),
    }
}

/// Returns the cause of a script's failure: its last line, then the messages before it from the first error on.
fn cause(printed: &str) -> String {
    let lines: Vec<String> = printed
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .map(|line| escape_start(line, MAX_LINE))
        .collect();
    let Some((reason, messages)) = lines.split_last() else {
        return "it printed nothing".to_owned();
    };
    // A compiler's first error is the cause of the others.
    let is_error = |line: &String| line.contains("error: ") || line.starts_with("E: ");
    let from = messages
        .iter()
        .position(is_error)
        .unwrap_or_else(|| messages.len().saturating_sub(MAX_LINES));
    let messages = messages.get(from..).unwrap_or_default();
    let messages = messages.iter().take(MAX_LINES).map(|line| line.trim_start());
    std::iter::once(reason.as_str())
        .chain(messages)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Returns the newest version of glibc that a library's symbols need.
fn newest_glibc(library: &[u8]) -> Option<(u32, u32)> {
    const PREFIX: &[u8] = b"GLIBC_";
    let versions = library
        .windows(PREFIX.len())
        .enumerate()
        .filter_map(|(at, window)| {
            let rest = (window == PREFIX).then(|| library.get(at + PREFIX.len()..))??;
            let text: String = rest
                .iter()
                .map(|&byte| char::from(byte))
                .take_while(|c| c.is_ascii_digit() || *c == '.')
                .collect();
            let (major, minor) = text.split_once('.')?;
            Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
        });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_in_the_error_of_a_failed_script() {
        let printed = |errors: usize| {
            let mut lines = vec!["shim.cc: In function 'build'".to_owned()];
            lines.push("shim.cc:7:9: error: 'IBuilder' has no member 'x'".to_owned());
            lines.extend((0..errors).map(|number| format!("shim.cc:{number}: error: {}", "y".repeat(2_000))));
            lines.push("build.sh: g++ could not build the shim".to_owned());
            cause(&lines.join("\n"))
        };
        assert_eq!(
            printed(0),
            "build.sh: g++ could not build the shim; shim.cc:7:9: error: 'IBuilder' has no member 'x'"
        );
        let long = printed(1_000);
        assert!(
            long.starts_with(&printed(0)) && long.len() < 5_000,
            "{}",
            long.len()
        );
        // apt prints its reason before the script's.
        let apt = cause("Get:1\nE: Unable to fetch\nsysroot.sh: cannot be reached\n");
        assert_eq!(apt, "sysroot.sh: cannot be reached; E: Unable to fetch");
        assert_eq!(cause("one\ntwo\n"), "two; one");
        assert_eq!(cause("\n"), "it printed nothing");
    }

    #[test]
    fn the_newest_glibc_of_a_library_is_read() {
        assert_eq!(
            newest_glibc(b"\0GLIBC_2.17\0GLIBC_2.34\0GLIBC_2.4\0GLIBC_PRIVATE\0GLIBC_2.2.5\0"),
            Some((2, 34))
        );
        assert_eq!(newest_glibc(b"GLIBC_"), None);
    }
}
