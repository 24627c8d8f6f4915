//! How a run writes its requests for generated tokens, as a driver describes them.

use regatta_tokenizer::{NotTokens, Tokenizer};

/// The requests of a run: their text around the prompt, and where an answer has its tokens.
#[derive(Debug, Clone)]
pub(super) struct Requests {
    pub(super) path: String,
    pub(super) before: String,
    pub(super) after: String,
    pub(super) prompt: PromptForm,
    pub(super) answer: AnswerForm,
    /// The JSON pointer to the number of generated tokens.
    pub(super) count: Option<String>,
    pub(super) is_streaming: bool,
    pub(super) is_cumulative: bool,
}

/// The form of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptForm {
    /// A list of token ids.
    TokenIds,
    /// The text of the tokens.
    Text,
}

/// The form of an answer, with JSON pointers to its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerForm {
    TokenIds(String),
    /// A text, and the text of the model's reasoning, which must be missing or empty.
    Text {
        text: String,
        reasoning: Option<String>,
    },
}

impl Requests {
    /// Returns whether a tokenizer makes texts of tokens, or tokens of texts.
    pub(super) const fn need_tokenizer(&self) -> bool {
        matches!(self.prompt, PromptForm::Text) || matches!(self.answer, AnswerForm::Text { .. })
    }

    /// Returns the body of a request for a prompt of token ids. A prompt is sent as a text only with a tokenizer.
    pub(super) fn body(&self, prompt: &[i32], tokenizer: Option<&Tokenizer>) -> Result<Vec<u8>, NotTokens> {
        let mut body = Vec::with_capacity(self.before.len() + self.after.len() + 7 * prompt.len() + 2);
        body.extend_from_slice(self.before.as_bytes());
        match (self.prompt, tokenizer) {
            (PromptForm::Text, Some(tokenizer)) => {
                let ids: Vec<u32> = prompt.iter().map(|id| id.cast_unsigned()).collect();
                let bytes = tokenizer.decode(&ids)?;
                // A text is always JSON.
                let text = serde_json::to_vec(&String::from_utf8_lossy(&bytes)).unwrap_or_default();
                body.extend_from_slice(&text);
            }
            _ => push_ids(prompt, &mut body),
        }
        body.extend_from_slice(self.after.as_bytes());
        Ok(body)
    }
}

/// Adds a list of token ids.
fn push_ids(ids: &[i32], body: &mut Vec<u8>) {
    use std::io::Write as _;

    for (place, token) in ids.iter().enumerate() {
        body.push(if place == 0 { b'[' } else { b',' });
        // Writing to memory cannot fail.
        let _ = write!(body, "{token}");
    }
    body.extend_from_slice(if ids.is_empty() { b"[]" } else { b"]" });
}
