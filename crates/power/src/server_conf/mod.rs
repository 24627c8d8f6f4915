//! The power server's configuration, `server.conf`: read as the official server reads it, and rendered for a session.
//!
//! The template that power-dev ships still has the meter's keys in `[ptd]`, with which its own server does not start; here
//! every meter has its `[analyzerN]`. What is legal but fails later is found by [`lint`].

mod ini;
mod lint;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use crate::ptd;
use ini::{Ini, IniError};
pub use lint::{ConfFinding, ConfSeverity, lint};

/// The port that the official server listens on by default.
pub const DEFAULT_PORT: u16 = 4950;

/// How the meter's range of current is chosen for the ranging run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RangingMode {
    /// The meter chooses.
    #[default]
    Auto,
    /// The largest one. The official server sets it, and then the automatic one over it.
    Max,
}

/// A meter and the PTDaemon that reads it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnalyzerConf {
    /// PTDaemon's number for the meter.
    pub device_type: i64,
    /// How it is connected: empty for serial (and USB on Linux), `-n` TCP/IP, `-g` GPIB, `-y` TMCTL, `-U` USB.
    pub interface_flag: String,
    /// Where: a device file, address, serial number or board.
    pub device_port: String,
    /// The port that PTDaemon listens on; 0 means [`ptd::DEFAULT_PORT`].
    pub network_port: u16,
    /// The channels: one number for one channel, the count for device 48, first and count for other multichannel meters.
    pub channel: Vec<i64>,
    pub gpib_board: Option<i64>,
    /// PTDaemon's option for direct current, such as `-D`.
    pub dc_flag: Option<String>,
}

impl AnalyzerConf {
    /// The port that PTDaemon listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        match self.network_port {
            0 => ptd::DEFAULT_PORT,
            port => port,
        }
    }

    /// PTDaemon's arguments, in the official server's order.
    #[must_use]
    pub fn arguments(&self, log_file: &str) -> Vec<String> {
        let mut arguments = vec!["-l".to_owned(), log_file.to_owned()];
        arguments.extend(["-p".to_owned(), self.port().to_string()]);
        if let Some(board) = self.gpib_board {
            arguments.extend(["-b".to_owned(), board.to_string()]);
        }
        if !self.channel.is_empty() {
            arguments.extend(["-c".to_owned(), list(&self.channel)]);
        }
        arguments.extend(self.dc_flag.clone());
        if !self.interface_flag.is_empty() {
            arguments.push(self.interface_flag.clone());
        }
        arguments.extend([self.device_type.to_string(), self.device_port.clone()]);
        arguments
    }
}

/// A complete configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConf {
    /// The NTP server that client and server compare their clocks with.
    pub ntp_server: String,
    /// Where the server listens.
    pub listen: (IpAddr, u16),
    /// How ranges are found.
    pub ranging_mode: RangingMode,
    /// PTDaemon's executable, which is started without further arguments here.
    pub ptd: String,
    /// The meters, in order.
    pub analyzers: Vec<AnalyzerConf>,
}

/// A file that the official server does not start with, or that cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfError {
    /// It does not read.
    #[error("server.conf, line {line}: {reason}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A value is missing.
    #[error("server.conf has no `{key}` in [{section}]")]
    Missing {
        /// Where it belongs.
        section: String,
        /// What is missing.
        key: &'static str,
    },
    /// A value that the file cannot represent.
    #[error("`{value}` is not a valid value of `{key}` in server.conf")]
    Value {
        /// Of what.
        key: &'static str,
        value: String,
    },
}

impl ConfError {
    /// What can be done.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing {
                key: "deviceType" | "interfaceFlag" | "devicePort",
                ..
            } => {
                "the meter's keys belong into a section [analyzer1], not into [ptd] as in power-dev's template"
            }
            _ => "docs/power.md shows a complete server.conf",
        }
    }
}

impl From<IniError> for ConfError {
    fn from(error: IniError) -> Self {
        Self::Line {
            line: error.line,
            reason: error.fault.to_string(),
        }
    }
}

impl ServerConf {
    /// A configuration for one meter, with everything else as the official server has it by default.
    #[must_use]
    pub fn new(ntp_server: &str, ptd: &str, analyzer: AnalyzerConf) -> Self {
        Self {
            ntp_server: ntp_server.to_owned(),
            listen: (IpAddr::from([0, 0, 0, 0]), DEFAULT_PORT),
            ranging_mode: RangingMode::Auto,
            ptd: ptd.to_owned(),
            analyzers: vec![analyzer],
        }
    }

    /// Reads a file's text as the official server does.
    ///
    /// # Errors
    /// [`ConfError`] where that server would not start.
    pub fn read(text: &str) -> Result<Self, ConfError> {
        let ini = Ini::read(text)?;
        let file = File(&ini);
        let count = file.number("ptd", "analyzerCount")?.unwrap_or(1);
        // Each needs a section of its own, and no file has this many.
        let analyzers: Result<Vec<_>, _> = (1..=count.clamp(0, 1000))
            .map(|number| file.analyzer(&format!("analyzer{number}")))
            .collect();
        Ok(Self {
            ntp_server: file.required("server", "ntpServer")?,
            listen: match file.text("server", "listen")? {
                Some(text) => file.listen(&text)?,
                None => (IpAddr::from([0, 0, 0, 0]), DEFAULT_PORT),
            },
            ranging_mode: match file.text("server", "rangingMode")?.as_deref() {
                Some("MAX") => RangingMode::Max,
                _ => RangingMode::Auto,
            },
            ptd: file.required("ptd", "ptd")?,
            analyzers: analyzers?,
        })
    }

