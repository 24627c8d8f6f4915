//! Downloads a file with curl, from where an earlier attempt ended. Checks nothing of its content.

use std::{
    env,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

/// The additional extension of a file that is being downloaded or copied.
pub(in crate::cli) const PART: &str = "part";
/// Attempts without a further byte, after which a transfer ends.
const FRUITLESS: u32 = 3;
/// The time between two attempts.
const PAUSE: Duration = Duration::from_secs(1);
/// The time between two looks at the size of a file.
const SIZE_INTERVAL: Duration = Duration::from_millis(100);
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
    #[error("another download of {path} is running", path = .0.display())]
    Busy(PathBuf),
    /// The server sends more than the file's size.
    #[error("{url} is larger than {most} bytes, its published size; hint: see which file is at that address")]
    TooLarge {
        /// The address.
        url: String,
        /// The largest size.
        most: u64,
    },
    /// curl ended with an error.
    #[error("{url} cannot be downloaded{}: {reason}; {kept} bytes are kept, and the same command continues", through(proxy.as_ref()))]
    Failed {
        /// The address.
        url: String,
        /// The proxy that may be the cause.
        proxy: Option<ProxyVariable>,
        /// curl's own message.
        reason: String,
        /// The bytes that are here.
        kept: u64,
    },
}

/// An environment variable that names a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProxyVariable {
    name: &'static str,
    /// The proxy, without the password that a value may contain.
    proxy: String,
}

impl ProxyVariable {
    /// Returns the variable by which curl finds the proxy for an address.
    fn of(url: &str, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let excepted = variable("no_proxy").or_else(|| variable("NO_PROXY"));
        if excepted.is_some_and(|hosts| contains_host(&hosts, url)) {
            return None;
        }
        // curl does not read HTTP_PROXY, which a web server may set for a client's header.
        let of_scheme: &[&str] = match url.starts_with("https:") {
            true => &["https_proxy", "HTTPS_PROXY"],
            false => &["http_proxy"],
        };
        let mut names = of_scheme.iter().chain(&["all_proxy", "ALL_PROXY"]);
        names.find_map(|&name| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            let proxy = value.rsplit_once('@').map_or(&*value, |(_, proxy)| proxy);
            Some(Self {
                name,
                proxy: proxy.to_owned(),
            })
        })
    }
}

/// Returns whether curl's list of hosts without a proxy contains the host of an address, or a domain of it.
fn contains_host(hosts: &str, url: &str) -> bool {
    let authority = url.split("://").nth(1).unwrap_or(url).split('/').next();
    let host = authority
        .unwrap_or_default()
        .split(':')
        .next()
        .unwrap_or_default();
    let is_of_host = |listed: &str| {
        let listed = listed.trim_start_matches('.');
        let is_domain = host
            .strip_suffix(listed)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        listed == "*" || (is_domain && !listed.is_empty())
    };
    hosts.split([',', ' ']).any(is_of_host)
}

fn through(proxy: Option<&ProxyVariable>) -> String {
    proxy.map_or_else(String::new, |ProxyVariable { name, proxy }| {
        format!(" through the proxy {proxy} (correct or unset {name} if it is wrong)")
    })
}

/// The sizes that a file may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    /// The published size of the file itself.
    pub(super) exact: Option<u64>,
    /// The largest size, which a longer file exceeds at once.
    pub(super) most: Option<u64>,
}

