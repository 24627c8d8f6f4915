//! The protection of every reader: only the page's own host names are answered, and browsers get strict rules. The rules forbid scripts,
//! styles and requests from anywhere but this server. [`super::access`] decides who may read.

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
};

use super::page_error::PageError;

/// The rules that browsers enforce. `default-src 'none'` forbids everything that the others do not allow.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // With `no-referrer`, browsers would not send the origin of a form.
    (header::REFERRER_POLICY, "same-origin"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
];

/// The names of this server. Requests for others are refused.
#[derive(Debug, Clone)]
pub(super) struct HostNames {
    names: Vec<String>,
    /// The page's URL.
    url: String,
}

impl HostNames {
    /// Returns the names of a server that only this machine reaches.
    pub(super) fn loopback(url: &str) -> Self {
        let names = ["127.0.0.1", "localhost", "::1"].map(str::to_owned);
        Self::of(&names, url)
    }

    /// Returns the names that a server's certificate has.
    pub(super) fn of(hosts: &[String], url: &str) -> Self {
        let in_url = |host: &String| match host.contains(':') {
            true => format!("[{host}]"),
            false => host.to_ascii_lowercase(),
        };
        Self {
            names: hosts.iter().map(in_url).collect(),
            url: url.to_owned(),
        }
    }

    /// Returns the reason why a request is refused for any sender.
    pub(super) fn refusal(&self, request: &Request) -> Option<PageError> {
        if !self.is_own(request.headers()) || request.uri().authority().is_some() {
            // A page elsewhere whose name an attacker resolves to this machine must not read the lab.
            return Some(PageError {
                status: StatusCode::MISDIRECTED_REQUEST,
                message: format!("this server is {}", self.url),
                hint: "Open that address, or 127.0.0.1 or localhost at the near end of an SSH tunnel.",
            });
        }
        if ![Method::GET, Method::HEAD, Method::POST].contains(request.method()) {
            return Some(PageError {
                status: StatusCode::METHOD_NOT_ALLOWED,
                message: "the page does not accept this request".to_owned(),
                hint: "Change the lab with the commands of `regatta`.",
            });
        }
        None
    }

    /// Returns whether the request names this server. The port may be that of a tunnel's near end.
    fn is_own(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return false;
        };
        let Ok(host) = host.to_str() else {
            return false;
        };
        let host = host.to_ascii_lowercase();
        self.names
            .iter()
            .any(|name| match host.strip_prefix(name.as_str()) {
                Some("") => true,
                Some(rest) => rest
                    .strip_prefix(':')
                    .is_some_and(|port| port.parse::<u16>().is_ok()),
                None => false,
            })
    }
}

/// Adds the rules for browsers to an answer.
pub(super) fn add_rules(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // What a device reported now is not true later.
    let fresh = HeaderValue::from_static("no-store");
    headers.entry(header::CACHE_CONTROL).or_insert(fresh);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_own(hosts: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, host.parse().unwrap());
        }
        HostNames::loopback("http://127.0.0.1:8886").is_own(&headers)
    }

    #[test]
    fn only_loopback_names_are_answered() {
        for host in [
            "127.0.0.1:8886",
            "localhost:8886",
            "[::1]:8886",
            "localhost",
            "127.0.0.1:9000",
        ] {
            assert!(is_own(&[host]), "{host}");
        }
        for host in [
            "",
            "evil.example:8886",
            "127.0.0.1.evil.example",
            "localhost.evil.example:8886",
            "localhost:",
            "localhost:http",
            "127.0.0.1:8886@evil.example",
            "[::1]evil",
        ] {
            assert!(!is_own(&[host]), "{host}");
        }
        assert!(!is_own(&[]));
        assert!(!is_own(&["localhost", "evil.example"]));
    }

    #[test]
    fn a_server_answers_to_the_names_in_its_certificate() {
        let hosts = ["Lab", "192.0.2.7", "2001:db8::7"].map(str::to_owned);
        let names = HostNames::of(&hosts, "https://lab:8886");
        let is_own = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            names.is_own(&headers)
        };
        for host in ["lab:8886", "LAB", "192.0.2.7:8886", "[2001:db8::7]:8886"] {
            assert!(is_own(host), "{host}");
        }
        for host in ["labor:8886", "lab.evil.example", "127.0.0.1:8886", "2001:db8::7"] {
            assert!(!is_own(host), "{host}");
        }
    }
}
