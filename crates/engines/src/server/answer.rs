//! The tokens in a server's answer: a JSON document, or a stream of server-sent events with one each. An answer in text becomes the tokens of the
//! model's tokenizer. Bounded on hostile input.

use regatta_tokenizer::{NotTokens, Tokenizer};
use serde_json::Value;

use super::{
    http::BodyEnd,
    requests::{AnswerForm, Requests},
};

/// The maximum size of an event's line in bytes.
const MAX_LINE: usize = 8 << 20;
/// The end of a stream as OpenAI's interface announces it.
const DONE: &[u8] = b"[DONE]";

/// The beginnings of the text of a reasoning model whose server leaves the reasoning in the text.
const REASONING_MARKS: [&str; 2] = ["<think>", "<|channel|>analysis"];

/// Why an answer cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnswerError {
    #[error("the server's answer is not JSON: {text}")]
    NotJson {
        /// Its beginning.
        text: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("the server's answer has no list of token ids at {pointer}: {text}")]
    NoTokens { pointer: String, text: String },
    #[error("the server's answer has no text at {pointer}: {text}")]
    NoText { pointer: String, text: String },
    #[error(
        "the model reasons before it answers, which the benchmark forbids: {0}; hint: switch its chat template's reasoning off"
    )]
    Reasons(String),
    #[error("the server's answer has no tokens: {text}")]
    NotTokens {
        text: String,
        #[source]
        source: NotTokens,
    },
    #[error(
        "the server's answer has no number of tokens at `transcribe.count` of the driver, and no tokenizer of the benchmark counts them: {0}"
    )]
    NoCount(String),
    #[error("an event of the server's stream is longer than {} MiB", MAX_LINE >> 20)]
    TooLong,
    #[error("the server generated no token")]
    Empty,
    #[error(
        "the server states {stated} tokens of an answer that may have at most {max}; hint: the request in the driver limits them"
    )]
    TooManyTokens { stated: usize, max: usize },
    #[error("the server closed the connection before the end of its stream")]
    CutOff,
}

/// The tokens of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AnswerTokens {
    pub(super) tokens: Vec<i32>,
    /// The number of tokens that the server says it generated. `None` if it does not say.
    pub(super) generated: Option<usize>,
}

impl AnswerTokens {
    /// Returns the number of generated tokens: as the server states it, or those that it sent.
    pub(super) fn count(&self) -> usize {
        self.generated.unwrap_or(self.tokens.len())
    }

    /// Checks the number of tokens that the server states or sent. The tokens of a text are not those that the server generated.
    pub(super) fn expect_at_most(&self, max: usize, is_text: bool) -> Result<(), AnswerError> {
        let sent = if is_text { 0 } else { self.tokens.len() };
        expect_at_most(self.generated.unwrap_or(0).max(sent), max)
    }
}

/// Collects the tokens of an answer from its parts.
#[derive(Debug)]
pub(super) struct AnswerReader<'a> {
    requests: &'a Requests,
    /// Makes tokens of an answer in text.
    tokenizer: Option<&'a Tokenizer>,
    /// The beginning of an answer in text.
    beginning: String,
    generated: Option<usize>,
    /// Whether the stream's end was announced.
    is_done: bool,
    /// The received part of a line, or of the document.
    buffer: Vec<u8>,
    pub(super) tokens: Vec<i32>,
    error: Option<AnswerError>,
}

impl<'a> AnswerReader<'a> {
    pub(super) const fn new(requests: &'a Requests, tokenizer: Option<&'a Tokenizer>) -> Self {
        Self {
            requests,
            tokenizer,
            beginning: String::new(),
            generated: None,
            is_done: false,
            buffer: Vec::new(),
            tokens: Vec::new(),
            error: None,
        }
    }

