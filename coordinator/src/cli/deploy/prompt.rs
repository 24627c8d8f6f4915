//! Prompts at the terminal, one question at a time for any number of boards, or reads one password from standard input.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal as _, Write as _},
    sync::{Mutex, PoisonError},
};

use regatta_ssh::{Prompt, Question, Secret};
use regatta_text::escape_lines;

use super::{hidden_input, show::Show};
use crate::exit::Failure;

/// The source of answers.
pub(in crate::cli) struct TerminalPrompt<'a> {
    /// The password from standard input, for every question.
    supplied: Option<Secret>,
    accepted: Vec<String>,
    show: &'a Show,
    /// `None` without a terminal. The lock is held for one question.
    terminal: Option<Mutex<TypedPasswords>>,
}

/// The typed passwords by login. sudo there mostly requires the same password.
type TypedPasswords = BTreeMap<String, Secret>;

impl<'a> TerminalPrompt<'a> {
    pub(in crate::cli) fn new(
        password_stdin: bool,
        accepted: &[String],
        show: &'a Show,
    ) -> Result<Self, Failure> {
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

    /// Uses the terminal exclusively. Returns `None` without a terminal or an answer.
    fn at_terminal<R>(&self, read: impl FnOnce(&mut TypedPasswords) -> Option<R>) -> Option<R> {
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
            // A wrong password is still wrong the second time.
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
                    _ => write("yes, no, or the fingerprint that the board shows: ")?,
                }
            }
        })
        .unwrap_or(false)
    }
}

/// Writes to the terminal. Returns `None` when the terminal is gone.
fn write(text: &str) -> Option<()> {
    let mut terminal = io::stderr().lock();
    terminal.write_all(escape_lines(text).as_bytes()).ok()?;
    terminal.flush().ok()
}

/// Reads a line. Returns `None` when the terminal is gone, or Ctrl-D ended the line.
fn read_line() -> Option<String> {
    let mut line = String::new();
    let length = io::stdin().read_line(&mut line).ok()?;
    (length > 0).then_some(line)
}
