//! Authenticates the user: named key files, the ssh-agent's keys, the usual key files, and last a password.

use std::{
    env, io,
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use ssh2::{KeyboardInteractivePrompt, Session};

use crate::{
    access::Access,
    error::SshError,
    prompt::{Answer, Prompt, Question, retry_password},
    secret::Secret,
};

/// The key files that OpenSSH tries by default.
const USUAL: [&str; 3] = ["id_ed25519", "id_ecdsa", "id_rsa"];
/// libssh2's error for an unusable file, such as an encrypted key without a passphrase.
const FILE: ssh2::ErrorCode = ssh2::ErrorCode::Session(-16);
/// libssh2's error for a refused login, which can be retried.
const REFUSED: ssh2::ErrorCode = ssh2::ErrorCode::Session(-18);

/// Logs in.
///
/// # Errors
/// Returns [`SshError::Login`] with the attempted methods, or `SshError::Ended` when the host closes the connection.
pub(super) fn log_in(session: &Session, access: &Access, prompt: &dyn Prompt) -> Result<(), SshError> {
    // Some hosts accept everyone without authentication.
    let methods = match session.auth_methods(&access.user) {
        Ok(methods) => methods.to_owned(),
        Err(_) if session.authenticated() => return Ok(()),
        Err(error) => return Err(SshError::ended(access, &error)),
    };
    let mut tried = Vec::new();
    if methods.contains("publickey") && by_key(session, access, prompt, &mut tried) {
        return Ok(());
    }
    if methods.contains("password") || methods.contains("keyboard-interactive") {
        let question = Question::Password(access);
        let answer = retry_password(
            |again| prompt.secret(&question, again),
            |password| by_password(session, access, &methods, &password),
        )?;
        match answer {
            Answer::Right => return Ok(()),
            Answer::Wrong => tried.push("the password, which is wrong".to_owned()),
            Answer::None => tried.push("no password, because none was entered".to_owned()),
        }
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
    let try_file = |path: &Path, tried: &mut Vec<String>| match by_file(session, access, path, prompt) {
        Ok(()) => true,
        Err(why) => {
            tried.push(format!("the key {}{why}", path.display()));
            false
        }
    };
    if access.identities.iter().any(|path| try_file(path, tried)) {
        return true;
    }
    // A host closes the connection after a few keys, so named keys are the only ones offered.
    if !access.identities.is_empty() {
        return false;
    }
    if let Some(agent) = by_agent(session, access) {
        if session.authenticated() {
            return true;
        }
        tried.push(agent);
    }
    let usual = env::home_dir().map(|home| home.join(".ssh"));
    usual
        .into_iter()
        .flat_map(|directory| USUAL.map(|name| directory.join(name)))
        .filter(|path| path.exists())
        .any(|path| try_file(&path, tried))
}

/// Why a key file does not log in. The text follows the file's name in a message.
#[derive(Debug, thiserror::Error)]
enum KeyFailure {
    #[error(", which cannot be read: {0}")]
    Unreadable(io::Error),
    /// The host does not accept the key.
    #[error("")]
    Refused,
    #[error(" under another phrase")]
    WrongPhrase,
    #[error(" without its phrase")]
    NoPhrase,
}

/// Logs in with a key file.
fn by_file(session: &Session, access: &Access, path: &Path, prompt: &dyn Prompt) -> Result<(), KeyFailure> {
    // libssh2's error code does not distinguish a missing file from a refused key.
    regular_file::open(path).map_err(KeyFailure::Unreadable)?;
    let attempt = |phrase: Option<&str>| session.userauth_pubkey_file(&access.user, None, path, phrase);
    match attempt(None) {
        Ok(()) if session.authenticated() => return Ok(()),
        Err(error) if error.code() == FILE && has_phrase(path) => {}
        Ok(()) | Err(_) => return Err(KeyFailure::Refused),
    }
    // A passphrase is right if it decrypts the key, even if the host then refuses the key.
    let question = Question::Phrase(path);
    let answer = retry_password(
        |again| prompt.secret(&question, again),
        |phrase| match attempt(Some(phrase.expose())) {
            Err(error) if error.code() == FILE => Ok(false),
            Ok(()) | Err(_) => Ok::<bool, std::convert::Infallible>(true),
        },
    );
    match answer {
        Ok(Answer::Right) if session.authenticated() => Ok(()),
        Ok(Answer::Right) => Err(KeyFailure::Refused),
        Ok(Answer::Wrong) => Err(KeyFailure::WrongPhrase),
        Ok(Answer::None) => Err(KeyFailure::NoPhrase),
    }
}

/// Returns whether a key file is encrypted, judging by its text. In OpenSSH's format the cipher's name comes first.
fn has_phrase(path: &Path) -> bool {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let Ok(text) = regular_file::read_text(path) else {
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

/// Tries the ssh-agent's keys. Returns what was tried, or `None` without an agent.
fn by_agent(session: &Session, access: &Access) -> Option<String> {
    let socket: PathBuf = env::var_os("SSH_AUTH_SOCK")?.into();
    if !socket.exists() {
        return None;
    }
    let identities = || {
        let mut agent = session.agent()?;
        agent.connect()?;
        agent.list_identities()?;
        let identities = agent.identities()?;
        Ok::<_, ssh2::Error>((agent, identities))
    };
    let (agent, identities) = match identities() {
        Ok(found) => found,
        Err(error) => {
            let why = error.message();
            return Some(format!("no key of the ssh-agent, which does not answer: {why}"));
        }
    };
    for identity in &identities {
        if agent.userauth(&access.user, identity).is_ok() {
            break;
        }
    }
    Some(format!("{} keys of the ssh-agent", identities.len()))
}

/// Returns whether the host accepts the password.
///
/// # Errors
/// Returns an error when the host has closed the connection, as after several wrong passwords or a long wait.
fn by_password(
    session: &Session,
    access: &Access,
    methods: &str,
    password: &Secret,
) -> Result<bool, SshError> {
    let judged = |result: Result<(), ssh2::Error>| match result {
        Ok(()) => Ok(session.authenticated()),
        Err(error) if error.code() == REFUSED => Ok(false),
        Err(error) => Err(SshError::ended(access, &error)),
    };
    if methods.contains("password") && judged(session.userauth_password(&access.user, password.expose()))? {
        return Ok(true);
    }
    if methods.contains("keyboard-interactive") {
        let mut answers = Answers(password);
        return judged(session.userauth_keyboard_interactive(&access.user, &mut answers));
    }
    Ok(false)
}

/// Answers the questions of keyboard-interactive authentication with the password.
struct Answers<'a>(&'a Secret);

impl KeyboardInteractivePrompt for Answers<'_> {
    fn prompt(&mut self, _: &str, _: &str, questions: &[ssh2::Prompt<'_>]) -> Vec<String> {
        questions.iter().map(|_| self.0.expose().to_owned()).collect()
    }
}
