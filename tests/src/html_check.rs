//! Reads HTML as a browser's tokenizer does, and finds parts that no page of the coordinator has: tags and attributes that are not its own,
//! which only a text from outside could have brought, scripts within the page, and characters that hide or reorder text. It knows no page.

use html5gum::{Error, StartTag, Token, Tokenizer};

/// The tags that pages use.
const TAGS: &[&str] = &[
    "a", "body", "br", "button", "caption", "circle", "code", "datalist", "dd", "details", "div", "dl", "dt",
    "form", "g", "h1", "h2", "h3", "head", "header", "html", "input", "label", "li", "line", "link", "main",
    "meta", "nav", "ol", "option", "p", "path", "pre", "progress", "rect", "script", "section", "select",
    "span", "strong", "summary", "svg", "table", "tbody", "td", "text", "textarea", "th", "thead", "title",
    "tr", "tspan", "ul", "wbr", "fieldset", "legend", "small", "time", "footer",
];

/// The attributes that can hold an address.
const ADDRESSES: [&str; 4] = ["href", "src", "action", "formaction"];

/// The longest address in bytes: a text that was typed, each byte as three.
const MAX_ADDRESS: usize = 8_000;

/// The content of a page.
#[derive(Debug, Default)]
pub struct PageText {
    /// The text between the tags, and the values of attributes.
    pub text: String,
    /// The longest text between two tags, in characters.
    pub longest: usize,
    /// The longest value of an attribute but of an address or of an input, in characters.
    pub longest_attribute: usize,
}

/// Reads a page.
///
/// # Panics
/// Panics with the reason when the page has something that only a text from outside could have brought.
#[must_use]
pub fn read_page(html: &str) -> PageText {
    let mut page = PageText::default();
    let mut script = false;
    for Ok(token) in Tokenizer::new(html) {
        match token {
            Token::StartTag(tag) => {
                script = tag.name.as_slice() == b"script";
                check_tag(&tag, &mut page);
            }
            Token::EndTag(_) => script = false,
            Token::String(text) => {
                let text = String::from_utf8_lossy(&text).into_owned();
                assert!(
                    !script || text.trim().is_empty(),
                    "a script within the page: {text}"
                );
                page.longest = page.longest.max(text.chars().count());
                page.text.push_str(&text);
                page.text.push('\n');
            }
            Token::Doctype(_) => {}
            Token::Comment(text) => panic!("a comment: {}", String::from_utf8_lossy(&text)),
            // These are refused below, except in the values of forms.
            Token::Error(error)
                if matches!(
                    *error,
                    Error::ControlCharacterInInputStream | Error::UnexpectedNullCharacter
                ) => {}
            Token::Error(error) => panic!("not HTML: {error:?}"),
        }
    }
    check_characters(&page.text);
    page
}

fn check_tag(tag: &StartTag<()>, page: &mut PageText) {
    let name = String::from_utf8_lossy(&tag.name).into_owned();
    assert!(
        TAGS.contains(&name.as_str()),
        "the page has no tag <{name}> of its own"
    );
    for (key, value) in &tag.attributes {
        let (key, value) = (String::from_utf8_lossy(key), String::from_utf8_lossy(value));
        assert!(
            !key.starts_with("on") && key != "style" && key != "srcdoc",
            "<{name} {key}=\"{value}\">"
        );
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        assert!(key.chars().all(is_plain), "<{name} {key}>");
        if ADDRESSES.contains(&&*key) {
            let is_own =
                (value.starts_with('/') && !value.starts_with("//")) || value.starts_with(['#', '?']);
            assert!(
                is_own && value.is_ascii() && value.len() < MAX_ADDRESS,
                "<{name} {key}=\"{value}\">"
            );
        } else if !(matches!(&*name, "input" | "option") && key == "value"
            || matches!(&*key, "data-live" | "id" | "d"))
        {
            // The others are values of forms, names for the script and drawings: they are never shown and stay as they are.
            check_characters(&value);
            page.longest_attribute = page.longest_attribute.max(value.chars().count());
        }
    }
}

/// Refuses characters that control a terminal, hide, or change the direction of text.
fn check_characters(text: &str) {
    let is_hiding = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let found = text.char_indices().find(|(_, c)| is_hiding(*c));
    let around = found.map(|(at, c)| (c, text[..at].chars().rev().take(60).collect::<Vec<_>>()));
    let around = around.map(|(c, before)| (c, before.into_iter().rev().collect::<String>()));
    assert!(around.is_none(), "the page has {around:?}");
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn escaped_texts_pass() {
        let page = read_page(
            "<!DOCTYPE html><html><body><p title=\"a&quot;b\">&lt;script&gt;x&lt;/script&gt;</p></body></html>",
        );
        assert_eq!(
            (page.text.as_str(), page.longest_attribute),
            ("<script>x</script>\n", 3)
        );
    }

    #[test]
    fn markup_from_outside_is_found() {
        for html in [
            "<p><b>x</b></p>",
            "<p><script>alert(1)</script></p>",
            "<p onclick=\"x\">y</p>",
            "<a href=\"javascript:alert(1)\">y</a>",
            "<a href=\"//evil.example\">y</a>",
            "<p style=\"color:red\">y</p>",
            "<p>\u{202e}y</p>",
            "<p>\u{1b}y</p>",
            "<p title=\"\u{200b}\">y</p>",
            "<!-- x -->",
            "<p x\"y=\"z\">y</p>",
        ] {
            assert!(catch_unwind(|| read_page(html)).is_err(), "{html}");
        }
    }
}
