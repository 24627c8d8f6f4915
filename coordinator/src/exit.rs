//! The error type of the commands: the failure, the exit code and a hint.
//!
//! Libraries and the modules below use their own errors. A command turns them into a [`Failure`], and `main` prints its chain once.

use std::fmt;

use regatta_text::{ErrorChain, escape_json, escape_lines};

use crate::suggested_commands::complete;
use regatta_lab_net::keys::KeysError;
use regatta_lab_runs::catalogue_hint;
use regatta_lab_store::lab_error::LabError;
use regatta_types::{ErrorKind, ExitCode};

const fn code_of(kind: ErrorKind) -> ExitCode {
    match kind {
        ErrorKind::Usage => ExitCode::Usage,
        ErrorKind::Internal => ExitCode::Failed,
    }
}

/// The result of a command: its exit code or a failure.
pub type CommandResult = Result<ExitCode, Failure>;

/// The error of a command.
#[derive(Debug)]
pub struct Failure {
    code: ExitCode,
    error: anyhow::Error,
    hint: Option<String>,
    /// The option that suggested commands get.
    workspace_option: Option<String>,
    form: FailureForm,
}

/// How a failure is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureForm {
    /// For people, with the program's name.
    Text,
    /// The text of the parser of command lines, which has its own form.
    CommandLine,
    /// A JSON document with `error`, `hint` and `exit_code`.
    Json,
}

impl Failure {
    /// Creates a failure for wrong use (exit 2).
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        let error = error.into();
        Self {
            code: ExitCode::Usage,
            hint: error.downcast_ref().and_then(catalogue_hint),
            error,
            workspace_option: None,
            form: FailureForm::Text,
        }
    }

    /// Creates the failure for a command line that cannot be parsed.
    pub(crate) fn of_command_line(error: clap::Error) -> Self {
        Self {
            form: FailureForm::CommandLine,
            ..Self::usage(error)
        }
    }

    /// Returns the failure as a JSON document, for programs that request JSON.
    pub(crate) fn in_json(self) -> Self {
        Self {
            form: FailureForm::Json,
            ..self
        }
    }

    /// Creates the failure for a library's error, whose kind decides the exit code.
    pub(crate) fn of_kind(kind: ErrorKind, error: impl Into<anyhow::Error>) -> Self {
        Self {
            code: code_of(kind),
            ..Self::usage(error)
        }
    }

    /// Creates a failure for wrong use with its own message (exit 2).
    pub(crate) fn misuse(sentence: impl fmt::Display) -> Self {
        Self::usage(anyhow::anyhow!("{sentence}"))
    }

    /// Creates a failure of the command with its own message (exit 3).
    pub(crate) fn could_not(sentence: impl fmt::Display) -> Self {
        Self {
            code: ExitCode::Failed,
            error: anyhow::anyhow!("{sentence}"),
            hint: None,
            workspace_option: None,
            form: FailureForm::Text,
        }
    }

    /// Creates a failure for a command that Ctrl-C ended (exit 130).
    pub(crate) fn interrupted(sentence: impl fmt::Display) -> Self {
        Self {
            code: ExitCode::Interrupted,
            ..Self::misuse(sentence)
        }
    }

    /// Adds the subject of the failure, such as a file.
    pub(crate) fn context(mut self, subject: impl fmt::Display) -> Self {
        self.error = self.error.context(subject.to_string());
        self
    }

    /// Adds a hint for the user.
    pub(crate) fn hint(mut self, advice: impl fmt::Display) -> Self {
        self.hint = Some(advice.to_string());
        self
    }

    /// Adds a hint for the user unless the failure has one.
    pub(crate) fn default_hint(self, advice: impl fmt::Display) -> Self {
        if self.hint.is_some() {
            self
        } else {
            self.hint(advice)
        }
    }

    /// Adds a hint for the user if there is one.
    pub(crate) fn optional_hint(self, advice: Option<impl fmt::Display>) -> Self {
        match advice {
            Some(advice) => self.hint(advice),
            None => self,
        }
    }

    /// Adds the option that names the workspace to every suggested command.
    pub(crate) fn with_workspace_option(mut self, option: String) -> Self {
        self.workspace_option = Some(option);
        self
    }

    /// Returns the process's exit code.
    pub const fn code(&self) -> ExitCode {
        self.code
    }

    /// Returns the error chain as one sentence, and the hint on separate lines.
    pub(crate) fn reason(&self) -> String {
        let mut text = self.sentence();
        if let Some(hint) = &self.hint {
            text.push_str("\n  ");
            text.push_str(&escape_lines(hint).replace('\n', "\n  "));
        }
        text
    }

    /// Returns the error chain as one sentence.
    pub(crate) fn sentence(&self) -> String {
        ErrorChain(self.error.as_ref()).to_string()
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    /// A [`LabError`] keeps its hint, and its kind decides the exit code. Any other error is a failure of the command.
    fn from(error: E) -> Self {
        let error = error.into();
        let lab = error.downcast_ref::<LabError>();
        let of_keys = || error.downcast_ref::<KeysError>().and_then(KeysError::remedy);
        Self {
            code: code_of(lab.map_or(ErrorKind::Internal, LabError::kind)),
            hint: lab.and_then(LabError::advice).map(str::to_owned).or_else(of_keys),
            error,
            workspace_option: None,
            form: FailureForm::Text,
        }
    }
}

impl fmt::Display for Failure {
    /// Prints the error chain as one sentence, and the hint on its own line; or all as a JSON document.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let completed = |text: &str| match &self.workspace_option {
            None => text.to_owned(),
            Some(option) => complete(text, option),
        };
        match self.form {
            FailureForm::Text => f.write_str(&completed(&format!("regatta: {}", self.reason()))),
            FailureForm::CommandLine => f.write_str(self.error.to_string().trim_end()),
            FailureForm::Json => {
                let (error, hint) = match self.error.downcast_ref::<clap::Error>() {
                    Some(error) => in_parts(&error.to_string()),
                    None => (self.sentence(), self.hint.clone()),
                };
                let document = serde_json::json!({
                    "error": completed(&error),
                    "hint": hint.as_deref().map(completed),
                    "exit_code": self.code as u8,
                });
                f.write_str(&escape_json(&document.to_string()))
            }
        }
    }
}

/// Returns the error and the tips in the text of the parser of command lines, without the usage.
fn in_parts(text: &str) -> (String, Option<String>) {
    let mut paragraphs = text.split("\n\n").map(str::trim);
    let error = paragraphs
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ");
    let tips: Vec<&str> = paragraphs
        .filter_map(|paragraph| paragraph.strip_prefix("tip: "))
        .collect();
    (error.to_owned(), (!tips.is_empty()).then(|| tips.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exposed_key_is_reported_with_the_remedy_on_its_own_line() {
        let exposed = KeysError::Exposed {
            path: "lab/keys/ca.key".into(),
            mode: 0o644,
        };
        let failure = Failure::from(exposed);
        assert_eq!(failure.code(), ExitCode::Failed);
        assert_eq!(
            failure.to_string(),
            "regatta: lab/keys/ca.key can be read by others (mode 644)\n  run `chmod 600 lab/keys/ca.key`, and consider who may have read it"
        );
    }
}
