//! The style, the script and the icon, embedded in the program. Their URLs have their hashes, so browsers keep them as long as they are
//! the same.

use std::sync::OnceLock;

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use sha2::{Digest as _, Sha256};

/// A file of the program.
pub(super) struct StaticFile {
    name: &'static str,
    media_type: &'static str,
    text: &'static str,
    url: OnceLock<String>,
}

/// The style of every page.
pub(super) static STYLE: StaticFile = StaticFile::new(
    "regatta.css",
    "text/css; charset=utf-8",
    include_str!("static/regatta.css"),
);
/// The script that keeps a page live.
pub(super) static SCRIPT: StaticFile = StaticFile::new(
    "live.js",
    "text/javascript; charset=utf-8",
    include_str!("static/live.js"),
);
pub(super) static ICON: StaticFile =
    StaticFile::new("icon.svg", "image/svg+xml", include_str!("static/icon.svg"));

impl StaticFile {
    const fn new(name: &'static str, media_type: &'static str, text: &'static str) -> Self {
        Self {
            name,
            media_type,
            text,
            url: OnceLock::new(),
        }
    }

    /// Returns the path under which the file is served, with its hash.
    pub(super) fn url(&self) -> &str {
        self.url.get_or_init(|| {
            let digest = Sha256::digest(self.text);
            let hash: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
            format!("/static/{}?v={hash}", self.name)
        })
    }
}

/// Answers a request for a file.
pub(super) fn answer(name: &str) -> Option<Response> {
    let file = [&STYLE, &SCRIPT, &ICON]
        .into_iter()
        .find(|file| file.name == name)?;
    let headers = [
        (header::CONTENT_TYPE, file.media_type),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    Some((StatusCode::OK, headers, file.text).into_response())
}
