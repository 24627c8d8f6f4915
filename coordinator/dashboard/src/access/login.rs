//! Login with a token, and logout. The token is sent once, in a form; afterwards the browser has a cookie.

use std::sync::Arc;

use axum::{
    Extension,
    extract::RawQuery,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use maud::html;
use tokio::time::Instant;

use super::{
    cookie,
    denials::wrong_token,
    form::Form,
    guesses::Peer,
    permissions::{Access, TokenRefusal},
    visitor::Visitor,
};
use crate::{
    layout::{self, Page},
    page_error::PageError,
};

/// The longest path to which a login returns.
const MAX_PATH: usize = 2_000;

/// Returns the page with the form. `target` is where the login leads.
pub(super) fn login_page(target: &str, wrong: Option<&PageError>) -> Page {
    let target = if is_own_path(target) { target } else { "/" };
    let content = html! {
        h1 { "Log in" }
        @if let Some(wrong) = wrong { p .alarm role="alert" { (wrong.message) ". " (wrong.hint) } }
        form .stacked method="post" action="/login" {
            input type="hidden" name="next" value=(target);
            label for="token" { "Token" }
            input #token type="password" name="token" required autocomplete="current-password" maxlength="200";
            button { "Log in" }
        }
        p .note {
            "The owner of the workspace creates tokens: " code { "regatta dashboard token add NAME" }
            ". Reading needs one, and changing the lab needs one with " code { "--role operator" } "."
        }
    };
    layout::page("Log in", None, None, &content)
}

/// Makes an answer one that requires a login.
pub(super) fn unauthorized(answer: impl IntoResponse) -> Response {
    let scheme = [(header::WWW_AUTHENTICATE, "Bearer realm=\"Regatta\"")];
    (StatusCode::UNAUTHORIZED, scheme, answer).into_response()
}

/// Shows the form.
pub(crate) async fn show_login(
    Extension(access): Extension<Arc<Access>>,
    RawQuery(query): RawQuery,
) -> Result<Page, PageError> {
    if !access.requires_login {
        return Err(no_login());
    }
    let query = query.unwrap_or_default();
    let target = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "next");
    let target = target.map_or_else(|| "/".to_owned(), |(_, value)| value.into_owned());
    Ok(login_page(&target, None))
}

/// Begins a session.
pub(crate) async fn log_in(
    Extension(access): Extension<Arc<Access>>,
    Extension(form): Extension<Form>,
    Extension(from): Extension<Peer>,
) -> Result<Response, PageError> {
    if !access.requires_login {
        return Err(no_login());
    }
    let target = form.field("next");
    let token = match access.verify(form.field("token"), from).await {
        Ok(token) => token,
        Err(refusal @ (TokenRefusal::Unreadable | TokenRefusal::Internal)) => {
            return Err(wrong_token(refusal));
        }
        Err(refusal) => {
            let wrong = wrong_token(refusal);
            return Ok(wrong.shown_as(login_page(target, Some(&wrong))));
        }
    };
    let (id, session) = access.sessions.begin(&token).map_err(anyhow::Error::from)?;
    tracing::info!(from = %from.0.ip(), "{} logged in to the live page", token.name);
    let seconds = session.ends.saturating_duration_since(Instant::now()).as_secs();
    let target = if is_own_path(target) { target } else { "/" };
    see_other(target, cookie::set(&id, seconds))
}

/// Ends a session.
pub(crate) async fn log_out(
    Extension(access): Extension<Arc<Access>>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Response, PageError> {
    if let Visitor::User(session) = &visitor {
        access.end(session);
    }
    see_other("/login", cookie::removed())
}

fn see_other(target: &str, cookie: Option<HeaderValue>) -> Result<Response, PageError> {
    let target = HeaderValue::from_str(target).map_err(|_| PageError::internal())?;
    let cookie = cookie.ok_or_else(PageError::internal)?;
    let headers = [(header::LOCATION, target), (header::SET_COOKIE, cookie)];
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

fn no_login() -> PageError {
    PageError::not_found("this page needs no login")
}

/// Returns whether a login may lead to a path: it is one of this server, as a browser reads it.
fn is_own_path(path: &str) -> bool {
    let is_local = path.starts_with('/') && !path.starts_with("//") && !path.contains('\\');
    is_local && path.len() <= MAX_PATH && path.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_to_this_server_only() {
        for path in ["/", "/run/1?x=//evil.example", "/campaign/a%2fb"] {
            assert!(is_own_path(path), "{path}");
        }
        let long = format!("/{}", "a".repeat(MAX_PATH));
        for path in [
            "",
            "runs",
            "//evil.example",
            "/\\evil.example",
            "/a\\b",
            "https://evil.example",
            "/a b",
            "/\t/evil.example",
            "/a\r\nSet-Cookie: x",
            "/ä",
            &long,
        ] {
            assert!(!is_own_path(path), "{path}");
        }
    }
}
