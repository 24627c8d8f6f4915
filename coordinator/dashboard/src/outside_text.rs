//! Text of devices and times of the store in the words of the page. The templates escape HTML; this file escapes what hides or reorders
//! text, and limits lengths.

use std::path::Path;

use jiff::Timestamp;
use maud::{Markup, html};
use regatta_text::escape;

/// The page's text for a value that the lab does not know.
pub(super) const UNKNOWN: &str = "–";

/// The longest name or word on a page, in characters.
pub(super) const NAME: usize = 80;
/// The longest sentence, in characters.
pub(super) const SENTENCE: usize = 600;

/// Returns the first `most` characters of a text from outside, visibly escaped, with an ellipsis for the rest.
pub(super) fn shown(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => escape(text).into_owned(),
        Some((end, _)) => format!("{}…", escape(text.get(..end).unwrap_or_default())),
    }
}

/// Renders the first characters of a file's path. Lines may break after slashes, so that file names are not split.
pub(super) fn shown_path(path: &Path, most: usize) -> Markup {
    html! {
        @for part in shown(&path.to_string_lossy(), most).split_inclusive('/') { (part) wbr; }
    }
}

/// Returns a text as one segment of a URL's path.
pub(super) fn path_segment(text: &str) -> String {
    // A query's encoding, in which only the space differs from a path's.
    form_urlencoded::byte_serialize(text.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

/// Returns the time since a time of the store in one or two units, in whole minutes, so that it rarely changes. `None` for a time that
/// cannot be read.
pub(super) fn elapsed(stored: &str, now: Timestamp) -> Option<String> {
    let then: Timestamp = stored.parse().ok()?;
    let minutes = now.duration_since(then).as_secs().max(0) / 60;
    Some(match minutes {
        0 => "under 1 min".to_owned(),
        1..=59 => format!("{minutes} min"),
        60..=1_439 => format!("{} h {:02} min", minutes / 60, minutes % 60),
        _ => format!("{} d {} h", minutes / 1_440, minutes % 1_440 / 60),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_text_is_short_and_cannot_hide_anything() {
        assert_eq!(shown("boat\u{202e}1\n", 64), r"boat\u{202e}1\n");
        assert_eq!(shown(&"a".repeat(10_000), 3), "aaa…");
        assert_eq!(shown("日本語", 3), "日本語");
    }

    #[test]
    fn elapsed_time_is_in_whole_minutes() {
        let now: Timestamp = "2026-11-23T12:00:00Z".parse().unwrap();
        for (then, text) in [
            ("2026-11-23T11:59:01Z", "under 1 min"),
            ("2026-11-23T12:30:00Z", "under 1 min"),
            ("2026-11-23T11:58:00Z", "2 min"),
            ("2026-11-23T10:55:00Z", "1 h 05 min"),
            ("2026-11-20T09:00:00Z", "3 d 3 h"),
        ] {
            assert_eq!(elapsed(then, now).as_deref(), Some(text), "{then}");
        }
        assert_eq!(elapsed("yesterday", now), None);
    }
}
