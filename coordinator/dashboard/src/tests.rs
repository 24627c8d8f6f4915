//! Arbitrary requests to the page with a login: none panics, and none without a session or a token reads or changes anything.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderValue, Request, StatusCode, header},
};
use jiff::SignedDuration;
use proptest::prelude::*;
use tower_service::Service as _;

use super::{
    access::{Access, Peer, issue},
    hub::Hub,
    protection::HostNames,
    routes::{all_routes, routes},
    view::Reader,
};
use regatta_lab_store::{PageRole, workspace::Workspace};

/// A page with a login, without its listener.
struct TestPage {
    router: axum::Router,
    token: String,
    _directory: tempfile::TempDir,
}

impl TestPage {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(directory.path(), "schema = 1\n").unwrap();
        let open = || workspace.store().unwrap();
        let token = issue(&open(), "anna", PageRole::Operator, SignedDuration::from_hours(1)).unwrap();
        let hub = Hub::new(Reader::new(open(), workspace.clone()));
        let hosts = HostNames::of(&["lab".to_owned()], "https://lab:8886");
        let access = Access::new(open(), true).unwrap();
        Self {
            router: routes(Arc::clone(&hub), hosts, access),
            token: token.token,
            _directory: directory,
        }
    }

    async fn status(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, Vec<u8>)],
        body: Vec<u8>,
    ) -> StatusCode {
        let Ok(mut request) = Request::builder().method(method).uri(path).body(Body::from(body)) else {
            return StatusCode::BAD_REQUEST;
        };
        request
            .headers_mut()
            .insert(header::HOST, HeaderValue::from_static("lab"));
        for (name, value) in headers {
            let name: header::HeaderName = name.parse().unwrap();
            if let Ok(value) = HeaderValue::from_bytes(value) {
                request.headers_mut().append(name, value);
            }
        }
        request
            .extensions_mut()
            .insert(Peer(([192, 0, 2, 1], 4_000).into()));
        let mut router = self.router.clone();
        let answer = router.call(request).await.unwrap_or_else(|never| match never {});
        answer.status()
    }
}

/// Returns a path for a route's pattern.
fn filled(pattern: &str) -> String {
    let parts = pattern.split('/').map(|part| match part {
        "{device}" => "1c61500a84dec57d86b5e1f3caa2abe2",
        part if part.starts_with('{') => "any",
        part => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn an_arbitrary_request_without_a_token_gets_nothing(
        cookie in prop_oneof![bytes(), bytes().prop_map(|value| [b"__Host-regatta=", value.as_slice()].concat())],
        authorization in prop_oneof![bytes(), bytes().prop_map(|value| [b"Bearer ", value.as_slice()].concat())],
        has_authorization in any::<bool>(),
        origin in prop_oneof![bytes(), Just(b"https://lab".to_vec())],
        media_type in prop_oneof![bytes(), Just(b"application/x-www-form-urlencoded".to_vec())],
        body in prop_oneof![bytes(), bytes().prop_map(|value| [b"csrf=&token=", value.as_slice()].concat())],
    ) {
        let page = TestPage::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut headers = vec![("cookie", cookie), ("origin", origin), ("content-type", media_type)];
        if has_authorization {
            headers.push(("authorization", authorization));
        }
        for [method, pattern, route_use] in all_routes().1.rows() {
            let status = runtime.block_on(page.status(method, &filled(pattern), &headers, body.clone()));
            let is_refused = status.is_client_error();
            prop_assert!(is_refused || route_use == "everybody", "{} {}: {}", method, pattern, status);
            prop_assert!(!status.is_server_error(), "{} {}: {}", method, pattern, status);
        }
    }
}

#[test]
fn a_program_with_a_token_reads_every_route_and_uses_no_action() {
    let page = TestPage::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let headers = [
        ("authorization", format!("Bearer {}", page.token).into_bytes()),
        ("origin", b"https://lab".to_vec()),
        ("content-type", b"application/x-www-form-urlencoded".to_vec()),
    ];
    for [method, pattern, route_use] in all_routes().1.rows() {
        let status = runtime.block_on(page.status(method, &filled(pattern), &headers, Vec::new()));
        match (method, route_use) {
            ("GET", _) => assert!([200, 400, 404].contains(&status.as_u16()), "{pattern}: {status}"),
            (_, "everybody") => assert_eq!(status, StatusCode::UNAUTHORIZED, "{pattern}"),
            _ => assert_eq!(status, StatusCode::FORBIDDEN, "{pattern}"),
        }
    }
}
