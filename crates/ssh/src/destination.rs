//! Parses `user@host[:port]`.

use std::{fmt, str::FromStr};

use regatta_text::escape_start;

/// An error in a destination.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// The text has another form.
    #[error("`{0}` is not written user@host or user@host:port; put an IPv6 address in brackets")]
    Written(String),
    /// The jump hosts form a circle.
    #[error("the ProxyJump of `{0}` in ~/.ssh/config is circular")]
    Circle(String),
    /// The port is not a number.
    #[error("`{0}`, the Port of `{1}` in ~/.ssh/config, is not a port")]
    Port(String, String),
}

/// A destination from the command line or a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The login's user, if given.
    pub user: Option<String>,
    /// The host, possibly an alias of `~/.ssh/config`.
    pub host: String,
    /// The port, if given.
    pub port: Option<u16>,
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match (self.host.contains(':'), self.port) {
            (true, Some(port)) => write!(f, "[{}]:{port}", self.host),
            (false, Some(port)) => write!(f, "{}:{port}", self.host),
            (_, None) => f.write_str(&self.host),
        }
    }
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        let wrong = || DestinationError::Written(escape_start(text, 100));
        let (user, rest) = match text.rsplit_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, text),
        };
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or_else(wrong)?;
                match (after.is_empty(), after.strip_prefix(':')) {
                    (true, _) => (host, None),
                    (false, Some(port)) => (host, Some(port)),
                    (false, None) => return Err(wrong()),
                }
            }
            None if rest.matches(':').count() > 1 => (rest, None),
            None => rest
                .split_once(':')
                .map_or((rest, None), |(host, port)| (host, Some(port))),
        };
        let port = match port {
            Some(port) => Some(port.parse().ok().filter(|&port| port != 0).ok_or_else(wrong)?),
            None => None,
        };
        let plain =
            |text: &str| !text.is_empty() && !text.chars().any(|c| c.is_control() || c.is_whitespace());
        // Excludes options and paths.
        if !plain(host)
            || host.starts_with('-')
            || host.contains('/')
            || user.is_some_and(|user| !plain(user))
        {
            return Err(wrong());
        }
        Ok(Self {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_read_and_the_rest_is_refused() {
        let read = |text: &str| {
            text.parse::<Destination>()
                .map(|to| (to.user.unwrap_or_default(), to.host, to.port))
        };
        let to = |user: &str, host: &str, port| Ok((user.to_owned(), host.to_owned(), port));
        assert_eq!(read("nvidia@orin"), to("nvidia", "orin", None));
        assert_eq!(read("orin:2222"), to("", "orin", Some(2222)));
        assert_eq!(read("a@b@[fe80::1%eth0]:22"), to("a@b", "fe80::1%eth0", Some(22)));
        assert_eq!(read("root@::1"), to("root", "::1", None));
        for text in ["nvidia@orin", "orin:2222", "a@b@[fe80::1%eth0]:22", "root@::1"] {
            assert_eq!(text.parse::<Destination>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "@host",
            "user@",
            "user@host:",
            "user@host:0",
            "user@host:x",
            "u@-oProxyCommand=x",
            "[::1",
            "u@[::1]x",
            "a b@c",
            "u@h/x",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
