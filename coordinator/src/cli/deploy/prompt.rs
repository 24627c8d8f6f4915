//! Asking: at the terminal, one question at a time however many boards are at work; or a password from standard input, once.

use std::{
    io::{self, IsTerminal as _},
    sync::{Mutex, PoisonError},
};

use console::Term;

use super::Show;
use crate::{
    deploy::{
        Secret,
        ssh::{Access, Prompt},
    },
    exit::Failure,
};

/// Who is asked.
pub(super) struct Asker<'a> {
    /// From standard input: for every question.
    given: Option<Secret>,
    accepted: Vec<String>,
    show: &'a Show,
    terminal: Option<Mutex<Term>>,
}

impl<'a> Asker<'a> {
    pub(super) fn new(password_stdin: bool, accepted: &[String], show: &'a Show) -> Result<Self, Failure> {
        let given = if password_stdin {
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
            given,
            accepted: accepted.to_vec(),
            show,
            terminal: is_there.then(|| Mutex::new(Term::stderr())),
        })
    }

    /// The password for sudo on a board.
    pub(super) fn sudo_password(&self, access: &Access) -> Option<Secret> {
        self.secret(&format!("sudo password of {access}"), false)
    }

    fn ask(&self, question: &str, answer: impl FnOnce(&Term) -> io::Result<String>) -> Option<String> {
        let terminal = self
            .terminal
            .as_ref()?
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.show.aside(|| {
            terminal.write_str(question).ok()?;
            answer(&terminal).ok()
        })
    }
}

impl Prompt for Asker<'_> {
    fn secret(&self, what: &str, again: bool) -> Option<Secret> {
        if let Some(given) = &self.given {
            // A password that is wrong is wrong the second time too.
            return (!again).then(|| given.clone());
        }
        let sorry = if again { "wrong; " } else { "" };
        let answer = self.ask(&format!("{sorry}{what}: "), Term::read_secure_line)?;
        (!answer.is_empty()).then(|| Secret::new(answer))
    }

    fn accepts(&self, host: &str, kind: &str, fingerprint: &str) -> bool {
        if self.accepted.iter().any(|accepted| accepted == fingerprint) {
            return true;
        }
        let question = format!(
            "{host} is not known yet.\nIts {kind} key is {fingerprint}\n(`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the board \
             shows it too.)\nIs that it? yes/no: "
        );
        self.ask(&question, Term::read_line)
            .is_some_and(|answer| answer.trim() == "yes")
    }
}
