//! The seam between the steps of a deployment and the link to the board: run a script there, with words, input and rights.
//! Knows the shell's quoting and nothing of SSH; tests stand in for the board behind [`Board`].

use std::io::Read;

use super::secret::Secret;
use crate::fleet::printable;

/// A link that does not carry any more. What was begun on the board may have been done or not.
#[derive(Debug, thiserror::Error)]
#[error("the link to the board was lost while {doing}: {why}")]
pub(crate) struct LinkLost {
    /// What was going on, in words.
    pub(crate) doing: String,
    /// What the link said.
    pub(crate) why: String,
}

/// What a script left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Output {
    /// Its exit code.
    pub(crate) code: i32,
    /// Its standard output.
    pub(crate) out: String,
    /// Its standard error.
    pub(crate) err: String,
}

impl Output {
    /// What it complained of: what our own scripts and packages said, else the last lines of its standard error, else of its
    /// output.
    pub(crate) fn error_text(&self) -> String {
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

/// Characters of a line from a board that are shown.
const LONGEST_LINE: usize = 500;

/// The last few lines of a text that came from a board, as one, for a sentence.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| printable(line, LONGEST_LINE))
        .collect();
    let from = lines.len().saturating_sub(6);
    lines.get(from..).unwrap_or_default().join("; ")
}

/// A machine at the other end of a link.
pub(crate) trait Board {
    /// Runs one command line in the login shell there, feeding it `input`. `sent` is told how many bytes of it have gone.
    ///
    /// # Errors
    /// [`LinkLost`]; a command that fails is no error here.
    fn run(
        &self,
        doing: &str,
        line: &str,
        input: &mut dyn Read,
        sent: &mut dyn FnMut(u64),
    ) -> Result<Output, LinkLost>;
}

/// How root's rights are had.
#[derive(Debug, Clone)]
pub(crate) enum Root {
    /// The login is root's.
    Already,
    /// By sudo, which asks for nothing.
    Sudo,
    /// By sudo with a password.
    SudoWith(Secret),
}

/// One script of ours with its words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Script<'a> {
    /// What it does, for messages: `copying the package`.
    pub(crate) doing: &'a str,
    /// POSIX shell.
    pub(crate) text: &'a str,
    /// Its `$1`, `$2` ...
    pub(crate) words: &'a [&'a str],
}

impl Script<'_> {
    /// Runs it as the login's user.
    ///
    /// # Errors
    /// [`LinkLost`].
    pub(crate) fn run(&self, board: &dyn Board, input: &mut dyn Read) -> Result<Output, LinkLost> {
        board.run(self.doing, &self.line(), input, &mut |_| {})
    }

    /// As [`Self::run`], telling how much of the input has gone.
    ///
    /// # Errors
    /// [`LinkLost`].
    pub(crate) fn feed(
        &self,
        board: &dyn Board,
        input: &mut dyn Read,
        sent: &mut dyn FnMut(u64),
    ) -> Result<Output, LinkLost> {
        board.run(self.doing, &self.line(), input, sent)
    }

    /// Runs it as root where `root` says how, else as the login's user. The password travels on the link's own input, before
    /// what the script reads. sudo reads that line or none, as its rules say; the script reads on from [`INPUT`].
    ///
    /// # Errors
    /// [`LinkLost`].
    pub(crate) fn run_as(
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
                // The shell's `read` takes no byte beyond its line.
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

    /// The command line: whatever shell the login has, it starts `sh` with quoted words. At the end stands [`END`], by which
    /// a script that was heard to its end is told from a link that broke.
    fn line(&self) -> String {
        let text = format!("(\n{}\n)\ncode=$?\nprintf '\\n{END}\\n'\nexit $code", self.text);
        let mut line = format!("sh -c {} regatta", quoted(&text));
        for word in self.words {
            line.push(' ');
            line.push_str(&quoted(word));
        }
        line
    }
}

/// The line before what a script reads, where a password came first.
const INPUT: &str = "regatta: input follows";

/// The last line of every script's output.
pub(crate) const END: &str = "regatta: heard to the end";

/// One word of a shell, whatever is in it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

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
