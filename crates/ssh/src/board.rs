//! Scripts and the link over which a board executes them, with arguments, input and rights. It does not know SSH. Tests implement
//! [`Board`] themselves.

use std::io::Read;

use regatta_text::{escape_start, quote_for_shell};

use crate::secret::Secret;

/// A lost link. An action that had begun on the board may or may not be complete.
#[derive(Debug, thiserror::Error)]
#[error("the link to the board was lost while {doing}: {why}")]
pub struct LinkLost {
    /// The action at that time, for messages.
    pub doing: String,
    /// The link's error message.
    pub why: String,
}

/// The result of a script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// Its exit code.
    pub code: i32,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Output {
    /// Returns the script's error message: the lines of Regatta's own scripts and packages. Without such lines, the last lines of standard
    /// error, or of standard output.
    pub fn error_text(&self) -> String {
        let text = if self.err.trim().is_empty() {
            &self.out
        } else {
            &self.err
        };
        let own: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("regatta-agent: "))
            .collect();
        if own.is_empty() {
            last_lines(text)
        } else {
            last_lines(&own.join("\n"))
        }
    }
}

/// The maximum number of characters to show of a line from a board.
const MAX_LINE: usize = 500;

/// Returns the last lines of a text from a board, joined for use in a sentence.
pub fn last_lines(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| escape_start(line, MAX_LINE))
        .collect();
    let from = lines.len().saturating_sub(6);
    lines.get(from..).unwrap_or_default().join("; ")
}

/// A machine at the other end of a link.
pub trait Board {
    /// Runs a command line in the login shell with `input`. Calls `sent` with the number of input bytes sent.
    ///
    /// # Errors
    /// Returns [`LinkLost`]. A failing command is not an error here.
    fn run(
        &self,
        doing: &str,
        line: &str,
        input: &mut dyn Read,
        sent: &mut dyn FnMut(u64),
    ) -> Result<Output, LinkLost>;
}

/// The source of root rights.
#[derive(Debug, Clone)]
pub enum Root {
    /// The login is root.
    Already,
    /// By sudo, which requires no password.
    Sudo,
    /// By sudo with a password.
    SudoWith(Secret),
}

/// One of Regatta's scripts with its arguments.
#[derive(Debug, Clone, Copy)]
pub struct Script<'a> {
    /// The work of the script, for messages, for example `copying the package`.
    pub doing: &'a str,
    /// The POSIX shell script.
    pub text: &'a str,
    /// The arguments `$1`, `$2` ...
    pub words: &'a [&'a str],
}

impl Script<'_> {
    /// Runs the script as the login's user.
    ///
    /// # Errors
    /// Returns [`LinkLost`].
    pub fn run(&self, board: &dyn Board, input: &mut dyn Read) -> Result<Output, LinkLost> {
        board.run(self.doing, &self.line(), input, &mut |_| {})
    }

    /// Does the same as [`Self::run`] and reports the number of input bytes sent.
    ///
    /// # Errors
    /// Returns [`LinkLost`].
    pub fn feed(
        &self,
        board: &dyn Board,
        input: &mut dyn Read,
        sent: &mut dyn FnMut(u64),
    ) -> Result<Output, LinkLost> {
        board.run(self.doing, &self.line(), input, sent)
    }

    /// Runs the script by `root`, or as the login's user without it.
    ///
    /// The password is the first line of the input. sudo may or may not read that line, depending on its rules. The script skips to the
    /// line `regatta: input follows` and reads on from there.
    ///
    /// # Errors
    /// Returns [`LinkLost`].
    pub fn run_as(
        &self,
        root: Option<&Root>,
        board: &dyn Board,
        input: &mut dyn Read,
    ) -> Result<Output, LinkLost> {
        match root {
            None | Some(Root::Already) => self.run(board, input),
            Some(Root::Sudo) => board.run(
                self.doing,
                &format!("sudo -n {}", self.line()),
                input,
                &mut |_| {},
            ),
            Some(Root::SudoWith(password)) => {
                let line = format!("{}\n{INPUT}\n", password.expose());
                let mut input = line.as_bytes().chain(input);
                // The shell's `read` consumes no byte after its line.
                let skip = format!("while IFS= read -r line && [ \"$line\" != '{INPUT}' ]; do :; done");
                let text = format!("{skip}\n{}", self.text);
                let script = Script { text: &text, ..*self };
                board.run(
                    self.doing,
                    &format!("env LC_ALL=C sudo -k -S -p '' {}", script.line()),
                    &mut input,
                    &mut |_| {},
                )
            }
        }
    }

    /// Returns the command line. It starts `sh` with quoted arguments, because the login may have any shell. The last output line is
    /// [`END`], which distinguishes a finished script from a broken link.
    fn line(&self) -> String {
        let text = format!("(\n{}\n)\ncode=$?\nprintf '\\n{END}\\n'\nexit $code", self.text);
        let mut line = format!("sh -c {} regatta", quote_for_shell(&text));
        for word in self.words {
            line.push(' ');
            line.push_str(&quote_for_shell(word));
        }
        line
    }
}

/// The line before the script's own input, where a password precedes it.
const INPUT: &str = "regatta: input follows";

/// The last line of every script's output.
pub const END: &str = "regatta: heard to the end";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn printed_by_sh(word: &str) -> String {
        let script = Script {
            doing: "printing",
            text: "printf %s \"$1\"",
            words: &[word],
        };
        let output = std::process::Command::new("sh")
            .args(["-c", &script.line()])
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        printed.strip_suffix(&format!("\n{END}\n")).unwrap().to_owned()
    }

    #[test]
    fn no_word_is_understood_as_shell() {
        for word in [
            "",
            "a b",
            "$(touch /tmp/x)",
            "`id`",
            "'; id; '",
            "\\'",
            "-n",
            "*",
            "\n",
            "ä",
        ] {
            assert_eq!(printed_by_sh(word), word);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_word_arrives_as_it_is(word in "[^\\x00]{0,40}") {
            prop_assert_eq!(printed_by_sh(&word), word);
        }
    }
}