    /// The file's text.
    ///
    /// # Errors
    /// [`ConfError::Value`] for a value with line ends, or with spaces around it.
    pub fn render(&self) -> Result<String, ConfError> {
        let mut text = String::from("[server]\n");
        put(&mut text, "ntpServer", &self.ntp_server)?;
        put(
            &mut text,
            "listen",
            &format!("{} {}", self.listen.0, self.listen.1),
        )?;
        if self.ranging_mode == RangingMode::Max {
            put(&mut text, "rangingMode", "MAX")?;
        }
        text.push_str("\n[ptd]\n");
        put(&mut text, "ptd", &self.ptd)?;
        put(&mut text, "analyzerCount", &self.analyzers.len().to_string())?;
        for (number, analyzer) in (1..).zip(&self.analyzers) {
            text.push_str(&format!("\n[analyzer{number}]\n"));
            put(&mut text, "deviceType", &analyzer.device_type.to_string())?;
            put(&mut text, "interfaceFlag", &analyzer.interface_flag)?;
            put(&mut text, "devicePort", &analyzer.device_port)?;
            put(&mut text, "networkPort", &analyzer.port().to_string())?;
            if !analyzer.channel.is_empty() {
                put(&mut text, "channel", &list(&analyzer.channel))?;
            }
            if let Some(board) = analyzer.gpib_board {
                put(&mut text, "gpibBoard", &board.to_string())?;
            }
            if let Some(flag) = &analyzer.dc_flag {
                put(&mut text, "dcFlag", flag)?;
            }
        }
        Ok(text)
    }
}

/// Adds a line `key: value`.
fn put(text: &mut String, key: &'static str, value: &str) -> Result<(), ConfError> {
    if value.trim() != value || value.contains(char::is_control) {
        let value = value.to_owned();
        return Err(ConfError::Value { key, value });
    }
    text.push_str(&format!("{key}: {}\n", value.replace('%', "%%")));
    Ok(())
}

/// Numbers with commas between them.
fn list(numbers: &[i64]) -> String {
    let numbers: Vec<_> = numbers.iter().map(i64::to_string).collect();
    numbers.join(",")
}

/// Values of a file in the server's types.
struct File<'a>(&'a Ini);

impl File<'_> {
    fn text(&self, section: &str, key: &'static str) -> Result<Option<String>, ConfError> {
        Ok(self.0.get(section, key)?)
    }

    fn required(&self, section: &str, key: &'static str) -> Result<String, ConfError> {
        self.text(section, key)?.ok_or_else(|| ConfError::Missing {
            section: section.to_owned(),
            key,
        })
    }

    fn unreadable(&self, section: &str, key: &'static str, reason: String) -> ConfError {
        let line = self.0.line(section, key).unwrap_or_default();
        ConfError::Line { line, reason }
    }

    fn number(&self, section: &str, key: &'static str) -> Result<Option<i64>, ConfError> {
        let Some(text) = self.text(section, key)? else {
            return Ok(None);
        };
        let number = text.trim().parse();
        let unreadable = |_| self.unreadable(section, key, format!("`{text}` is not an integer"));
        number.map(Some).map_err(unreadable)
    }

    fn listen(&self, text: &str) -> Result<(IpAddr, u16), ConfError> {
        let read = text
            .split_once(' ')
            .and_then(|(address, port)| Some((address.parse().ok()?, port.trim().parse().ok()?)));
        read.ok_or_else(|| {
            let reason = format!("`{text}` is not an address and port, such as `0.0.0.0 4950`");
            self.unreadable("server", "listen", reason)
        })
    }

    fn analyzer(&self, section: &str) -> Result<AnalyzerConf, ConfError> {
        let missing = |key| ConfError::Missing {
            section: section.to_owned(),
            key,
        };
        let port = self.number(section, "networkPort")?.unwrap_or_default();
        let network_port = u16::try_from(port)
            .map_err(|_| self.unreadable(section, "networkPort", format!("`{port}` is not a TCP port")))?;
        let channel = match self.text(section, "channel")? {
            None => Vec::new(),
            Some(text) => {
                let numbers: Result<Vec<i64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
                let reason = || format!("`{text}` is not a list of numbers");
                numbers.map_err(|_| self.unreadable(section, "channel", reason()))?
            }
        };
        let analyzer = AnalyzerConf {
            device_type: self
                .number(section, "deviceType")?
                .ok_or_else(|| missing("deviceType"))?,
            interface_flag: self.required(section, "interfaceFlag")?,
            device_port: self.required(section, "devicePort")?,
            network_port,
            channel,
            gpib_board: self.number(section, "gpibBoard")?,
            dc_flag: self.text(section, "dcFlag")?,
        };
        if let Some(reason) = lint::channel_error(&analyzer) {
            return Err(self.unreadable(section, "channel", reason));
        }
        Ok(analyzer)
    }
}
