//! `regatta-state`: the helper with root. systemd starts one for each connection to its socket, which is standard input and
//! output; whoever is not the agent's user is sent away before a word is read. Reads its command line from the unit alone.
//!
//! ```text
//! regatta-state --user NAME|ID [--journal DIR] [--root DIR]
//! ```
//!
//! Exit codes: 0 the visit is over and everything is put back, 1 something could not be put back, 2 wrong use, 3 could not.

use std::{
    env, fs,
    io::{self, BufReader, Write as _},
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use regatta_state::{board::Board, message::Line, peer, session};

/// Where systemd makes the unit's state directory.
const JOURNAL: &str = "/var/lib/regatta-state";

/// What the unit says.
struct Options {
    user: u32,
    journal: PathBuf,
    root: PathBuf,
}

fn main() -> ExitCode {
    let options = match options(env::args().skip(1)) {
        Ok(options) => options,
        Err(why) => return end(2, &why),
    };
    match visit(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, why)) => end(code, &why),
    }
}

fn visit(options: &Options) -> Result<(), (u8, String)> {
    let input = io::stdin();
    let who = peer::user_id(input.as_raw_fd()).map_err(|e| {
        (
            2,
            format!("standard input is no connection to a socket ({e}): systemd starts this"),
        )
    })?;
    let mut output = io::stdout();
    if who != options.user {
        let refused = Line::Refused(format!("user {who} may not set this board's state"));
        let _ = writeln!(output, "{refused}");
        return Err((3, format!("user {who} was sent away")));
    }
    session::serve(
        &Board::new(&options.root),
        &options.journal,
        BufReader::new(input),
        output,
    )
    .map_err(|why| (1, why))
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let (mut user, mut journal, mut root) = (None, PathBuf::from(JOURNAL), PathBuf::from("/"));
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--user" => user = Some(user_id(&value, Path::new("/etc/passwd"))?),
            "--journal" => journal = value.into(),
            "--root" => root = value.into(),
            _ => {
                return Err(format!(
                    "unknown option {word}; the first lines of its source say which there are"
                ));
            }
        }
    }
    Ok(Options {
        user: user.ok_or("--user is missing")?,
        journal,
        root,
    })
}

/// A user's number; names are looked up where system users are.
fn user_id(given: &str, passwd: &Path) -> Result<u32, String> {
    if let Ok(id) = given.parse() {
        return Ok(id);
    }
    let text = fs::read_to_string(passwd).map_err(|e| format!("{}: {e}", passwd.display()))?;
    let id = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.first() == Some(&given))
            .then(|| fields.get(2)?.parse().ok())
            .flatten()
    };
    text.lines()
        .find_map(id)
        .ok_or_else(|| format!("there is no user {given}"))
}

/// Says why on standard error, which is the system's journal.
fn end(code: u8, why: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "regatta-state: {why}");
    ExitCode::from(code)
}
