//! Names of sessions and their labels: what they may contain, because they become names of directories.

use jiff::Timestamp;

/// The longest label. The official programs have no limit, and file systems have one.
const MAX_LABEL: usize = 100;
/// The longest name of a session.
const MAX_NAME: usize = 200;

/// Whether a text is a label: letters, digits, `-` and `_`, or empty.
#[must_use]
pub fn is_label(text: &str) -> bool {
    text.len() <= MAX_LABEL && text.chars().all(is_allowed)
}

/// Whether a text is the name of a session, which has the letters of a label.
pub(crate) fn is_session_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME && text.chars().all(is_allowed)
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

/// Returns the name of a session that begins now, in UTC. The official server uses its local time.
pub(crate) fn new_session_name(label: &str) -> String {
    let time = Timestamp::now().strftime("%Y-%m-%d_%H-%M-%S").to_string();
    match label {
        "" => time,
        label => format!("{time}_{label}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_component_of_a_path() {
        assert!(is_label("") && is_label("lab-1_b") && !is_label(&"x".repeat(101)));
        assert!(is_session_name(&new_session_name("lab")));
        for wrong in ["", "..", "a/b", "a b", "ä", "a\n", "*"] {
            assert!(!is_session_name(wrong), "{wrong}");
        }
    }
}
