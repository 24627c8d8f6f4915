//! The frame of every page: head, navigation, main part. It knows the list of pages and none of their content.

use axum::{
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

/// An HTML document as a response.
pub(super) struct Page(Markup);

/// Puts a page's content into the frame. `path` is its entry in the navigation, `live` the path of its events.
pub(super) fn page(title: &str, path: Option<&str>, live: Option<&str>, content: &Markup) -> Page {
    Page(html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Regatta" }
                link rel="icon" type="image/svg+xml" href=(ICON.url());
                link rel="stylesheet" href=(STYLE.url());
                @if live.is_some() {
                    script src=(SCRIPT.url()) defer {}
                }
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header {
                    nav aria-label="Pages" {
                        strong { "Regatta" }
                        @for (name, target) in PAGES {
                            a href=(target) aria-current=[(path == Some(target)).then_some("page")] { (name) }
                        }
                    }
                }
                main #main data-live=[live] tabindex="-1" { (*content) }
            }
        }
    })
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
        (headers, self.0.into_string()).into_response()
    }
}
