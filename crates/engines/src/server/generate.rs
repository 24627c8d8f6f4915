//! The table `generate` of a driver: how a server of language models generates tokens.

use regatta_types::benchmark::Generation;
use serde::Deserialize;

use super::{
    placeholders::unknown_placeholder,
    requests::{AnswerForm, PromptForm, Requests},
};

/// The placeholders of a request.
const IN_REQUESTS: &[&str] = &["prompt", "text", "max_tokens", "stream"];
/// The placeholders of a request with beam search.
const IN_BEAM_REQUESTS: &[&str] = &["prompt", "text", "max_tokens", "min_tokens", "beams"];

/// How a server generates tokens.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Generate {
    /// The path that requests are posted to.
    path: String,
    /// The JSON document of a request, with `{prompt}` for the list of token ids or `{text}` for their text, `{max_tokens}`, and `{stream}` for
    /// `true` or `false`.
    body: String,
    /// The same of a request that is decoded with beam search, which is answered at once. It has `{beams}` for the width, and may have `{min_tokens}`.
    /// `None` for a server without beam search.
    #[serde(default)]
    beam_body: Option<String>,
    /// The JSON pointer to the token ids, in an answer and in each event of a stream.
    #[serde(default)]
    tokens: Option<String>,
    /// Where the text is, in place of `tokens`.
    #[serde(default)]
    text: Option<Pointers>,
    /// Where the text of the model's reasoning is, which must be missing or empty.
    #[serde(default)]
    reasoning: Option<Pointers>,
    /// The JSON pointer to the number of generated tokens, if the server states it.
    #[serde(default)]
    count: Option<String>,
    /// Whether each event of a stream repeats the tokens of the events before it.
    #[serde(default)]
    is_cumulative: bool,
}

/// JSON pointers to a text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pointers {
    /// In an answer.
    answer: String,
    /// In each event of a stream.
    event: String,
}

impl Pointers {
    fn of(&self, is_streaming: bool) -> String {
        if is_streaming { &self.event } else { &self.answer }.clone()
    }
}

impl Generate {
    /// Returns what makes the table unusable.
    pub(super) fn fault(&self) -> Option<String> {
        if let Some(fault) = body_fault("body", &self.body, IN_REQUESTS) {
            return Some(fault);
        }
        if let Some(body) = &self.beam_body {
            if let Some(fault) = body_fault("beam_body", body, IN_BEAM_REQUESTS) {
                return Some(fault);
            }
            if !body.contains("{beams}") {
                return Some("`generate.beam_body` does not have {beams}".to_owned());
            }
        }
        if self.tokens.is_some() == self.text.is_some() {
            return Some("`generate` has either `tokens` or `text`".to_owned());
        }
        if self.is_cumulative && self.text.is_some() {
            return Some("`generate.is_cumulative` is for answers with `tokens`".to_owned());
        }
        if self.reasoning.is_some() && self.text.is_none() {
            return Some("`generate.reasoning` is for answers with `text`".to_owned());
        }
        let texts = self.text.iter().chain(&self.reasoning);
        let of_texts = texts.flat_map(|pointers| [&pointers.answer, &pointers.event]);
        let mut pointers = of_texts
            .chain(&self.count)
            .chain(&self.tokens)
            .chain([&self.path]);
        let is_valid = pointers.all(|pointer| pointer.starts_with('/'));
        (!is_valid).then(|| "the path and all JSON pointers of `generate` begin with /".to_owned())
    }

    /// Returns whether prompts are parts of a chat, which the server's template changes.
    pub(super) fn is_chat(&self) -> bool {
        self.body.contains("{text}") && self.path.split('/').any(|part| part == "chat")
    }

    /// Returns how requests are written. `None` if they are decoded with beam search and the server does not have it.
    pub(super) fn requests(&self, generation: &Generation, is_streaming: bool) -> Option<Requests> {
        // The beams are known only at their end.
        let is_streaming = is_streaming && generation.beams.is_none();
        let body = match generation.beams {
            None => self.body.clone(),
            Some(beams) => self.beam_body.as_ref()?.replace("{beams}", &beams.to_string()),
        };
        let filled = body
            .replace("{max_tokens}", &generation.max_tokens.to_string())
            .replace("{min_tokens}", &generation.min_tokens.to_string())
            .replace("{stream}", if is_streaming { "true" } else { "false" });
        let (prompt, mark) = prompt_form(&filled);
        let (before, after) = filled.split_once(mark).unwrap_or((&filled, ""));
        let text = self.text.as_ref().map(|text| AnswerForm::Text {
            text: text.of(is_streaming),
            reasoning: self.reasoning.as_ref().map(|pointers| pointers.of(is_streaming)),
        });
        let tokens = self.tokens.clone().unwrap_or_default();
        Some(Requests {
            path: self.path.clone(),
            before: before.to_owned(),
            after: after.to_owned(),
            prompt,
            answer: text.unwrap_or(AnswerForm::TokenIds(tokens)),
            // Servers count the tokens of all beams.
            count: self.count.clone().filter(|_| generation.beams.is_none()),
            is_streaming,
            is_cumulative: self.is_cumulative,
        })
    }
}

/// Returns the form of the prompt in a request, and its placeholder.
fn prompt_form(body: &str) -> (PromptForm, &'static str) {
    if body.contains("{text}") {
        (PromptForm::Text, "{text}")
    } else {
        (PromptForm::TokenIds, "{prompt}")
    }
}

/// Returns what makes the document of a request unusable.
fn body_fault(key: &str, body: &str, known: &[&str]) -> Option<String> {
    if let Some(unknown) = unknown_placeholder(body, known) {
        return Some(unknown);
    }
    if body.matches("{prompt}").count() + body.matches("{text}").count() != 1 {
        return Some(format!(
            "`generate.{key}` does not have one {{prompt}} or {{text}}"
        ));
    }
    let mut filled = body.to_owned();
    for name in known {
        let value = match *name {
            "text" => "\"\"",
            "stream" => "false",
            _ => "1",
        };
        filled = filled.replace(&format!("{{{name}}}"), value);
    }
    let parsed = serde_json::from_str::<serde::de::IgnoredAny>(&filled);
    parsed
        .err()
        .map(|error| format!("`generate.{key}` is not JSON: {error}"))
}
