//! A user's session as text: each command as it is typed, then the screen of 80 columns at its end. It masks values that
//! differ between sessions: times, figures, random ids, ports.

use std::{
    collections::BTreeMap,
    num::NonZero,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{agent, regatta, terminal::Terminal};

/// The width of the terminal.
pub const COLUMNS: u16 = 80;
/// Rows of the screen, more than any command prints.
const ROWS: u16 = 600;

/// The units behind a number that is masked.
const UNITS: [&str; 13] = [
    "s",
    "ms",
    "us",
    "B",
    "kB",
    "MB",
    "GB",
    "%",
    "samples/s",
    "queries/s",
    "min",
    "bytes",
    "wake-ups",
];

/// A session in a directory.
pub struct Transcript {
    directory: PathBuf,
    variables: BTreeMap<String, String>,
    /// Texts and their replacements.
    masks: Vec<(String, String)>,
    text: String,
    commands: Vec<String>,
}

/// The result of a command.
#[derive(Debug)]
pub struct Shown {
    /// The exit code.
    pub code: i32,
    /// The lines of the screen.
    pub screen: String,
}

impl Transcript {
    /// Begins a session in a directory.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            variables: BTreeMap::new(),
            masks: vec![(directory.display().to_string(), "DIR".to_owned())],
            text: String::new(),
            commands: Vec::new(),
        }
    }

    /// Sets a variable of the environment of later commands.
    pub fn export(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
        self.text
            .push_str(&format!("$ export {name}={}\n\n", self.masked(value)));
    }

    /// Shows `mask` in the place of `text` from now on. Later masks are applied before earlier ones.
    pub fn mask(&mut self, text: &str, mask: &str) {
        self.masks.insert(0, (text.to_owned(), mask.to_owned()));
    }

    /// Returns a command of either program for a command line, whose words are separated by blanks.
    ///
    /// # Panics
    /// Panics when it names neither program.
    #[must_use]
    pub fn command(&self, line: &str) -> Command {
        let mut words = line.split_ascii_whitespace();
        let mut command = Command::new(match words.next() {
            Some("regatta") => regatta(),
            Some("regatta-agent") => agent(),
            other => panic!("{other:?} is not one of the two programs"),
        });
        command
            .args(words)
            .current_dir(&self.directory)
            .envs(&self.variables);
        command
    }

    /// Executes a command at the terminal and writes command, screen and exit code into the transcript.
    pub fn run(&mut self, line: &str) -> Shown {
        let shown = self.show(line);
        let screen = self.masked(&shown.screen);
        self.text.push_str(&screen);
        self.text.push_str(if screen.is_empty() { "" } else { "\n" });
        self.end(shown.code);
        shown
    }

    /// Executes a command whose lines and exit code depend on the machine. The transcript has the lines that begin with one of `stable`.
    pub fn run_measured(&mut self, line: &str, stable: &[&str]) -> Shown {
        let shown = self.show(line);
        for line in self.masked(&shown.screen).lines() {
            if stable.iter().any(|begin| line.trim_start().starts_with(begin)) {
                self.text.push_str(&format!("{line}\n"));
            }
        }
        self.text.push_str("...\n\n");
        shown
    }

    /// Adds text that a program wrote, masked.
    pub fn add(&mut self, title: &str, text: &str) {
        let masked = self.masked(text);
        self.text.push_str(&format!("# {title}\n{masked}\n\n"));
    }

    /// Returns the transcript.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the masked command lines.
    #[must_use]
    pub fn commands(&self) -> &[String] {
        &self.commands
    }

    fn show(&mut self, line: &str) -> Shown {
        let typed = self.masked(line);
        self.text.push_str(&format!("$ {typed}\n"));
        self.commands.push(typed);
        let mut terminal = Terminal::start(&self.command(line));
        let code = terminal.end().code().unwrap_or(-1);
        let screen = screen(&terminal.shown_at_end());
        Shown { code, screen }
    }

    fn end(&mut self, code: i32) {
        if code != 0 {
            self.text.push_str(&format!("[exit code {code}]\n"));
        }
        self.text.push('\n');
    }

    fn masked(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (part, mask) in &self.masks {
            text = text.replace(part, mask);
        }
        let text = without_run_ids(&text);
        text.lines().map(masked_line).collect::<Vec<_>>().join("\n")
    }
}

