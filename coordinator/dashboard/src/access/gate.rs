//! Decides about every request before a handler sees it: its host, its sender, its route, and for a form its origin, its token and the
//! sender's role. After the handler it checks the right to read again, and ends live views and downloads of those who lose it.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use futures_util::StreamExt as _;
use subtle::ConstantTimeEq as _;

use super::{
    cookie,
    denials::{foreign, only_reads, without_token, wrong_token},
    form::Form,
    guesses::Peer,
    login::{login_page, unauthorized},
    operator::Operator,
    permissions::{Access, LiveView, TokenRefusal},
    visitor::Visitor,
};
use crate::{
    api, layout,
    page_error::PageError,
    protection::{self, HostNames},
    route_table::{RouteTable, RouteUse},
};
use regatta_lab_store::PageRole;

/// The gate that every request passes.
pub(crate) struct Gate {
    pub(crate) hosts: HostNames,
    pub(crate) access: Arc<Access>,
    pub(crate) table: RouteTable,
}

/// The reason why a request does not reach its handler.
enum Denial {
    /// The sender must log in first.
    Login,
    /// The bearer token is not accepted.
    Token(TokenRefusal),
    /// Anything else.
    Refused(PageError),
}

/// Answers a request, and adds the rules for browsers to the answer.
pub(crate) async fn guard(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let is_head = request.method() == Method::HEAD;
    let mut response = match gate.hosts.refusal(&request) {
        Some(refusal) => layout::finish(refusal.into_response(), None),
        None => gate.answer(request, next).await,
    };
    protection::add_rules(response.headers_mut());
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        let known = HeaderValue::from_static("GET, HEAD, POST");
        response.headers_mut().entry(header::ALLOW).or_insert(known);
    }
    if is_head {
        *response.body_mut() = Body::empty();
    }
    response
}

impl Gate {
    async fn answer(&self, request: Request, next: Next) -> Response {
        let path = request.uri().path().to_owned();
        let target = request.uri().path_and_query().map(ToString::to_string);
        let from = request.extensions().get::<Peer>().copied();
        let visitor = self.visitor(request.headers(), from).await;
        let account = visitor.as_ref().ok().cloned();
        let passed = match visitor {
            Ok(visitor) => self.pass(visitor, request).await,
            Err(refusal) => Err(Denial::Token(refusal)),
        };
        let answered = match passed {
            Ok((visitor, request)) => {
                let live_view = is_live(&path)
                    .then(|| self.access.open_live_view(&visitor))
                    .flatten();
                let response = next.run(request).await;
                self.while_admitted(visitor, &path, live_view, response)
            }
            Err(denial) => Err(denial),
        };
        let response =
            answered.unwrap_or_else(|denial| denied(denial, &path, target.as_deref().unwrap_or("/")));
        layout::finish(response, account.as_ref().and_then(Visitor::account))
    }

    /// Returns the sender of a request.
    async fn visitor(&self, headers: &HeaderMap, from: Option<Peer>) -> Result<Visitor, TokenRefusal> {
        if !self.access.requires_login {
            return Ok(Visitor::Local);
        }
        if let Some(value) = headers.get(header::AUTHORIZATION) {
            let text = value.to_str().ok().and_then(bearer).unwrap_or_default();
            // The server adds the address to every request.
            let from = from.ok_or(TokenRefusal::Internal)?;
            let token = self.access.verify(text, from).await?;
            return Ok(Visitor::Program(token));
        }
        let session = cookie::session_id(headers).and_then(|id| self.access.sessions.find(&id));
        let visitor = session.map_or(Visitor::Unknown, Visitor::User);
        if matches!(visitor, Visitor::User(_)) {
            // Without current tokens, the session is refused where it is needed.
            let _ = self.access.has_current_tokens().await;
        }
        Ok(match self.access.admits(&visitor) {
            true => visitor,
            false => Visitor::Unknown,
        })
    }

    /// Admits a request, or returns its denial.
    async fn pass(&self, visitor: Visitor, mut request: Request) -> Result<(Visitor, Request), Denial> {
        let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        let route_use = self.table.find(request.method(), path);
        let is_public = route_use == Some(RouteUse::Everybody);
        if !is_public && !self.access.admits(&visitor) {
            return Err(self.login_or_unreadable());
        }
        if request.method() == Method::POST
            && let Some(route_use) = route_use
        {
            let from = request.extensions().get::<Peer>().copied();
            let from = from.ok_or(Denial::Token(TokenRefusal::Internal))?;
            let (mut parts, body) = request.into_parts();
            if !is_same_origin(&parts.headers, self.scheme()) {
                return Err(Denial::Refused(foreign()));
            }
            let form = Form::read(&parts.headers, body).await.map_err(Denial::Refused)?;
            // The form may have arrived slowly, and the right may have ended meanwhile.
            if !is_public && !self.access.admits(&visitor) {
                return Err(self.login_or_unreadable());
            }
            match route_use {
                RouteUse::Everybody => {}
                RouteUse::Reader => require_form_token(&visitor, &form).map_err(Denial::Refused)?,
                RouteUse::Operator => {
                    let operator = self.operator(&visitor, &form, from).await;
                    parts.extensions.insert(operator.map_err(Denial::Refused)?);
                }
            }
            parts.extensions.insert(form);
            request = Request::from_parts(parts, Body::empty());
        }
        let extensions = request.extensions_mut();
        extensions.insert(visitor.clone());
        extensions.insert(Arc::clone(&self.access));
        Ok((visitor, request))
    }

