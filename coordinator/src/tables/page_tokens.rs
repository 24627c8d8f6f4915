//! The table of the live page's tokens.

use jiff::Timestamp;

use super::plain;
use regatta_lab_store::PageToken;
use regatta_lab_views::wording;

/// Formats tokens, one line each.
pub(crate) fn page_tokens(tokens: &[PageToken], now: Timestamp) -> String {
    if tokens.is_empty() {
        return "there is no token yet; add one: `regatta dashboard token add NAME`".to_owned();
    }
    let lines = tokens.iter().map(|token| {
        [
            token.name.clone(),
            token.role.to_string(),
            token.state(now).to_owned(),
            wording::time(&token.expires.to_string()),
            token
                .last_used
                .as_deref()
                .map_or_else(|| "never".to_owned(), wording::time),
        ]
    });
    plain(["name", "role", "state", "expires", "last used"], lines)
}
