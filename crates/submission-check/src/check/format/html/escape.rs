//! Escapes text for an HTML page.

use regatta_text::escape;

/// Escapes text for a page, and for a terminal that shows the page's source.
pub(super) fn escaped(text: &str) -> String {
    escape(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
