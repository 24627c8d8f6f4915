//! A broker's address: `mqtts://host:port` for TLS, `mqtt://host:port` for plain TCP.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

/// MQTT's registered ports: plain, and over TLS.
const DEFAULT_PORTS: (u16, u16) = (1883, 8883);

/// An invalid address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not of the form mqtts://host:port or mqtt://host:port")]
pub struct BrokerAddressError {
    text: String,
}

/// The address of a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerAddress {
    /// Name or address of the host, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Whether the connection uses TLS.
    pub tls: bool,
}

impl BrokerAddress {
    /// Returns the address of a socket.
    #[must_use]
    pub fn of(socket: SocketAddr, tls: bool) -> Self {
        Self {
            host: socket.ip().to_string(),
            port: socket.port(),
            tls,
        }
    }

    /// Returns whether the address is on this machine, where nobody on the network can eavesdrop.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

impl fmt::Display for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "mqtts" } else { "mqtt" };
        if self.host.contains(':') {
            write!(f, "{scheme}://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{scheme}://{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for BrokerAddress {
    type Err = BrokerAddressError;

    fn from_str(text: &str) -> Result<Self, BrokerAddressError> {
        let wrong = || BrokerAddressError {
            text: text.to_owned(),
        };
        let (tls, rest) = match (text.strip_prefix("mqtts://"), text.strip_prefix("mqtt://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(wrong()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.strip_prefix('[') {
            Some(bracketed) => {
                let (host, behind) = bracketed.split_once(']').ok_or_else(wrong)?;
                (host, behind.strip_prefix(':'))
            }
            None => match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            },
        };
        let default = if tls { DEFAULT_PORTS.1 } else { DEFAULT_PORTS.0 };
        let port = port.map_or(Ok(default), |port| port.parse().map_err(|_| wrong()))?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        if host.is_empty() || port == 0 || !host.chars().all(is_plain) {
            return Err(wrong());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            tls,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for text in [
            "mqtt://lab:1884",
            "mqtts://lab:1884",
            "mqtt://127.0.0.1:1",
            "mqtts://[::1]:1883",
        ] {
            assert_eq!(text.parse::<BrokerAddress>().unwrap().to_string(), text);
        }
        assert_eq!("mqtt://lab".parse::<BrokerAddress>().unwrap().port, 1883);
        assert_eq!("mqtts://lab".parse::<BrokerAddress>().unwrap().port, 8883);
    }

    #[test]
    fn refuses_what_is_no_address() {
        for text in [
            "",
            "lab:1883",
            "https://lab:8883",
            "mqtt://",
            "mqtt://lab:x",
            "mqtt://lab:0",
            "mqtt://a b:1",
        ] {
            assert!(text.parse::<BrokerAddress>().is_err(), "{text}");
        }
    }
}
