//! The error for a word outside a closed vocabulary. Each vocabulary parses its own words.

/// The error for a word that is not in a closed vocabulary (scenario, mode, division ...).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} `{text}`; known are {known}")]
pub struct UnknownWord {
    /// The kind of word that was expected, as a user would call it.
    pub kind: &'static str,
    /// The word that was found.
    pub text: String,
    /// The accepted spellings, comma separated.
    pub known: &'static str,
}
