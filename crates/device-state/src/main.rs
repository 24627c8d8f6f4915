//! `regatta-state`: the privileged helper. systemd starts one process for each connection to its socket, which becomes
//! standard input and output. The helper accepts requests only from the agent's user, and checks that before it reads
//! anything. Its options come from the systemd unit and never from the connection.
//!
//! ```text
//! regatta-state --user NAME|ID [--journal DIR] [--root DIR]
//! ```
//!
//! Exit codes: 0 the session has ended and everything is restored, 1 something could not be restored, 2 wrong use,
//! 3 the peer is not the agent's user.

use std::{
    env, fs,
    io::{self, BufReader, Write as _},
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use regatta_device_state::{board_controls::BoardControls, message::ResponseLine, peer, session};

/// The unit's state directory, which systemd creates.
const JOURNAL: &str = "/var/lib/regatta-state";

/// The options on the command line.
struct Options {
    user: u32,
    journal: PathBuf,
    root: PathBuf,
}

fn main() -> ExitCode {
    let options = match options(env::args().skip(1)) {
        Ok(options) => options,
        Err(reason) => return end(2, &reason),
    };
    match run_session(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, reason)) => end(code, &reason),
    }
}

fn run_session(options: &Options) -> Result<(), (u8, String)> {
    let input = io::stdin();
    let user = peer::user_id(input.as_raw_fd()).map_err(|e| {
        (
            2,
            format!("standard input is not a connected socket: {e}; hint: only systemd starts this program"),
        )
    })?;
    let mut output = io::stdout();
    if user != options.user {
        let refused = ResponseLine::Refused(format!("user {user} may not set this board's state"));
        let _ = writeln!(output, "{refused}");
        return Err((3, format!("user {user} was refused")));
    }
    session::serve(
        &BoardControls::new(&options.root),
        &options.journal,
        BufReader::new(input),
        output,
    )
    .map_err(|refusal| (1, refusal.reason))
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
                    "unknown option {word}; hint: the options are --user, --journal and --root"
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

/// Returns a user's id from a number or from a name in the passwd file.
fn user_id(name_or_id: &str, passwd: &Path) -> Result<u32, String> {
    if let Ok(id) = name_or_id.parse() {
        return Ok(id);
    }
    let text = fs::read_to_string(passwd).map_err(|e| format!("{}: {e}", passwd.display()))?;
    let id = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.first() == Some(&name_or_id))
            .then(|| fields.get(2)?.parse().ok())
            .flatten()
    };
    text.lines()
        .find_map(id)
        .ok_or_else(|| format!("there is no user {name_or_id}"))
}

/// Writes the reason to standard error, which systemd sends to its journal, and returns the exit code.
fn end(code: u8, reason: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "regatta-state: {reason}");
    ExitCode::from(code)
}
