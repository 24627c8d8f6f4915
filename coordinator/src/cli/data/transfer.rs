//! Downloads a file with curl, from where an earlier attempt ended. Checks nothing of its content.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

/// Attempts without a further byte, after which a transfer ends.
const FRUITLESS: u32 = 3;
/// The time between two attempts.
const PAUSE: Duration = Duration::from_secs(1);
/// curl's code for an error of the HTTP server, such as 404.
const HTTP_ERROR: i32 = 22;
/// The HTTP status when the file on the server ends before the requested range.
const RANGE_NOT_SATISFIABLE: &str = "416";
/// curl's code for a server that sends files from their beginning only.
const NO_RANGES: i32 = 33;
/// curl's codes for names that do not resolve, refused and broken connections, and time-outs.
const TRANSIENT: [i32; 9] = [6, 7, 16, 18, 28, 35, 52, 55, 56];

/// The error when a file cannot be downloaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransferError {
    /// curl cannot be started.
    #[error("cannot start curl, which downloads files; hint: apt-get install curl")]
    Curl(#[source] io::Error),
    /// The file cannot be written.
    #[error("cannot write {path}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Another process downloads the file.
    #[error("another download of {path} is at it", path = .0.display())]
    Busy(PathBuf),
    /// curl ended with an error.
    #[error("{url} cannot be downloaded: {reason}; {kept} bytes are kept, and the same command continues")]
    Failed {
        /// The address.
        url: String,
        /// curl's own message.
        reason: String,
        /// The bytes that are here.
        kept: u64,
    },
}

/// Downloads `url` to `part`, behind the bytes that it has already. `bytes` is the published size. `has_progress` lets curl show it.
///
/// # Errors
/// [`TransferError`]; what was downloaded remains.
pub(super) fn download(
    url: &str,
    part: &Path,
    bytes: Option<u64>,
    has_progress: bool,
) -> Result<(), TransferError> {
    let lock = lock(part)?;
    let (mut fruitless, mut restarts) = (0, 0);
    let mut length = length_of(&lock, part)?;
    loop {
        if bytes == Some(length) {
            break;
        }
        if bytes.is_some_and(|bytes| length > bytes) {
            restart(&lock, part)?;
            length = 0;
        }
        let Transfer { code, status, reason } = call_curl(url, part, has_progress)?;
        let grown = length_of(&lock, part)?;
        let is_refused_range = code == NO_RANGES || (code == HTTP_ERROR && status == RANGE_NOT_SATISFIABLE);
        match code {
            0 => break,
            _ if is_refused_range && length > 0 && restarts == 0 => {
                restart(&lock, part)?;
                (length, restarts) = (0, 1);
                continue;
            }
            code if TRANSIENT.contains(&code) && grown > length => fruitless = 0,
            code if TRANSIENT.contains(&code) && fruitless + 1 < FRUITLESS => fruitless += 1,
            _ => {
                return Err(TransferError::Failed {
                    url: url.to_owned(),
                    reason,
                    kept: grown,
                });
            }
        }
        length = grown;
        thread::sleep(PAUSE);
    }
    lock.sync_all().map_err(|source| write_error(part, source))
}

/// Opens the file for this process alone.
fn lock(part: &Path) -> Result<File, TransferError> {
    let open = || {
        if let Some(parent) = part.parent() {
            fs::create_dir_all(parent)?;
        }
        OpenOptions::new().create(true).append(true).open(part)
    };
    let file = open().map_err(|source| write_error(part, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(TransferError::Busy(part.to_owned())),
        Err(fs::TryLockError::Error(source)) => Err(write_error(part, source)),
    }
}

fn length_of(file: &File, part: &Path) -> Result<u64, TransferError> {
    let length = file.metadata().map(|metadata| metadata.len());
    length.map_err(|source| write_error(part, source))
}

fn restart(file: &File, part: &Path) -> Result<(), TransferError> {
    file.set_len(0).map_err(|source| write_error(part, source))
}

fn write_error(path: &Path, source: io::Error) -> TransferError {
    TransferError::Write {
        path: path.to_owned(),
        source,
    }
}

/// The result of one call of curl.
struct Transfer {
    /// The exit code.
    code: i32,
    /// The HTTP status, in digits.
    status: String,
    /// The message.
    reason: String,
}

/// Calls curl once.
fn call_curl(url: &str, part: &Path, has_progress: bool) -> Result<Transfer, TransferError> {
    let mut curl = Command::new("curl");
    // A file of the user's own would change how curl behaves.
    curl.args(["--disable", "--fail", "--location", "--show-error", "--globoff"]);
    curl.args(["--proto", "=http,https", "--connect-timeout", "30"]);
    if url.starts_with("https:") {
        curl.args(["--proto-redir", "=https"]);
    }
    curl.args([
        "--speed-limit",
        "1024",
        "--speed-time",
        "60",
        "--continue-at",
        "-",
    ]);
    curl.args(["--write-out", "%{http_code}"]);
    if !has_progress {
        curl.arg("--silent");
    }
    curl.arg("--output").arg(part).arg("--").arg(url);
    let has_message = if has_progress {
        Stdio::inherit()
    } else {
        Stdio::piped()
    };
    let output = curl
        .stdin(Stdio::null())
        .stderr(has_message)
        .output()
        .map_err(TransferError::Curl)?;
    let printed = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code().unwrap_or(-1);
    let last = printed.lines().rfind(|line| !line.trim().is_empty());
    let reason = last.map_or_else(|| format!("curl ended with {}", output.status), str::to_owned);
    let status = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(Transfer { code, status, reason })
}