/// Returns the picture of the terminal after a program wrote `bytes` to it.
fn screen(bytes: &str) -> String {
    let [rows, columns] = [ROWS, COLUMNS].map(|size| NonZero::new(size).expect("a size"));
    let mut parser = vt100::Parser::new(rows, columns, 0);
    parser.process(bytes.as_bytes());
    let screen = parser.screen();
    let mut text = String::new();
    for (number, row) in (0_u16..).zip(screen.rows(0, COLUMNS)) {
        // A row that the terminal began in the middle of a line continues that line. Rows of progress are filled up with blanks.
        let continues =
            number > 0 && screen.row_wrapped(number - 1) && !text.ends_with(' ') && !row.starts_with(' ');
        if !continues {
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
        text.push_str(&row);
    }
    text.trim_end().trim_start_matches('\n').to_owned()
}

/// Masks the ids of runs, also within paths.
fn without_run_ids(text: &str) -> String {
    let is_id =
        |id: &str| id.matches('-').count() == 4 && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let mut masked = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if rest.get(..36).is_some_and(is_id) {
            masked.push_str("RUN");
            rest = &rest[36..];
        } else {
            masked.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    masked
}

/// Masks parts that differ between sessions, and shortens the gaps of tables, whose columns are as wide as their content.
fn masked_line(line: &str) -> String {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let cells = line
        .trim_start_matches(' ')
        .split("  ")
        .filter(|cell| !cell.trim().is_empty());
    let cells: Vec<String> = cells.map(|cell| masked_cell(cell.trim())).collect();
    format!("{}{}", &line[..indent], cells.join("  "))
}

fn masked_cell(cell: &str) -> String {
    if cell.starts_with('─') {
        return "──".to_owned();
    }
    if cell.len() > 1 && cell.chars().all(|c| c.is_ascii_digit()) {
        return "N".to_owned();
    }
    let words: Vec<&str> = cell.split(' ').collect();
    let masked = words
        .iter()
        .enumerate()
        .map(|(at, word)| masked_word(word, words.get(at + 1).copied()));
    masked.collect::<Vec<_>>().join(" ")
}

fn masked_word(word: &str, next: Option<&str>) -> String {
    let is_quote = |c: char| "()[],.;:`'\"".contains(c);
    let core = word.trim_matches(is_quote);
    let is_hex = |text: &str| {
        text.chars().all(|c| c.is_ascii_hexdigit()) && text.contains(|c: char| c.is_ascii_digit())
    };
    let only = |text: &str, allowed: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || allowed.contains(c))
    };
    let unit = next.map(|next| next.trim_matches(is_quote));
    let mask = if core.starts_with("regatta-enroll://") && core.len() > 80 {
        "TOKEN"
    } else if core.len() == 10 && only(core, "-") {
        "DATE"
    } else if (core.contains('T') && core.len() >= 8 || core.len() == 8 && core.contains(':'))
        && only(&core.replace(['T', 'Z'], ""), "-:.")
    {
        "TIME"
    } else if core.len() >= 8 && is_hex(core) {
        "HEX"
    } else if only(core, ".") && unit.is_some_and(|unit| UNITS.contains(&unit)) {
        "N"
    } else {
        return word.to_owned();
    };
    word.replacen(core, mask, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varying_parts_of_transcripts_are_masked() {
        let line = " 6ab2608b   d1   12:42:39   5.25 s   VALID   4212 samples/s";
        assert_eq!(masked_line(line), " HEX  d1  TIME  N s  VALID  N samples/s");
        let line = "until 2026-11-24 04:42:25 UTC (a7ddd8293881aab85499b851633e9b33), round v6.1";
        assert_eq!(masked_line(line), "until DATE TIME UTC (HEX), round v6.1");
        assert_eq!(masked_line("  597 of 256 stay"), "  597 of 256 stay");
        let path = "lab/runs/01a206e6-7aa5-776e-b52e-70395e541eff a-7 end";
        assert_eq!(without_run_ids(path), "lab/runs/RUN a-7 end");
        assert_eq!(screen("one\r\x1b[Ktwo\r\n"), "two");
    }
}