    /// Takes the next part of the answer's body.
    pub(super) fn receive(&mut self, part: &[u8]) {
        if self.error.is_some() {
            return;
        }
        if !self.requests.is_streaming {
            self.buffer.extend_from_slice(part);
            return;
        }
        for piece in part.split_inclusive(|&byte| byte == b'\n') {
            if self.buffer.len() + piece.len() > MAX_LINE {
                self.error = Some(AnswerError::TooLong);
                return;
            }
            self.buffer.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.buffer);
                if let Err(error) = self.read_line(line.trim_ascii()) {
                    self.error = Some(error);
                    return;
                }
                self.buffer = line;
                self.buffer.clear();
            }
        }
    }

    /// Returns the tokens of a complete answer.
    pub(super) fn finish(mut self, end: BodyEnd) -> Result<AnswerTokens, AnswerError> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let rest = std::mem::take(&mut self.buffer);
        if self.requests.is_streaming {
            // The last line may lack its end.
            self.read_line(rest.trim_ascii())?;
        } else {
            self.read_document(&rest, true)?;
        }
        // Only the length of a body, or its chunks, prove that it is complete.
        if self.requests.is_streaming && end == BodyEnd::Closed && !self.is_done {
            return Err(AnswerError::CutOff);
        }
        if self.tokens.is_empty() {
            return Err(AnswerError::Empty);
        }
        Ok(AnswerTokens {
            tokens: self.tokens,
            generated: self.generated,
        })
    }

    fn read_line(&mut self, line: &[u8]) -> Result<(), AnswerError> {
        // Other lines are comments, names of events, and the empty lines between them.
        match line.strip_prefix(b"data:").map(<[u8]>::trim_ascii_start) {
            Some(DONE) => {
                self.is_done = true;
                Ok(())
            }
            None => Ok(()),
            Some(document) => self.read_document(document, false),
        }
    }

    /// Adds the tokens of a document. Events without tokens, such as the last one with statistics, are allowed.
    fn read_document(&mut self, document: &[u8], needs_tokens: bool) -> Result<(), AnswerError> {
        let value: Value = serde_json::from_slice(document).map_err(|source| AnswerError::NotJson {
            text: beginning(document),
            source,
        })?;
        let requests = self.requests;
        let missing = || {
            let text = beginning(document);
            match &requests.answer {
                AnswerForm::TokenIds(pointer) => AnswerError::NoTokens {
                    pointer: pointer.clone(),
                    text,
                },
                AnswerForm::Text { text: pointer, .. } => AnswerError::NoText {
                    pointer: pointer.clone(),
                    text,
                },
            }
        };
        // A server that fails within a stream says so in an event.
        if value.get("error").is_some_and(|error| !error.is_null()) {
            return Err(missing());
        }
        let count = requests
            .count
            .as_ref()
            .and_then(|pointer| value.pointer(pointer)?.as_u64());
        self.generated = count
            .and_then(|count| usize::try_from(count).ok())
            .or(self.generated);
        let pointer = match &requests.answer {
            AnswerForm::TokenIds(pointer) => pointer,
            AnswerForm::Text { text, reasoning } => {
                let reasoning = reasoning
                    .as_ref()
                    .and_then(|pointer| value.pointer(pointer)?.as_str());
                if let Some(reasoning) = reasoning.map(str::trim).filter(|text| !text.is_empty()) {
                    return Err(AnswerError::Reasons(beginning(reasoning.as_bytes())));
                }
                text
            }
        };
        let Some(found) = value.pointer(pointer).filter(|found| !found.is_null()) else {
            return if needs_tokens { Err(missing()) } else { Ok(()) };
        };
        let ids: Option<Vec<i32>> = match (&requests.answer, found) {
            (AnswerForm::TokenIds(_), Value::Array(ids)) => {
                let id = |token: &Value| token.as_i64().and_then(|id| i32::try_from(id).ok());
                ids.iter().map(id).collect()
            }
            (AnswerForm::Text { .. }, Value::String(text)) => Some(self.tokens_of(text)?),
            _ => None,
        };
        let ids = ids.ok_or_else(missing)?;
        if requests.is_cumulative {
            self.tokens.clear();
        }
        self.tokens.extend(ids);
        Ok(())
    }

    /// Returns the tokens of a part of the text.
    fn tokens_of(&mut self, text: &str) -> Result<Vec<i32>, AnswerError> {
        if let Some(reasoning) = self.reasoning(text) {
            return Err(AnswerError::Reasons(reasoning));
        }
        let tokens = self
            .tokenizer
            .map_or(Ok(Vec::new()), |tokenizer| tokenizer.encode(text));
        let tokens = tokens.map_err(|source| AnswerError::NotTokens {
            text: beginning(text.as_bytes()),
            source,
        })?;
        Ok(tokens.into_iter().map(u32::cast_signed).collect())
    }

    /// Returns the beginning of the answer when the model reasons in its text.
    fn reasoning(&mut self, text: &str) -> Option<String> {
        let longest = REASONING_MARKS.iter().map(|mark| mark.len()).max().unwrap_or(0);
        if self.beginning.len() >= longest {
            return None;
        }
        self.beginning.push_str(text);
        reasons(&self.beginning).then(|| beginning(self.beginning.trim_start().as_bytes()))
    }
}

