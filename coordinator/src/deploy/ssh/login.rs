//! Proving who logs in: key files that were named, the ssh-agent's keys, the user's usual key files, and at last a password.

use std::{
    env,
    path::{Path, PathBuf},
};

use ssh2::{KeyboardInteractivePrompt, Prompt as Question, Session};

use super::{Access, Prompt, SshError};
use crate::deploy::Secret;

/// The keys that OpenSSH looks for.
const USUAL: [&str; 3] = ["id_ed25519", "id_ecdsa", "id_rsa"];
/// Passwords that are asked for at a terminal.
const TRIES: usize = 3;
/// libssh2's word for a file that it cannot use, such as a key under a phrase that it was not given.
const FILE: ssh2::ErrorCode = ssh2::ErrorCode::Session(-16);

/// Logs in.
///
/// # Errors
/// [`SshError::Login`], saying what was tried.
pub(super) fn log_in(session: &Session, access: &Access, prompt: &dyn Prompt) -> Result<(), SshError> {
    // Some hosts let everybody in; then there is nothing to prove.
    let methods = match session.auth_methods(&access.user) {
        Ok(methods) => methods.to_owned(),
        Err(_) if session.authenticated() => return Ok(()),
        Err(error) => return Err(SshError::protocol(access, "logging in", &error)),
    };
    let mut tried = Vec::new();
    if methods.contains("publickey") && by_key(session, access, prompt, &mut tried) {
        return Ok(());
    }
    if methods.contains("password") || methods.contains("keyboard-interactive") {
        let mut asked = false;
        for again in [false, true, true].into_iter().take(TRIES) {
            let Some(password) = prompt.secret(&format!("password of {access}"), again) else {
                break;
            };
            asked = true;
            if by_password(session, access, &methods, &password) {
                return Ok(());
            }
        }
        tried.push(if asked {
            "the password, which is wrong".to_owned()
        } else {
            "no password, because nobody is there to ask".to_owned()
        });
    }
    if tried.is_empty() {
        tried.push(format!("nothing: it takes {methods} alone"));
    }
    Err(SshError::Login {
        to: access.to_string(),
        tried: tried.join(", "),
    })
}

fn by_key(session: &Session, access: &Access, prompt: &dyn Prompt, tried: &mut Vec<String>) -> bool {
    for path in &access.identities {
        if by_file(session, access, path, prompt) {
            return true;
        }
        tried.push(format!("the key {}", path.display()));
    }
    // A host ends the connection after a few keys: where some are named, no others are offered.
    if !access.identities.is_empty() {
        return false;
    }
    if let Some(count) = by_agent(session, access) {
        if session.authenticated() {
            return true;
        }
        tried.push(format!("{count} keys of the ssh-agent"));
    }
    let usual = env::home_dir().map(|home| home.join(".ssh"));
    for path in usual
        .into_iter()
        .flat_map(|directory| USUAL.map(|name| directory.join(name)))
    {
        if !path.exists() {
            continue;
        }
        if by_file(session, access, &path, prompt) {
            return true;
        }
        tried.push(format!("the key {}", path.display()));
    }
    false
}

fn by_file(session: &Session, access: &Access, path: &Path, prompt: &dyn Prompt) -> bool {
    let attempt = |phrase: Option<&str>| session.userauth_pubkey_file(&access.user, None, path, phrase);
    match attempt(None) {
        Ok(()) => session.authenticated(),
        Err(error) if error.code() == FILE && has_phrase(path) => prompt
            .secret(&format!("phrase of the key {}", path.display()), false)
            .is_some_and(|phrase| attempt(Some(phrase.expose())).is_ok() && session.authenticated()),
        Err(_) => false,
    }
}

/// Whether a key file is encrypted, as far as its text tells. In OpenSSH's format the cipher's name comes first.
fn has_phrase(path: &Path) -> bool {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let Ok(text) = std::fs::read_to_string(path) else {
        return false;
    };
    let Some(body) = text.split_once("-----BEGIN OPENSSH PRIVATE KEY-----") else {
        return text.contains("ENCRYPTED");
    };
    let digits: String = body.1.chars().filter(|c| !c.is_whitespace()).take(80).collect();
    STANDARD
        .decode(digits)
        .is_ok_and(|bytes| !bytes.windows(4).any(|word| word == b"none"))
}

/// Tries the ssh-agent's keys; returns how many there are, `None` without an agent.
fn by_agent(session: &Session, access: &Access) -> Option<usize> {
    let mut agent = session.agent().ok()?;
    let socket: PathBuf = env::var_os("SSH_AUTH_SOCK")?.into();
    if !socket.exists() {
        return None;
    }
    agent.connect().ok()?;
    agent.list_identities().ok()?;
    let identities = agent.identities().ok()?;
    for identity in &identities {
        if agent.userauth(&access.user, identity).is_ok() {
            break;
        }
    }
    Some(identities.len())
}

fn by_password(session: &Session, access: &Access, methods: &str, password: &Secret) -> bool {
    if methods.contains("password") && session.userauth_password(&access.user, password.expose()).is_ok() {
        return session.authenticated();
    }
    if methods.contains("keyboard-interactive") {
        let mut answers = Answers(password);
        return session
            .userauth_keyboard_interactive(&access.user, &mut answers)
            .is_ok()
            && session.authenticated();
    }
    false
}

/// Hosts that ask for the password as a question.
struct Answers<'a>(&'a Secret);

impl KeyboardInteractivePrompt for Answers<'_> {
    fn prompt(&mut self, _: &str, _: &str, questions: &[Question<'_>]) -> Vec<String> {
        questions.iter().map(|_| self.0.expose().to_owned()).collect()
    }
}
