//! The address of a server on the same machine. Opens no connection.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::value::TextSetting;

/// An address on the loopback interface, with a port that is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopbackAddress(pub SocketAddr);

impl TextSetting for LoopbackAddress {
    fn read(text: &str) -> Option<Self> {
        let address = match text.strip_prefix("localhost:") {
            Some(port) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?),
            None => text.parse().ok()?,
        };
        (address.ip().is_loopback() && address.port() > 0).then_some(Self(address))
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_same_machine_are_read() {
        for (text, expected) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("localhost:80", "127.0.0.1:80"),
            ("[::1]:9000", "[::1]:9000"),
            ("127.1.2.3:1", "127.1.2.3:1"),
        ] {
            assert_eq!(LoopbackAddress::read(text).unwrap().text(), expected);
        }
        for text in [
            "192.168.1.2:8080",
            "0.0.0.0:8080",
            "thor-1:8080",
            "127.0.0.1",
            "127.0.0.1:0",
            "[::]:80",
            "",
        ] {
            assert_eq!(LoopbackAddress::read(text), None, "{text}");
        }
    }
}
