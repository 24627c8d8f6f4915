//! The shell of a login, which decides how a command line and the path of a program's file are written. It starts nothing.
//!
//! OpenSSH on Windows passes a command to `cmd.exe /c "..."`, or to PowerShell with `-c` (PowerShell/openssh-portable,
//! `w32-doexec.c`). Its SFTP names the drive behind a slash: `/C:/Users/me`.

use regatta_text::quote_for_shell;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoginShell {
    /// A POSIX shell.
    Posix,
    /// Windows' `cmd.exe`, the one that OpenSSH uses there unless it is configured.
    Cmd,
    /// PowerShell.
    PowerShell,
}

/// A word that no command line of Windows can contain.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` cannot be passed to a shell of Windows: it has a quotation mark, a percent sign, a line end, or ends with a backslash"
)]
pub(super) struct UnusableWord(String);

impl LoginShell {
    /// A command that each shell answers in another way. Only Windows has the variable.
    pub(super) const QUESTION: &str = "echo %OS% $env:OS";

    /// Returns the shell that gives this answer to [`Self::QUESTION`].
    pub(super) fn of_answer(answer: &str) -> Self {
        match (answer.contains("Windows_NT"), answer.contains("$env:OS")) {
            (true, true) => Self::Cmd,
            (true, false) => Self::PowerShell,
            (false, _) => Self::Posix,
        }
    }

    /// Returns the command line that starts a program with its arguments.
    pub(super) fn line(self, words: &[&str]) -> Result<String, UnusableWord> {
        if self == Self::Posix {
            let words: Vec<String> = words.iter().map(|word| quote_for_shell(word)).collect();
            return Ok(format!("exec {}", words.join(" ")));
        }
        let is_unusable = |word: &&&str| word.contains(['"', '%', '\r', '\n', '\0']) || word.ends_with('\\');
        if let Some(word) = words.iter().find(is_unusable) {
            return Err(UnusableWord((*word).to_owned()));
        }
        Ok(match self {
            Self::Cmd => {
                let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                words.join(" ")
            }
            // Without the end, PowerShell's own exit code would only be 0 or 1.
            _ => {
                let words: Vec<String> = words
                    .iter()
                    .map(|word| format!("'{}'", doubled_quotes(word)))
                    .collect();
                format!("& {}; exit $LASTEXITCODE", words.join(" "))
            }
        })
    }

    /// Returns a path of SFTP as programs of the machine read it.
    pub(super) fn program_path(self, path: &str) -> &str {
        match (self, path.as_bytes()) {
            (Self::Cmd | Self::PowerShell, [b'/', _, b':', ..]) => &path[1..],
            _ => path,
        }
    }
}

/// Returns a word with each of its single quotes twice. PowerShell takes typographic ones for single quotes, too.
fn doubled_quotes(word: &str) -> String {
    const QUOTES: [char; 5] = ['\'', '\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}'];
    word.chars()
        .flat_map(|each| std::iter::repeat_n(each, if QUOTES.contains(&each) { 2 } else { 1 }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_is_known_by_its_answer() {
        for (answer, shell) in [
            ("%OS% :OS", LoginShell::Posix),
            ("", LoginShell::Posix),
            ("Windows_NT $env:OS", LoginShell::Cmd),
            ("%OS%\nWindows_NT", LoginShell::PowerShell),
        ] {
            assert_eq!(LoginShell::of_answer(answer), shell, "{answer}");
        }
    }

    #[test]
    fn shell_quoting_keeps_arguments_unchanged() {
        let words = ["C:\\Program Files\\python.exe", "a & b", "it's", ""];
        let line = |shell: LoginShell| shell.line(&words).unwrap();
        assert_eq!(
            line(LoginShell::Cmd),
            r#""C:\Program Files\python.exe" "a & b" "it's" """#
        );
        assert_eq!(
            line(LoginShell::PowerShell),
            r"& 'C:\Program Files\python.exe' 'a & b' 'it''s' ''; exit $LASTEXITCODE"
        );
        for word in ["a\"b", "%PATH%", "a\nb", "C:\\"] {
            assert!(
                LoginShell::Cmd.line(&[word]).is_err() && LoginShell::PowerShell.line(&[word]).is_err(),
                "{word}"
            );
        }
    }

    #[test]
    fn only_windows_has_drives() {
        let path = "/C:/Users/me";
        assert_eq!(LoginShell::Cmd.program_path(path), "C:/Users/me");
        assert_eq!(LoginShell::PowerShell.program_path(path), "C:/Users/me");
        assert_eq!(LoginShell::Posix.program_path(path), path);
        assert_eq!(LoginShell::Cmd.program_path("/srv"), "/srv");
    }
}