/// Checks a number of tokens that a server states: LoadGen counts them.
pub(super) fn expect_at_most(stated: usize, max: usize) -> Result<(), AnswerError> {
    if stated > max {
        return Err(AnswerError::TooManyTokens { stated, max });
    }
    Ok(())
}

/// Returns whether a text begins with a model's reasoning.
pub(super) fn reasons(text: &str) -> bool {
    let text = text.trim_start();
    REASONING_MARKS.iter().any(|mark| text.starts_with(mark))
}

/// Returns the beginning of a document for a message.
pub(super) fn beginning(document: &[u8]) -> String {
    let text = String::from_utf8_lossy(&document[..document.len().min(200)]);
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::requests::PromptForm;

    fn read(is_streaming: bool, is_cumulative: bool, parts: &[&str]) -> Result<Vec<i32>, String> {
        let answer = read_to(BodyEnd::Chunked, is_streaming, is_cumulative, parts);
        answer.map(|answer| answer.tokens)
    }

    fn read_to(
        end: BodyEnd,
        is_streaming: bool,
        is_cumulative: bool,
        parts: &[&str],
    ) -> Result<AnswerTokens, String> {
        let requests = Requests {
            path: String::new(),
            before: String::new(),
            after: String::new(),
            prompt: PromptForm::TokenIds,
            answer: AnswerForm::TokenIds("/tokens".to_owned()),
            count: Some("/n".to_owned()),
            is_streaming,
            is_cumulative,
        };
        let mut reader = AnswerReader::new(&requests, None);
        parts.iter().for_each(|part| reader.receive(part.as_bytes()));
        reader.finish(end).map_err(|error| error.to_string())
    }

    #[test]
    fn the_end_of_a_stream_is_neither_lost_nor_made_up() {
        let unended = "data: {\"tokens\":[1]}\n\ndata: {\"tokens\":[2],\"n\":3}";
        let answer = read_to(BodyEnd::Chunked, true, false, &[unended]).unwrap();
        assert_eq!((answer.tokens, answer.generated), (vec![1, 2], Some(3)));
        let cut_off = read_to(BodyEnd::Closed, true, false, &[unended]).unwrap_err();
        assert!(cut_off.contains("before the end of its stream"), "{cut_off}");
        let done = format!("{unended}\n\ndata: [DONE]\n");
        assert!(read_to(BodyEnd::Closed, true, false, &[&done]).is_ok());
    }

    #[test]
    fn tokens_of_documents_and_streams_are_collected_however_they_are_cut() {
        assert_eq!(
            read(false, false, &[r#"{"tok"#, r#"ens":[1,2]}"#]),
            Ok(vec![1, 2])
        );
        let stream = "event: x\r\ndata: {\"tokens\":[1]}\r\n\r\n: alive\n\ndata: {\"tokens\":[2,3]}\n\ndata: {\"stop\":true}\n\ndata: [DONE]\n\n";
        for cut in 0..stream.len() {
            assert_eq!(
                read(true, false, &[&stream[..cut], &stream[cut..]]),
                Ok(vec![1, 2, 3]),
                "{cut}"
            );
        }
        let repeated = "data: {\"tokens\":[1]}\n\ndata: {\"tokens\":[1,2]}\n\n";
        assert_eq!(read(true, true, &[repeated]), Ok(vec![1, 2]));
    }

    /// Returns the tokens of an answer in text, of a tokenizer whose tokens are `a`, `b` and `ab`, and letters of marks.
    fn read_text(is_streaming: bool, text: &str) -> Result<AnswerTokens, String> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("tokenizer.json");
        let document = serde_json::json!({
            "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false },
            "model": { "vocab": { "a": 0, "b": 1, "ab": 2, "<": 3, ">": 4 }, "merges": ["a b"] },
        });
        std::fs::write(&path, document.to_string()).unwrap();
        let tokenizer = Tokenizer::read(&path).unwrap();
        let of = |pointer: &str| format!("/{}/{pointer}", if is_streaming { "delta" } else { "message" });
        let requests = Requests {
            path: String::new(),
            before: String::new(),
            after: String::new(),
            prompt: PromptForm::Text,
            answer: AnswerForm::Text {
                text: of("content"),
                reasoning: Some(of("reasoning")),
            },
            count: Some("/n".to_owned()),
            is_streaming,
            is_cumulative: false,
        };
        let mut reader = AnswerReader::new(&requests, Some(&tokenizer));
        reader.receive(text.as_bytes());
        reader.finish(BodyEnd::Chunked).map_err(|error| error.to_string())
    }

    #[test]
    fn answers_in_text_become_tokens() {
        let whole = read_text(false, r#"{"message":{"content":"aba","reasoning":""},"n":4}"#).unwrap();
        assert_eq!((whole.tokens, whole.generated), (vec![2, 0], Some(4)));
        // As OpenAI's interface streams: a role first, then parts of the text, at the end statistics.
        let stream = "data: {\"delta\":{\"role\":\"assistant\",\"content\":null}}\n\ndata: {\"delta\":{\"content\":\"a\"}}\n\n\
            data: {\"delta\":{\"content\":\"b\"}}\n\ndata: {\"delta\":{},\"n\":2}\n\ndata: [DONE]\n\n";
        let streamed = read_text(true, stream).unwrap();
        assert_eq!((streamed.tokens, streamed.generated), (vec![0, 1], Some(2)));
        let event = |text: &str| format!("data: {{\"delta\":{{\"content\":\"{text}\"}}}}\n");
        for (is_streaming, text, expected) in [
            (
                false,
                r#"{"message":{"content":"a","reasoning":"Let me see"}}"#.to_owned(),
                "the model reasons before it answers, which the benchmark forbids: Let me see; hint: switch its chat template's reasoning off",
            ),
            (true, event("<think>Well"), "forbids: <think>Well"),
            (true, event("<") + &event("think>"), "forbids: <think>"),
            (
                false,
                r#"{"message":{}}"#.to_owned(),
                "no text at /message/content",
            ),
            (
                false,
                r#"{"message":{"content":7}}"#.to_owned(),
                "no text at /message/content",
            ),
            (
                false,
                r#"{"message":{"content":"xyz"}}"#.to_owned(),
                "the server's answer has no tokens: xyz",
            ),
            (true, event(""), "generated no token"),
        ] {
            let error = read_text(is_streaming, &text).unwrap_err();
            assert!(error.contains(expected), "{expected} in {error}");
        }
    }

    #[test]
    fn answers_that_cannot_be_used_are_described() {
        let faults = [
            (false, "<html>busy</html>", "not JSON: <html>busy"),
            (false, r#"{"text":"a"}"#, "no list of token ids at /tokens"),
            (false, r#"{"tokens":["a"]}"#, "no list of token ids"),
            (false, r#"{"tokens":[4294967296]}"#, "no list of token ids"),
            (false, r#"{"tokens":[]}"#, "generated no token"),
            (
                true,
                "data: {\"error\":{\"message\":\"out of memory\"}}\n",
                "out of memory",
            ),
            (true, "data: {\"tokens\n", "not JSON"),
            (true, "", "generated no token"),
        ];
        for (is_streaming, text, expected) in faults {
            let error = read(is_streaming, false, &[text]).unwrap_err();
            assert!(error.contains(expected), "{expected} in {error}");
        }
        let endless = "data: ".to_owned() + &"x".repeat(MAX_LINE);
        assert!(
            read(true, false, &[&endless])
                .unwrap_err()
                .contains("longer than 8 MiB")
        );
    }
}
