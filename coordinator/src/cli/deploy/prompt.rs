//! Asking: at the terminal, one question at a time however many boards are at work; or a password from standard input, once.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal as _, Write as _},
    sync::{Mutex, PoisonError},
};

use regatta_text::escape_lines;

use super::{hidden_input, show::Show};
use crate::{
    deploy::{
        Secret,
        ssh::{Prompt, Question},
    },
    exit::Failure,
};

/// Who is asked.
pub(super) struct TerminalPrompt<'a> {
    /// From standard input: for every question.
    supplied: Option<Secret>,
    accepted: Vec<String>,
    show: &'a Show,
    /// `None` where nobody sits at a terminal. Held for the length of a question.
    terminal: Option<Mutex<Typed>>,
}

/// The passwords that were typed for logins, by login: sudo there mostly wants the same.
type Typed = BTreeMap<String, Secret>;

impl<'a> TerminalPrompt<'a> {
    pub(super) fn new(password_stdin: bool, accepted: &[String], show: &'a Show) -> Result<Self, Failure> {
        let supplied = if password_stdin {
            let mut line = String::new();
            io::stdin().read_line(&mut line)?;
            let password = line.trim_end_matches(['\r', '\n']);
            if password.is_empty() {
                return Err(Failure::misuse(
                    "--password-stdin: standard input has no password",
                ));
            }
            Some(Secret::new(password.to_owned()))
        } else {
            None
        };
        let is_there = io::stdin().is_terminal() && io::stderr().is_terminal();
        Ok(Self {
            supplied,
            accepted: accepted.to_vec(),
            show,
            terminal: is_there.then(Mutex::default),
        })
    }

    /// Has the terminal for itself. `None` where there is none, or nothing was answered.
    fn at_terminal<R>(&self, read: impl FnOnce(&mut Typed) -> Option<R>) -> Option<R> {
        let mut typed = self
            .terminal
            .as_ref()?
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.show.aside(|| read(&mut typed))
    }
}

impl Prompt for TerminalPrompt<'_> {
    fn secret(&self, question: &Question<'_>, again: bool) -> Option<Secret> {
        if let Some(supplied) = &self.supplied {
            // A password that is wrong is wrong the second time too.
            return (!again).then(|| supplied.clone());
        }
        self.at_terminal(|typed| {
            let of_login = match question {
                Question::Sudo(access) if !again => typed.get(&access.to_string()),
                _ => None,
            };
            let wrong = if again { "wrong; " } else { "" };
            let short = if of_login.is_some() {
                " (Enter: the login's)"
            } else {
                ""
            };
            write(&format!("{wrong}{question}{short}: "))?;
            let answer = hidden_input::read_line().ok()?;
            if answer.is_empty() {
                return of_login.cloned();
            }
            let answer = Secret::new(answer);
            if let Question::Password(access) = question {
                typed.insert(access.to_string(), answer.clone());
            }
            Some(answer)
        })
    }

    fn accepts(&self, host: &str, kind: &str, fingerprint: &str) -> bool {
        if self.accepted.iter().any(|accepted| accepted == fingerprint) {
            return true;
        }
        self.at_terminal(|_| {
            write(&format!(
                "{host} is not known yet.\nIts {kind} key is {fingerprint}\n(on the board: ssh-keygen -lf \
                 /etc/ssh/ssh_host_ed25519_key.pub)\nIs that it? yes/no: "
            ))?;
            loop {
                match read_line()?.trim() {
                    "yes" => return Some(true),
                    answer if answer == fingerprint => return Some(true),
                    "no" | "" => return Some(false),
                    _ => write("yes, no, or the fingerprint as the board says it: ")?,
                }
            }
        })
        .unwrap_or(false)
    }
}

/// `None` when the terminal is gone.
fn write(text: &str) -> Option<()> {
    let mut terminal = io::stderr().lock();
    terminal.write_all(escape_lines(text).as_bytes()).ok()?;
    terminal.flush().ok()
}

/// `None` when the terminal is gone, or the line was ended by Ctrl-D.
fn read_line() -> Option<String> {
    let mut line = String::new();
    let length = io::stdin().read_line(&mut line).ok()?;
    (length > 0).then_some(line)
}