    /// Returns the denial for a visitor who is not admitted. Logging in helps unless tokens cannot be verified now.
    fn login_or_unreadable(&self) -> Denial {
        match self.access.are_tokens_current() {
            true => Denial::Login,
            false => Denial::Token(TokenRefusal::Unreadable),
        }
    }

    /// Returns the operator who sends a form.
    async fn operator(&self, visitor: &Visitor, form: &Form, from: Peer) -> Result<Operator, PageError> {
        let (role, operator) = match visitor {
            Visitor::Local => {
                let verified = self.access.verify(form.field("token"), from).await;
                let token = verified.map_err(wrong_token)?;
                let (role, name) = (token.role, token.name.clone());
                (role, Operator::of(&name, Visitor::Program(token), &self.access))
            }
            Visitor::User(session) => {
                require_form_token(visitor, form)?;
                let operator = Operator::of(&session.name, visitor.clone(), &self.access);
                (session.role, operator)
            }
            Visitor::Unknown | Visitor::Program(_) => return Err(foreign()),
        };
        match role {
            PageRole::Operator => Ok(operator),
            PageRole::Reader => Err(only_reads()),
        }
    }

    fn scheme(&self) -> &'static str {
        match self.access.requires_login {
            true => "https",
            false => "http",
        }
    }

    /// Lets an answer through if its reader still may read: the request may have waited. Ends a live view or download when its reader
    /// loses that right, and a live view also when its token has newer ones.
    fn while_admitted(
        &self,
        visitor: Visitor,
        path: &str,
        live_view: Option<LiveView>,
        response: Response,
    ) -> Result<Response, Denial> {
        if matches!(visitor, Visitor::Local | Visitor::Unknown) {
            return Ok(response);
        }
        if !self.access.admits(&visitor) && !is_account(path) {
            return Err(self.login_or_unreadable());
        }
        let is_stream = response.headers().get(header::CONTENT_TYPE).is_some_and(|value| {
            let value = value.as_bytes();
            value.starts_with(b"text/event-stream") || value.starts_with(b"application/octet-stream")
        });
        if !is_stream {
            return Ok(response);
        }
        let ended = Arc::clone(&self.access).ended(visitor);
        let ended = Box::pin(async move {
            match live_view {
                None => ended.await,
                Some((_slot, mut eviction)) => tokio::select! {
                    () = ended => {}
                    () = eviction.wait() => {}
                },
            }
        });
        Ok(response.map(|body| Body::from_stream(body.into_data_stream().take_until(ended))))
    }
}

/// Returns whether a path is a live view's.
fn is_live(path: &str) -> bool {
    path.starts_with("/live/")
}

/// Returns whether a path is of the login itself, which may end the right to read.
fn is_account(path: &str) -> bool {
    ["/login", "/logout"].contains(&path)
}

/// Returns the answer to a request that does not pass.
fn denied(denial: Denial, path: &str, target: &str) -> Response {
    let is_page = !["/api/", "/live/", "/metrics"]
        .iter()
        .any(|other| path.starts_with(other));
    match denial {
        Denial::Login if is_page => unauthorized(login_page(target, None)),
        Denial::Refused(error) if is_page => error.into_response(),
        Denial::Token(refusal) if is_page => wrong_token(refusal).into_response(),
        Denial::Login => unauthorized(api::error(&without_token())),
        Denial::Token(refusal) => api::error(&wrong_token(refusal)),
        Denial::Refused(error) => api::error(&error),
    }
}

fn require_form_token(visitor: &Visitor, form: &Form) -> Result<(), PageError> {
    let (_, expected) = visitor.account().ok_or_else(foreign)?;
    let is_equal = form.field("csrf").as_bytes().ct_eq(expected.as_bytes());
    match bool::from(is_equal) {
        true => Ok(()),
        false => Err(foreign()),
    }
}

/// Returns whether a form comes from this page. Browsers send `Origin` with every form; a request without any proof is refused.
fn is_same_origin(headers: &HeaderMap, scheme: &str) -> bool {
    let only = |name: header::HeaderName| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => Ok(Some(value.as_bytes())),
            (None, _) => Ok(None),
            (Some(_), Some(_)) => Err(()),
        }
    };
    let site = header::HeaderName::from_static("sec-fetch-site");
    let (Ok(origin), Ok(site), Ok(Some(host))) = (only(header::ORIGIN), only(site), only(header::HOST))
    else {
        return false;
    };
    let own = [scheme.as_bytes(), b"://", host].concat();
    let fits = origin.is_none_or(|origin| origin == own) && site.is_none_or(|site| site == b"same-origin");
    fits && (origin.is_some() || site.is_some())
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_proves_that_it_comes_from_the_page() {
        let fits = |lines: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "lab:8886".parse().unwrap());
            for (name, value) in lines {
                headers.append(*name, value.parse().unwrap());
            }
            is_same_origin(&headers, "https")
        };
        for lines in [
            &[("origin", "https://lab:8886")][..],
            &[("sec-fetch-site", "same-origin")],
            &[("origin", "https://lab:8886"), ("sec-fetch-site", "same-origin")],
        ] {
            assert!(fits(lines), "{lines:?}");
        }
        for lines in [
            &[][..],
            &[("origin", "null")],
            &[("origin", "http://lab:8886")],
            &[("origin", "https://lab:8887")],
            &[("origin", "https://lab:8886.evil.example")],
            &[("origin", "https://lab:8886"), ("origin", "https://lab:8886")],
            &[("origin", "https://lab:8886"), ("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "none")],
        ] {
            assert!(!fits(lines), "{lines:?}");
        }
    }
}