/// Downloads `url` to `part`, behind the bytes that it has already. `has_progress` lets curl show it.
///
/// # Errors
/// [`TransferError`]; what was downloaded remains, unless it is too large.
pub(super) fn download(
    url: &str,
    part: &PartFile,
    size: Size,
    has_progress: bool,
) -> Result<(), TransferError> {
    let PartFile {
        path: part,
        file: lock,
    } = part;
    let bytes = size.exact;
    let (mut fruitless, mut restarts) = (0, 0);
    let mut length = length_of(lock, part)?;
    loop {
        if bytes == Some(length) {
            break;
        }
        if bytes.is_some_and(|bytes| length > bytes) {
            restart(lock, part)?;
            length = 0;
        }
        let transfer = call_curl(url, part, lock, size.most, has_progress)?;
        let Transfer { code, status, reason } = transfer;
        let grown = length_of(lock, part)?;
        if let Some(most) = size.most.filter(|&most| grown > most) {
            restart(lock, part)?;
            return Err(TransferError::TooLarge {
                url: url.to_owned(),
                most,
            });
        }
        let is_refused_range = code == NO_RANGES || (code == HTTP_ERROR && status == RANGE_NOT_SATISFIABLE);
        match code {
            0 => break,
            _ if is_refused_range && length > 0 && restarts == 0 => {
                restart(lock, part)?;
                (length, restarts) = (0, 1);
                continue;
            }
            code if TRANSIENT.contains(&code) && grown > length => fruitless = 0,
            code if TRANSIENT.contains(&code) && fruitless + 1 < FRUITLESS => fruitless += 1,
            _ => {
                return Err(TransferError::Failed {
                    url: url.to_owned(),
                    proxy: ProxyVariable::of(url, |name| env::var(name).ok()),
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

/// A file that is being downloaded, for this process alone until it is dropped.
#[derive(Debug)]
pub(super) struct PartFile {
    pub(super) path: PathBuf,
    file: File,
}

impl PartFile {
    /// Opens or creates the file.
    ///
    /// # Errors
    /// [`TransferError::Busy`] while another process has it.
    pub(super) fn lock(path: &Path) -> Result<Self, TransferError> {
        let failed = |source| write_error(path, source);
        loop {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(failed)?;
            }
            let opened = OpenOptions::new().create(true).append(true).open(path);
            let file = opened.map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => return Err(TransferError::Busy(path.to_owned())),
                Err(fs::TryLockError::Error(source)) => return Err(failed(source)),
            }
            // Another process may have finished and renamed the file before it was locked here. It is complete then, and another's.
            let own = file.metadata().map_err(failed)?;
            match fs::metadata(path) {
                Ok(named) if (named.dev(), named.ino()) == (own.dev(), own.ino()) => {
                    return Ok(Self {
                        path: path.to_owned(),
                        file,
                    });
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
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

/// Calls curl once, and ends it when the file is longer than `most`.
fn call_curl(
    url: &str,
    part: &Path,
    file: &File,
    most: Option<u64>,
    has_progress: bool,
) -> Result<Transfer, TransferError> {
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
    // A curl that outlives this process keeps the lock of the file that it writes, because its standard input is the locked file. It reads nothing.
    let locked = file.try_clone().map_err(|source| write_error(part, source))?;
    let mut child = curl
        .stdin(locked)
        .stdout(Stdio::piped())
        .stderr(has_message)
        .spawn()
        .map_err(TransferError::Curl)?;
    if let Some(most) = most {
        while child.try_wait().map_err(TransferError::Curl)?.is_none() {
            if length_of(file, part)? > most {
                child.kill().map_err(TransferError::Curl)?;
                break;
            }
            thread::sleep(SIZE_INTERVAL);
        }
    }
    let output = child.wait_with_output().map_err(TransferError::Curl)?;
    let printed = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code().unwrap_or(-1);
    let last = printed.lines().rfind(|line| !line.trim().is_empty());
    let reason = last.map_or_else(|| format!("curl ended with {}", output.status), str::to_owned);
    let status = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(Transfer { code, status, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curls_proxy_is_named_by_its_variable() {
        let name = |url: &str, set: &[&str]| {
            let variable = |name: &str| set.contains(&name).then(|| "proxy:3128".to_owned());
            ProxyVariable::of(url, variable).map(|found| found.name)
        };
        let (http, https) = ("http://a/b", "https://a/b");
        assert_eq!(name(http, &["http_proxy", "https_proxy"]), Some("http_proxy"));
        assert_eq!(name(https, &["HTTPS_PROXY", "ALL_PROXY"]), Some("HTTPS_PROXY"));
        assert_eq!(name(https, &["http_proxy", "all_proxy"]), Some("all_proxy"));
        assert_eq!(name(http, &["HTTP_PROXY", "https_proxy"]), None);
    }

    #[test]
    fn passwords_are_not_shown_and_excepted_hosts_have_no_proxy() {
        let with = |excepted: &str| {
            ProxyVariable::of("http://data.example.org:80/b", |name| match name {
                "http_proxy" => Some("http://user:pa@ss@proxy:3128".to_owned()),
                "no_proxy" => Some(excepted.to_owned()),
                _ => None,
            })
        };
        assert_eq!(
            with("other.org").map(|found| found.proxy).as_deref(),
            Some("proxy:3128")
        );
        assert_eq!(with("a.org, .example.org"), None);
        assert_eq!(with("*"), None);
        assert!(with("ample.org,").is_some());
    }
}
