//! Placeholders in the texts of drivers: words in braces, such as `{port}`.

/// Returns a message about the first placeholder of a text that is not known. A placeholder is a word of lower-case letters in braces.
pub(super) fn unknown_placeholder(text: &str, known: &[&str]) -> Option<String> {
    let words = text.split('{').skip(1).filter_map(|rest| {
        let (word, _) = rest.split_once('}')?;
        let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        is_word.then_some(word)
    });
    let unknown = words.into_iter().find(|word| !known.contains(word))?;
    Some(match known {
        [] => format!("{{{unknown}}} is not a placeholder; there are none here"),
        known => format!(
            "{{{unknown}}} is not a placeholder; known are {}",
            known.join(", ")
        ),
    })
}
