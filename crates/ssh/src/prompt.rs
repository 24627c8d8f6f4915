//! Questions to the user, and attempts with the answers. The command line implements [`Prompt`]; nothing here reads a terminal.

use std::{fmt, path::Path};

use crate::{access::Access, secret::Secret};

/// A secret to prompt for.
#[derive(Debug, Clone, Copy)]
pub enum Question<'a> {
    /// The password of a login.
    Password(&'a Access),
    /// The passphrase of a key file.
    Phrase(&'a Path),
    /// The password of a login's user for sudo.
    Sudo(&'a Access),
}

impl fmt::Display for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password(access) => write!(f, "password of {access}"),
            Self::Phrase(path) => write!(f, "phrase of the key {}", path.display()),
            Self::Sudo(access) => write!(f, "sudo password of {access}"),
        }
    }
}

/// Asks the user at a terminal, or reads from a file instead.
pub trait Prompt: Sync {
    /// Prompts for a secret. `again` is true after a wrong one. Returns `None` without a terminal to prompt on and without another known
    /// secret.
    fn secret(&self, question: &Question<'_>, again: bool) -> Option<Secret>;
    /// Asks whether to accept an unknown host key. `fingerprint` has the format of `ssh-keygen -l`.
    fn accepts(&self, host: &str, kind: &str, fingerprint: &str) -> bool;
}

/// The result of asking for a secret and trying it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A secret was right.
    Right,
    /// Every secret was wrong.
    Wrong,
    /// No secret was entered.
    None,
}

/// The maximum number of attempts at a terminal.
const TRIES: usize = 3;

/// Prompts until the answer is right, at most three times. The argument of `next_password` is whether the previous answer was wrong.
/// `is_right` tries the answer.
///
/// # Errors
/// Returns the error of `is_right`.
pub fn retry_password<E>(
    mut next_password: impl FnMut(bool) -> Option<Secret>,
    mut is_right: impl FnMut(Secret) -> Result<bool, E>,
) -> Result<Answer, E> {
    let mut answer = Answer::None;
    for _ in 0..TRIES {
        let Some(secret) = next_password(answer == Answer::Wrong) else {
            break;
        };
        if is_right(secret)? {
            return Ok(Answer::Right);
        }
        answer = Answer::Wrong;
    }
    Ok(answer)
}
