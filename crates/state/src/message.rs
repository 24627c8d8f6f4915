//! What agent and helper say to each other: lines of words, so that both ends need no library and `socat` can listen in.
//!
//! ```text
//! 1 read                              knob gpu-max - - 1300500000 ... done
//! 1 apply power-mode=0 gpu=lock:max   knob gpu-min 306000000 1300500000 1300500000 ... done
//! 1 restore                           knob gpu-min 1300500000 306000000 306000000 ... done
//! ```
//!
//! A knob's line holds what was found before, what was wanted and what is read now. The last line is `done`, or
//! `refused TEXT`: then the board is as it was before, unless the text says otherwise.

use std::{fmt, str::FromStr};

use crate::{knob::Knob, wish::Wish};

/// The words' version, with which each request begins.
pub const VERSION: u32 = 1;
/// The longest line of either side.
pub const LONGEST_LINE: usize = 1024;

/// What the agent asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Says what these knobs are at; all of them, when none is named.
    Read(Vec<Knob>),
    /// Sets a state and holds it until `Restore`, or until the connection ends.
    Apply(Wish),
    /// Puts back what was found before, also what a helper that died has left.
    Restore,
}

/// A request that cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrongRequest {
    /// Of another version.
    Version(String),
    /// Not a request.
    Words(String),
}

impl fmt::Display for WrongRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(theirs) => write!(
                f,
                "this regatta-state speaks version {VERSION}, and was spoken to in version {theirs}: \
                 install agent and helper from one package"
            ),
            Self::Words(words) => write!(f, "`{words}` is no request"),
        }
    }
}

impl std::error::Error for WrongRequest {}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(knobs) => {
                write!(f, "{VERSION} read")?;
                knobs.iter().try_for_each(|knob| write!(f, " {knob}"))
            }
            Self::Apply(wish) => write!(f, "{VERSION} apply {wish}"),
            Self::Restore => write!(f, "{VERSION} restore"),
        }
    }
}

impl FromStr for Request {
    type Err = WrongRequest;

    fn from_str(line: &str) -> Result<Self, WrongRequest> {
        let shown = || {
            line.chars()
                .filter(|c| !c.is_control())
                .take(80)
                .collect::<String>()
        };
        let (version, words) = line.split_once(' ').ok_or_else(|| WrongRequest::Words(shown()))?;
        if version.parse() != Ok(VERSION) {
            return Err(WrongRequest::Version(version.chars().take(20).collect()));
        }
        match words.trim_end().split_once(' ').unwrap_or((words.trim_end(), "")) {
            ("read", knobs) => {
                let knobs: Result<Vec<Knob>, _> = knobs.split_ascii_whitespace().map(str::parse).collect();
                knobs.map(Self::Read).map_err(|_| WrongRequest::Words(shown()))
            }
            ("restore", "") => Ok(Self::Restore),
            ("apply", wish) => wish
                .parse()
                .map(Self::Apply)
                .map_err(|_| WrongRequest::Words(shown())),
            _ => Err(WrongRequest::Words(shown())),
        }
    }
}

/// One knob's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnobLine {
    /// Which.
    pub knob: Knob,
    /// What was found before; `None` where it was not there or nothing was changed.
    pub before: Option<String>,
    /// What was wanted; `None` where nothing was.
    pub wanted: Option<String>,
    /// What is read now.
    pub read: Option<String>,
}

impl KnobLine {
    /// Whether what is read is what was wanted.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.wanted.is_none() || self.wanted == self.read
    }
}

/// A line of the helper's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A knob.
    Knob(KnobLine),
    /// All was done; nothing follows.
    Done,
    /// It was not, and why; nothing follows.
    Refused(String),
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn word(value: Option<&String>) -> &str {
            value.map_or("-", String::as_str)
        }
        match self {
            Self::Knob(line) => write!(
                f,
                "knob {} {} {} {}",
                line.knob,
                word(line.before.as_ref()),
                word(line.wanted.as_ref()),
                word(line.read.as_ref())
            ),
            Self::Done => f.write_str("done"),
            Self::Refused(why) => write!(f, "refused {}", why.replace(['\n', '\r'], " ")),
        }
    }
}

impl FromStr for Line {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        match kind {
            "done" => Ok(Self::Done),
            "refused" => Ok(Self::Refused(rest.to_owned())),
            "knob" => {
                let words: Vec<&str> = rest.split(' ').collect();
                let &[knob, before, wanted, read] = words.as_slice() else {
                    return Err(());
                };
                let value = |word: &str| (word != "-").then(|| word.to_owned());
                Ok(Self::Knob(KnobLine {
                    knob: knob.parse().map_err(|_| ())?,
                    before: value(before),
                    wanted: value(wanted),
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
    fn both_ends_read_what_the_other_writes() {
        for text in [
            "1 read",
            "1 read memory-rate gpu-max",
            "1 restore",
            "1 apply power-mode=0 gpu=lock:max",
        ] {
            assert_eq!(text.parse::<Request>().unwrap().to_string(), text);
        }
        for text in [
            "knob gpu-max - - 1300500000",
            "knob core-3 1 0 0",
            "done",
            "refused it is busy",
        ] {
            assert_eq!(text.parse::<Line>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn garbage_and_other_versions_are_told_apart() {
        assert!(matches!(
            "2 read".parse::<Request>(),
            Err(WrongRequest::Version(_))
        ));
        for text in ["1 write /etc/passwd x", "1 apply path=/x", "1 read now", "1"] {
            assert!(
                matches!(text.parse::<Request>(), Err(WrongRequest::Words(_))),
                "{text}"
            );
        }
        for text in ["knob", "knob x - - -", "knob gpu-max 1", "ok"] {
            assert!(text.parse::<Line>().is_err(), "{text}");
        }
    }
}
