//! Runs the system's `openssl enc`, which the official script uses and recipients of the package have.
//!
//! The format is OpenSSL's own: `Salted__`, 8 bytes of salt, then AES-256-CBC. The key comes from one round of SHA-256 over
//! password and salt. The protection therefore depends on the password's length alone, but the official script opens this format.

use std::{
    io::{self, BufWriter, Read, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
};

use super::PackError;
use regatta_fsutil::regular_file;
use regatta_submission_check::files::{At, buffered};

/// The environment variable with the password for `openssl`. Only processes of the same user can read it.
const VARIABLE: &str = "REGATTA_PACKAGE_PASSWORD";

/// The source of the password.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// `openssl` prompts for it on the terminal.
    Prompt,
    /// The password itself.
    Text(String),
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Prompt => "Ask",
            Self::Text(_) => "Given(..)",
        })
    }
}

/// Encrypts the output of `write` to `target`, and returns the value of `write`. Errors name the package `output`.
pub(super) fn encrypt<T>(
    target: &mut (impl Write + Send),
    output: &Path,
    password: &Password,
    write: impl FnOnce(&mut BufWriter<ChildStdin>) -> Result<T, PackError>,
) -> Result<T, PackError> {
    let mut child = start("-e", password, Stdio::piped(), Stdio::piped())?;
    let (Some(input), Some(encrypted)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(ended(child, Work::of("write", output), None));
    };
    let (written, copied) = thread::scope(|scope| {
        // `openssl` stops reading if its output is not read.
        let copier = scope.spawn(move || io::copy(&mut buffered(encrypted), target));
        let mut input = BufWriter::with_capacity(1 << 18, input);
        let written = write(&mut input).and_then(|value| {
            input.flush().at("write", output)?;
            Ok(value)
        });
        drop(input);
        (written, copier.join())
    });
    let copied = copied.unwrap_or_else(|_| Err(io::Error::other("the copying thread panicked")));
    if let Err(error) = copied {
        // The cause is this error, for example a full disk; `openssl` only reports a broken pipe.
        wait(child);
        return Err(error).at("write", output)?;
    }
    match written {
        Ok(value) => finish(child, Work::of("write", output)).map(|()| value),
        // The message of `openssl` explains more than the broken pipe.
        Err(error) => Err(ended(child, Work::of("write", output), Some(error))),
    }
}

/// Decrypts `input` and passes the data to `read`.
pub(super) fn decrypt<T>(
    input: &Path,
    password: &Password,
    read: impl FnOnce(&mut dyn Read) -> Result<T, PackError>,
) -> Result<T, PackError> {
    let source = regular_file::open(input).at("open", input)?;
    let mut child = start("-d", password, source.into(), Stdio::piped())?;
    let Some(output) = child.stdout.take() else {
        return Err(ended(child, Work::of("decrypt", input), None));
    };
    let value = read_on(output, read);
    match value {
        Ok(value) => finish(child, Work::of("decrypt", input)).map(|()| value),
        Err(error) => Err(ended(child, Work::of("decrypt", input), Some(error))),
    }
}

/// Reads to the end even if `read` stops earlier, so that `openssl` does not fail on a closed pipe.
fn read_on<T>(
    output: ChildStdout,
    read: impl FnOnce(&mut dyn Read) -> Result<T, PackError>,
) -> Result<T, PackError> {
    let mut output = buffered(output);
    let value = read(&mut output)?;
    let rest = io::copy(&mut output, &mut io::sink());
    rest.at("read", Path::new("the decrypted package"))?;
    Ok(value)
}

fn start(mode: &str, password: &Password, input: Stdio, output: Stdio) -> Result<Child, PackError> {
    let mut command = Command::new("openssl");
    command.args(["enc", mode, "-aes256", "-md", "sha256"]);
    if let Password::Text(password) = password {
        command
            .args(["-pass", &format!("env:{VARIABLE}")])
            .env(VARIABLE, password);
    }
    let child = command.stdin(input).stdout(output).stderr(Stdio::piped()).spawn();
    child.map_err(|source| PackError::NoOpenssl { source })
}

/// What `openssl` does, for messages.
#[derive(Clone, Copy)]
struct Work<'a> {
    action: &'static str,
    /// The package.
    path: &'a Path,
}

impl<'a> Work<'a> {
    const fn of(action: &'static str, path: &'a Path) -> Self {
        Self { action, path }
    }
}

fn finish(child: Child, work: Work<'_>) -> Result<(), PackError> {
    let (succeeded, messages) = wait(child);
    if succeeded {
        return Ok(());
    }
    Err(failed(work, messages))
}

/// Returns the error with the messages of `openssl`.
fn failed(work: Work<'_>, messages: String) -> PackError {
    PackError::Openssl {
        action: work.action,
        path: work.path.to_owned(),
        messages,
    }
}

/// Returns the error of a process whose pipe was closed early: the messages of `openssl`, unless it succeeded.
fn ended(child: Child, work: Work<'_>, error: Option<PackError>) -> PackError {
    let (succeeded, messages) = wait(child);
    match error {
        Some(
            error @ (PackError::NotAnArchive { .. } | PackError::Hostile { .. } | PackError::TooLarge { .. }),
        ) => error,
        Some(error) if succeeded || messages.is_empty() => error,
        _ => failed(work, messages),
    }
}

/// Returns whether the process succeeded, and its messages except the warning about key derivation.
fn wait(mut child: Child) -> (bool, String) {
    let errors = child.stderr.take();
    let reader = thread::spawn(move || {
        let mut messages = String::new();
        if let Some(errors) = errors {
            // Unreadable messages are ignored; the exit status is not.
            let _ = errors.take(1 << 16).read_to_string(&mut messages);
        }
        messages
    });
    let succeeded = child.wait().is_ok_and(|status| status.success());
    let messages = reader.join().unwrap_or_default();
    let relevant: Vec<_> = messages
        .lines()
        .filter(|line| !line.starts_with("*** WARNING") && !line.starts_with("Using -iter"))
        .collect();
    (succeeded, relevant.join("; "))
}
