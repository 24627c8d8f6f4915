//! How a run writes its requests for generated tokens, as a driver describes them.

/// The requests of a run: their text around the prompt, and where an answer has its tokens.
#[derive(Debug, Clone)]
pub(super) struct Requests {
    pub(super) path: String,
    pub(super) before: String,
    pub(super) after: String,
    /// The JSON pointer to the tokens.
    pub(super) tokens: String,
    /// The JSON pointer to the number of generated tokens.
    pub(super) count: Option<String>,
    pub(super) is_streaming: bool,
    pub(super) is_cumulative: bool,
}

impl Requests {
    /// Returns the body of a request for a prompt of token ids.
    pub(super) fn body(&self, prompt: &[i32]) -> Vec<u8> {
        use std::io::Write as _;

        let mut body = Vec::with_capacity(self.before.len() + self.after.len() + 7 * prompt.len() + 2);
        body.extend_from_slice(self.before.as_bytes());
        for (place, token) in prompt.iter().enumerate() {
            body.push(if place == 0 { b'[' } else { b',' });
            // Writing to memory cannot fail.
            let _ = write!(body, "{token}");
        }
        body.extend_from_slice(if prompt.is_empty() { b"[]" } else { b"]" });
        body.extend_from_slice(self.after.as_bytes());
        body
    }
}
