//! The frame of every page: head, navigation, main part. It knows the list of pages and none of their content.

use axum::{
    body::Body,
    http::header,
    response::{IntoResponse, Response},
};
use maud::{DOCTYPE, Markup, html};

use super::static_files::{ICON, SCRIPT, STYLE};

/// The pages of the navigation: title and path.
const PAGES: [(&str, &str); 7] = [
    ("Fleet", "/"),
    ("Runs", "/runs"),
    ("Campaigns", "/campaigns"),
    ("Compare", "/compare"),
    ("History", "/history"),
    ("Power", "/power"),
    ("Submission", "/submission"),
];

/// A page's content. [`finish`] puts it into the frame, which depends on the visitor.
#[derive(Debug, Clone)]
pub(super) struct Page {
    title: String,
    path: Option<String>,
    live: Option<String>,
    content: Markup,
}

/// Makes a page. `path` is its entry in the navigation, `live` the path of its events.
pub(super) fn page(title: &str, path: Option<&str>, live: Option<&str>, content: &Markup) -> Page {
    Page {
        title: title.to_owned(),
        path: path.map(str::to_owned),
        live: live.map(str::to_owned),
        content: content.clone(),
    }
}

/// Puts the page of an answer, if it has one, into the frame. `account` has the session's name and form token.
pub(super) fn finish(mut response: Response, account: Option<(&str, &str)>) -> Response {
    if let Some(page) = response.extensions_mut().remove::<Page>() {
        *response.body_mut() = Body::from(page.document(account).into_string());
    }
    response
}

impl Page {
    fn document(&self, account: Option<(&str, &str)>) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " · Regatta" }
                    link rel="icon" type="image/svg+xml" href=(ICON.url());
                    link rel="stylesheet" href=(STYLE.url());
                    @if self.live.is_some() {
                        script src=(SCRIPT.url()) defer {}
                    }
                }
                body {
                    a.skip href="#main" { "Skip to the content" }
                    header {
                        nav aria-label="Pages" {
                            strong { "Regatta" }
                            @for (name, target) in PAGES {
                                a href=(target) aria-current=[(self.path.as_deref() == Some(target)).then_some("page")] { (name) }
                            }
                        }
                        @if let Some((name, form_token)) = account { (log_out(name, form_token)) }
                    }
                    main #main data-live=[&self.live] tabindex="-1" { (self.content) }
                }
            }
        }
    }
}

fn log_out(name: &str, form_token: &str) -> Markup {
    html! {
        form .account method="post" action="/logout" {
            input type="hidden" name="csrf" value=(form_token);
            span { (name) } " "
            button { "Log out" }
        }
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
        let mut response = headers.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
