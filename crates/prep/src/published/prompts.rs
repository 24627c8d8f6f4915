//! Converts the prompts in a file of records to the arrays that a model server's engine reads: token ids, padded with zeros, and their numbers.

use regatta_tokenizer::Tokenizer;
use serde_json::Value;

use super::{error::RecordError, input_array::InputArray};

/// The arrays of a benchmark's prompts.
#[derive(Debug)]
pub(super) struct Prompts {
    /// The tokens of the longest prompt that the model takes.
    longest: usize,
    ids: Vec<u8>,
    counts: Vec<u8>,
}

impl Prompts {
    /// Reads the token ids in `field` of each record of a JSON array of objects.
    pub(super) fn read(bytes: &[u8], field: &str, longest: usize) -> Result<Self, RecordError> {
        let records: Vec<serde_json::Map<String, Value>> = serde_json::from_slice(bytes)?;
        let mut prompts = Self {
            longest,
            ids: Vec::with_capacity(records.len() * longest * size_of::<i32>()),
            counts: Vec::with_capacity(records.len() * size_of::<i32>()),
        };
        for (index, record) in records.iter().enumerate() {
            let id = |token: &Value| token.as_i64().and_then(|token| i32::try_from(token).ok());
            let ids = record.get(field).and_then(Value::as_array);
            let ids: Option<Vec<i32>> = ids.and_then(|ids| ids.iter().map(id).collect());
            let ids = ids.ok_or_else(|| RecordError::Prompt {
                record: index + 1,
                field: field.to_owned(),
            })?;
            prompts.add(&ids).ok_or_else(|| RecordError::PromptLength {
                record: index + 1,
                found: ids.len(),
                longest,
            })?;
        }
        Ok(prompts)
    }

    /// Makes the prompt of each record of a JSON array of objects: the template with the texts of the record's fields, of whose tokens the first
    /// `longest` are taken.
    pub(super) fn of_template(
        bytes: &[u8],
        template: &str,
        tokenizer: &Tokenizer,
        longest: usize,
    ) -> Result<Self, RecordError> {
        let records: Vec<serde_json::Map<String, Value>> = serde_json::from_slice(bytes)?;
        let mut prompts = Self {
            longest,
            ids: Vec::with_capacity(records.len() * longest * size_of::<i32>()),
            counts: Vec::with_capacity(records.len() * size_of::<i32>()),
        };
        for (index, record) in records.iter().enumerate() {
            let text = filled(template, record).map_err(|field| RecordError::PromptText {
                record: index + 1,
                field: field.to_owned(),
            })?;
            let tokens = tokenizer
                .encode(&text)
                .map_err(|source| RecordError::PromptTokens {
                    record: index + 1,
                    source,
                })?;
            let ids: Vec<i32> = tokens.iter().take(longest).map(|id| id.cast_signed()).collect();
            prompts.add(&ids).ok_or_else(|| RecordError::PromptLength {
                record: index + 1,
                found: ids.len(),
                longest,
            })?;
        }
        Ok(prompts)
    }

    /// Adds a prompt. `None` when it has no token, or too many.
    fn add(&mut self, ids: &[i32]) -> Option<()> {
        let padding = self.longest.checked_sub(ids.len()).filter(|_| !ids.is_empty())?;
        let count = i32::try_from(ids.len()).ok()?;
        self.ids.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
        self.ids.resize(self.ids.len() + padding * size_of::<i32>(), 0);
        self.counts.extend(count.to_le_bytes());
        Some(())
    }

    /// Returns the arrays of the model's two inputs, which have names.
    pub(super) fn arrays(self, names: [&str; 2]) -> [InputArray; 2] {
        let count = self.counts.len() / size_of::<i32>();
        [
            InputArray::of_tokens(names[0], &[count, self.longest], self.ids),
            InputArray::of_tokens(names[1], &[count], self.counts),
        ]
    }
}

/// Returns a template with the texts of a record's fields, or the first field that the record does not have as a text.
fn filled<'t>(template: &'t str, record: &serde_json::Map<String, Value>) -> Result<String, &'t str> {
    let mut parts = template.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (field, after) = part.split_once('}').unwrap_or((part, ""));
        text += record.get(field).and_then(Value::as_str).ok_or(field)?;
        text += after;
    }
    Ok(text)
}
