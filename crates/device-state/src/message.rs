//! The protocol between agent and helper: lines of words, so that neither end needs a library and `socat` can show them.
//!
//! ```text
//! 1 read                              control gpu-max - - 1300500000 ... done
//! 1 apply power-mode=0 gpu=lock:max   control gpu-min 306000000 1300500000 1300500000 ... done
//! 1 restore                           control gpu-min 1300500000 306000000 306000000 ... done
//! ```
//!
//! A response has one `control` line per control: its name, and its values before, as requested and as read now. The last
//! line is `done` or `refused TEXT`. After `refused` the board has its earlier state, unless the text says otherwise.
//! This file opens no socket.

use std::{fmt, str::FromStr};

use crate::{device_control::DeviceControl, state_request::StateRequest};

/// The protocol's version, the first word of each request.
pub const VERSION: u32 = 1;
/// The largest length of a line in bytes, for requests and responses.
pub const MAX_LINE_LEN: usize = 1024;

/// A request from the agent to the helper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HelperRequest {
    /// Reads these controls, or all controls of the board when the list is empty.
    Read(Vec<DeviceControl>),
    /// Applies a state and holds it until `Restore` or the end of the connection.
    Apply(StateRequest),
    /// Restores the earlier state, also when a helper that died had applied it.
    Restore,
}

/// The error for a line that is not a valid request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvalidHelperRequest {
    /// The request has another version, given here.
    Version(String),
    /// The line is not a request. Contains the line, without control characters and cut to 80 characters.
    Malformed(String),
}

impl fmt::Display for InvalidHelperRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(requested) => write!(
                f,
                "regatta-state has protocol version {VERSION}, but the request has version {requested}; \
                 hint: install agent and helper from one package"
            ),
            Self::Malformed(line) => write!(f, "`{line}` is not a request"),
        }
    }
}

impl std::error::Error for InvalidHelperRequest {}

impl fmt::Display for HelperRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(controls) => {
                write!(f, "{VERSION} read")?;
                controls.iter().try_for_each(|control| write!(f, " {control}"))
            }
            Self::Apply(request) => write!(f, "{VERSION} apply {request}"),
            Self::Restore => write!(f, "{VERSION} restore"),
        }
    }
}

impl FromStr for HelperRequest {
    type Err = InvalidHelperRequest;

    fn from_str(line: &str) -> Result<Self, InvalidHelperRequest> {
        let shown = || {
            line.chars()
                .filter(|c| !c.is_control())
                .take(80)
                .collect::<String>()
        };
        let (version, words) = line
            .split_once(' ')
            .ok_or_else(|| InvalidHelperRequest::Malformed(shown()))?;
        if version.parse() != Ok(VERSION) {
            return Err(InvalidHelperRequest::Version(version.chars().take(20).collect()));
        }
        match words.trim_end().split_once(' ').unwrap_or((words.trim_end(), "")) {
            ("read", controls) => {
                let controls: Result<Vec<DeviceControl>, _> =
                    controls.split_ascii_whitespace().map(str::parse).collect();
                controls
                    .map(Self::Read)
                    .map_err(|_| InvalidHelperRequest::Malformed(shown()))
            }
            ("restore", "") => Ok(Self::Restore),
            ("apply", request) => request
                .parse()
                .map(Self::Apply)
                .map_err(|_| InvalidHelperRequest::Malformed(shown())),
            _ => Err(InvalidHelperRequest::Malformed(shown())),
        }
    }
}

/// A control's values in a response: before, as requested, and as read now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlReport {
    pub control: DeviceControl,
    /// The value before the request was applied. `None` where it was unreadable or nothing was changed.
    pub before: Option<String>,
    /// The requested value. `None` where none was requested.
    pub requested: Option<String>,
    /// The value now. `None` where the control cannot be read.
    pub read: Option<String>,
}

impl ControlReport {
    /// Returns whether the control has its requested value.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.requested.is_none() || self.requested == self.read
    }
}

/// A line of the helper's response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseLine {
    Control(ControlReport),
    /// The last line of a request that succeeded.
    Done,
    /// The last line of a request that was refused, with the reason.
    Refused(String),
}

impl fmt::Display for ResponseLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn word(value: Option<&String>) -> &str {
            value.map_or("-", String::as_str)
        }
        match self {
            Self::Control(line) => write!(
                f,
                "control {} {} {} {}",
                line.control,
                word(line.before.as_ref()),
                word(line.requested.as_ref()),
                word(line.read.as_ref())
            ),
            Self::Done => f.write_str("done"),
            Self::Refused(reason) => write!(f, "refused {}", reason.replace(['\n', '\r'], " ")),
        }
    }
}

impl FromStr for ResponseLine {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        match kind {
            "done" => Ok(Self::Done),
            "refused" => Ok(Self::Refused(rest.to_owned())),
            "control" => {
                let words: Vec<&str> = rest.split(' ').collect();
                let &[control, before, requested, read] = words.as_slice() else {
                    return Err(());
                };
                let value = |word: &str| (word != "-").then(|| word.to_owned());
                Ok(Self::Control(ControlReport {
                    control: control.parse().map_err(|_| ())?,
                    before: value(before),
                    requested: value(requested),
                    read: value(read),
                }))
            }
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_responses_round_trip() {
        for text in [
            "1 read",
            "1 read memory-rate gpu-max",
            "1 restore",
            "1 apply power-mode=0 gpu=lock:max",
        ] {
            assert_eq!(text.parse::<HelperRequest>().unwrap().to_string(), text);
        }
        for text in [
            "control gpu-max - - 1300500000",
            "control core-3 1 0 0",
            "done",
            "refused it is busy",
        ] {
            assert_eq!(text.parse::<ResponseLine>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn garbage_and_other_versions_give_different_errors() {
        assert!(matches!(
            "2 read".parse::<HelperRequest>(),
            Err(InvalidHelperRequest::Version(_))
        ));
        for text in ["1 write /etc/passwd x", "1 apply path=/x", "1 read now", "1"] {
            assert!(
                matches!(
                    text.parse::<HelperRequest>(),
                    Err(InvalidHelperRequest::Malformed(_))
                ),
                "{text}"
            );
        }
        for text in ["control", "control x - - -", "control gpu-max 1", "ok"] {
            assert!(text.parse::<ResponseLine>().is_err(), "{text}");
        }
    }
}
