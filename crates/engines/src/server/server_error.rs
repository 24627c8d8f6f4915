//! Why a model server does not run or cannot be used, with the last lines that it printed.

use std::{
    error::Error, fmt, io, net::SocketAddr, os::unix::process::ExitStatusExt as _, process::ExitStatus,
    time::Duration,
};

use super::http::HttpError;

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServerError {
    #[error("the server's program cannot be started")]
    Start(#[source] io::Error),
    #[error("the server cannot listen on port {0}; hint: the setting `server_port` names another")]
    Port(u16, #[source] io::Error),
    #[error(
        "no server listens at {0}; hint: start it and wait until it listens, or leave out the setting `server_address`, so that the run starts one"
    )]
    NothingListens(SocketAddr),
    #[error("the server {}{}", ended(*.0), .1)]
    Ended(Option<ExitStatus>, LastLines),
    /// The last answer of the path that shows whether it is ready, if there was one.
    #[error("the server was not ready within {} s{}{}", .limit.as_secs(), last_answer(.answer.as_ref()), .lines)]
    NotReady {
        limit: Duration,
        answer: Option<HttpError>,
        lines: LastLines,
    },
    #[error("the server cannot be used: {}{}", .0, .1)]
    Unusable(Box<dyn Error + Send + Sync>, LastLines),
    #[error("the server was started again during the run{0}")]
    Restarted(LastLines),
    #[error("the evidence of the server cannot be written")]
    Evidence(#[source] io::Error),
}

/// The last lines of a server, as the end of a message.
#[derive(Debug)]
pub(super) enum LastLines {
    /// Those of its log. Empty if it printed nothing.
    Printed(String),
    /// The run did not start it and has no log.
    NotKnown,
}

impl fmt::Display for LastLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Printed(lines) if lines.is_empty() => f.write_str("; it printed nothing"),
            Self::Printed(lines) => write!(f, "; it printed last:\n{lines}"),
            Self::NotKnown => f.write_str("; the run has not started it and does not have its log"),
        }
    }
}

/// Returns what a server answered last, other than that nothing listens.
fn last_answer(answer: Option<&HttpError>) -> String {
    match answer {
        None | Some(HttpError::Connect(_)) => String::new(),
        Some(answer) => format!(": {answer}"),
    }
}

fn ended(status: Option<ExitStatus>) -> String {
    /// What `sh` returns when a program does not exist, and when it may not be executed.
    const NOT_FOUND: i32 = 127;
    const NOT_EXECUTABLE: i32 = 126;
    match status {
        Some(status) if status.code() == Some(NOT_FOUND) => {
            "cannot be started: its program is not installed".to_owned()
        }
        Some(status) if status.code() == Some(NOT_EXECUTABLE) => {
            "cannot be started: its program cannot be executed".to_owned()
        }
        Some(status) => match (status.code(), status.signal()) {
            // `sh` adds 128 to a signal's number.
            (Some(code), _) if code > 128 => format!("was ended by signal {}", code - 128),
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
        },
        None => "has ended".to_owned(),
    }
}
