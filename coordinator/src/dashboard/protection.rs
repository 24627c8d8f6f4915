//! What protects the page and its reader: only the page's own host names are answered, only reading is possible, and browsers get strict
//! rules. The rules forbid scripts, styles and requests from anywhere but this server.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use super::page_error::PageError;

/// The rules for browsers. `default-src 'none'` forbids what the others do not allow.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
];

/// The port on which the page listens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Port(pub(super) u16);

/// Refuses requests for other hosts and methods, and adds the rules for browsers to every answer.
pub(super) async fn protect(State(port): State<Port>, request: Request, next: Next) -> Response {
    let is_head = request.method() == Method::HEAD;
    let mut response = match refusal(&request, port) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    // What a device reported now is not true later.
    let fresh = HeaderValue::from_static("no-store");
    response
        .headers_mut()
        .entry(header::CACHE_CONTROL)
        .or_insert(fresh);
    if is_head {
        *response.body_mut() = axum::body::Body::empty();
    }
    response
}

fn refusal(request: &Request, port: Port) -> Option<PageError> {
    if !is_own_host(request.headers()) || request.uri().authority().is_some() {
        // A page elsewhere whose name an attacker resolves to this machine must not read the lab.
        return Some(PageError {
            status: StatusCode::MISDIRECTED_REQUEST,
            message: format!(
                "this server is only http://127.0.0.1:{0} and http://localhost:{0}",
                port.0
            ),
            hint: "Open one of these addresses, also at the near end of an SSH tunnel.",
        });
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return Some(PageError {
            status: StatusCode::METHOD_NOT_ALLOWED,
            message: "the page only shows the lab".to_owned(),
            hint: "Change it with the commands of `regatta`.",
        });
    }
    None
}

/// Whether the request names this machine by a loopback name. The port may be that of a tunnel's near end.
fn is_own_host(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let Ok(host) = host.to_str() else {
        return false;
    };
    let names = ["127.0.0.1", "localhost", "[::1]"];
    names.iter().any(|name| match host.strip_prefix(name) {
        Some("") => true,
        Some(rest) => rest
            .strip_prefix(':')
            .is_some_and(|port| port.parse::<u16>().is_ok()),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_own(hosts: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, host.parse().unwrap());
        }
        is_own_host(&headers)
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
}
