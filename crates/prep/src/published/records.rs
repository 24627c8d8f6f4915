//! Counts the records of a file and checks their fields. Reads no value of them.

use std::collections::HashMap;

use regatta_types::benchmark::RecordForm;
use serde::de::IgnoredAny;

use super::error::RecordError;

/// Returns the number of records, each of which has all `fields`.
pub(super) fn count(form: RecordForm, bytes: &[u8], fields: &[String]) -> Result<usize, RecordError> {
    match form {
        RecordForm::Json => objects(bytes, fields),
        RecordForm::Tsv => lines(bytes, fields),
    }
}

fn objects(bytes: &[u8], fields: &[String]) -> Result<usize, RecordError> {
    let records: Vec<HashMap<String, IgnoredAny>> = serde_json::from_slice(bytes)?;
    for (index, record) in records.iter().enumerate() {
        if let Some(field) = fields.iter().find(|field| !record.contains_key(*field)) {
            return Err(RecordError::Field {
                record: index + 1,
                field: field.clone(),
            });
        }
    }
    Ok(records.len())
}

fn lines(bytes: &[u8], fields: &[String]) -> Result<usize, RecordError> {
    let text = str::from_utf8(bytes).map_err(|_| RecordError::NotText)?;
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    if let Some(field) = fields.iter().find(|field| !names.contains(&field.as_str())) {
        return Err(RecordError::Column(field.clone()));
    }
    let mut count = 0;
    for line in lines {
        count += 1;
        let found = line.split('\t').count();
        if found != names.len() {
            return Err(RecordError::Columns {
                line: count + 1,
                found,
                expected: names.len(),
            });
        }
    }
    Ok(count)
}
