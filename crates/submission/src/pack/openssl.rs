//! The system's `openssl enc`, which the official script uses and whoever receives the package has.
//!
//! The form is OpenSSL's own: `Salted__`, 8 bytes of salt, AES-256-CBC, the key by one round of SHA-256 over password and
//! salt. That protects by the password's length alone, and it is what the official script opens.

use std::{
    io::{self, BufWriter, Read, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
};

use super::PackError;
use crate::files::{At, buffered};
use regatta_fsutil::regular_file;

/// Carries a password to `openssl`; only this user's processes can read another's environment.
const VARIABLE: &str = "REGATTA_PACKAGE_PASSWORD";

/// Where the password comes from.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// `openssl` asks for it on the terminal.
    Prompt,
    /// This one.
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

/// Encrypts what `write` writes, to `target`, and returns what `write` returns. Errors name the package `output`.
pub(super) fn encrypt<T>(
    target: &mut (impl Write + Send),
    output: &Path,
    password: &Password,
    write: impl FnOnce(&mut BufWriter<ChildStdin>) -> Result<T, PackError>,
) -> Result<T, PackError> {
    let mut child = start("-e", password, Stdio::piped(), Stdio::piped())?;
    let (Some(input), Some(encrypted)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(ended(child, ("write", output), None));
    };
    let (written, copied) = thread::scope(|scope| {
        // `openssl` stops reading when nobody takes what it has encrypted.
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
        // The full disk is the cause; `openssl` only reports a broken pipe.
        wait(child);
        return Err(error).at("write", output)?;
    }
    match written {
        Ok(value) => finish(child, ("write", output)).map(|()| value),
        // A pipe that broke says less than the one who broke it.
        Err(error) => Err(ended(child, ("write", output), Some(error))),
    }
}

/// Hands what is encrypted in `input` to `read`.
pub(super) fn decrypt<T>(
    input: &Path,
    password: &Password,
    read: impl FnOnce(&mut dyn Read) -> Result<T, PackError>,
) -> Result<T, PackError> {
    let source = regular_file::open(input).at("open", input)?;
    let mut child = start("-d", password, source.into(), Stdio::piped())?;
    let Some(output) = child.stdout.take() else {
        return Err(ended(child, ("decrypt", input), None));
    };
    let value = read_on(output, read);
    match value {
        Ok(value) => finish(child, ("decrypt", input)).map(|()| value),
        Err(error) => Err(ended(child, ("decrypt", input), Some(error))),
    }
}

/// Reads to the end also when `read` has enough, so that `openssl` does not die of a closed pipe.
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

fn finish(child: Child, work: (&'static str, &Path)) -> Result<(), PackError> {
    let (succeeded, messages) = wait(child);
    if succeeded {
        return Ok(());
    }
    Err(failed(work, messages))
}

/// What `openssl` said of the work that it gave up: what it was to do, and to which package.
fn failed((action, path): (&'static str, &Path), messages: String) -> PackError {
    PackError::Openssl {
        action,
        path: path.to_owned(),
        messages,
    }
}

/// The error of a process that was left early: its own, unless it was content.
fn ended(child: Child, work: (&'static str, &Path), error: Option<PackError>) -> PackError {
    let (succeeded, messages) = wait(child);
    match error {
        Some(
            error @ (PackError::NotAnArchive { .. } | PackError::Hostile { .. } | PackError::TooLarge { .. }),
        ) => error,
        Some(error) if succeeded || messages.is_empty() => error,
        _ => failed(work, messages),
    }
}

/// Whether the process succeeded, and what it said besides its warning about the key's derivation.
fn wait(mut child: Child) -> (bool, String) {
    let errors = child.stderr.take();
    let reader = thread::spawn(move || {
        let mut messages = String::new();
        if let Some(errors) = errors {
            // What cannot be read is not told; the exit status is.
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
