//! The client's commands: fields with commas between them.

use uuid::Uuid;

use crate::{
    protocol::{FETCHED_FILES, session_name::is_label},
    session::Part,
};

/// The command of a client.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Command {
    /// The server's time.
    Time,
    /// The server's clock is to be set.
    SetNtp,
    /// The server is to end after this client.
    StopServer,
    /// A new session.
    New { label: String, client: Uuid },
    /// A step of a session.
    Step { session: String, step: Step },
    /// A file of a session.
    Download { session: String, file: &'static str },
    /// The session's files are no longer needed.
    CleanUp { session: String },
}

/// A step of a session.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// The meter is to measure.
    Start(Part, Option<ManualRanges>),
    /// The meter is to stop.
    Stop(Part),
    /// The session is complete.
    Done,
}

/// Ranges that the client sets instead of those of a ranging run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ManualRanges {
    pub(super) volts: f64,
    pub(super) amps: f64,
}

/// The error for a line that is not a command: the reply to it, which the client shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InvalidCommand(pub(super) &'static str);

impl Command {
    /// Reads a line.
    ///
    /// # Errors
    /// Returns [`InvalidCommand`] with the reply to the line.
    pub(super) fn read(line: &str) -> Result<Self, InvalidCommand> {
        let fields: Vec<&str> = line.split(',').collect();
        match fields.as_slice() {
            ["time"] => Ok(Self::Time),
            ["set_ntp"] => Ok(Self::SetNtp),
            ["stop"] => Ok(Self::StopServer),
            ["new", label, _] if !is_label(label) => Err(InvalidCommand("Error: invalid label")),
            ["new", label, client] => Ok(Self::New {
                label: (*label).to_owned(),
                client: client
                    .parse()
                    .map_err(|_| InvalidCommand("Error: invalid UUID"))?,
            }),
            ["session", session, step @ ..] => Ok(Self::Step {
                session: (*session).to_owned(),
                step: read_step(step)?,
            }),
            ["download", session, file] => {
                let known = FETCHED_FILES.into_iter().find(|known| known == file);
                Ok(Self::Download {
                    session: (*session).to_owned(),
                    file: known.ok_or(InvalidCommand("Error: no such file of a session"))?,
                })
            }
            ["cleanup", session] => Ok(Self::CleanUp {
                session: (*session).to_owned(),
            }),
            _ => Err(InvalidCommand("Error: unknown command")),
        }
    }
}

fn read_step(fields: &[&str]) -> Result<Step, InvalidCommand> {
    let part = |word: &str| match word {
        "ranging" => Ok(Part::Ranging),
        "testing" => Ok(Part::Testing),
        _ => Err(InvalidCommand("Error: a run is ranging or testing")),
    };
    match fields {
        ["start", word] => Ok(Step::Start(part(word)?, None)),
        ["start", "testing", volts, amps] => {
            let range = |text: &str| {
                let number = text.parse::<f64>().ok();
                let number = number.filter(|number| number.is_finite() && *number > 0.0);
                number.ok_or(InvalidCommand("Error: a range is a number above 0"))
            };
            let (volts, amps) = (range(volts)?, range(amps)?);
            Ok(Step::Start(Part::Testing, Some(ManualRanges { volts, amps })))
        }
        ["stop", word] => Ok(Step::Stop(part(word)?)),
        ["done"] => Ok(Step::Done),
        _ => Err(InvalidCommand("Error: unknown session command")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_official_commands_are_read() {
        let step = |line| match Command::read(line) {
            Ok(Command::Step { step, .. }) => Ok(step),
            Ok(other) => panic!("{other:?}"),
            Err(reply) => Err(reply),
        };
        assert_eq!(
            step("session,a,start,ranging"),
            Ok(Step::Start(Part::Ranging, None))
        );
        assert_eq!(step("session,*,stop,testing"), Ok(Step::Stop(Part::Testing)));
        assert_eq!(step("session,a,done"), Ok(Step::Done));
        let manual = ManualRanges {
            volts: 230.0,
            amps: 5.5,
        };
        assert_eq!(
            step("session,a,start,testing,230.0,5.5"),
            Ok(Step::Start(Part::Testing, Some(manual)))
        );
        assert!(matches!(
            Command::read("new,,5b4e5bb3-5a46-4b06-b71e-9b3e8ea9b2f2"),
            Ok(Command::New { .. })
        ));
    }

    #[test]
    fn unknown_commands_get_an_error() {
        for line in [
            "",
            "times",
            "new,a/b,5b4e5bb3-5a46-4b06-b71e-9b3e8ea9b2f2",
            "new,a,b",
            "session,a",
            "session,a,start",
            "session,a,start,all",
            "session,a,start,testing,inf,5",
            "session,a,start,testing,230,-1",
            "download,a,power/../../../etc/passwd",
            "download,a,/etc/passwd",
            "download,a,power/client.json",
            "cleanup",
        ] {
            assert!(Command::read(line).unwrap_err().0.starts_with("Error"), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_line_panics(line in ".{0,80}") {
            let _ = Command::read(&line);
        }
    }
}
