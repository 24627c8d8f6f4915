//! A whole detail log, for looking things up.
//!
//! It knows no key by name: what a key means is the rules' and the checker's business.

use std::{collections::HashMap, io::BufRead};

use super::{
    detail::{DetailError, DetailReader, DetailRecord},
    detail_value::Value,
};

/// All records of a detail log in their order.
#[derive(Debug, Clone, Default)]
pub struct DetailLog {
    records: Vec<DetailRecord>,
    by_key: HashMap<String, Vec<usize>>,
    passed_over: u64,
}

impl DetailLog {
    /// Reads a log to its end.
    ///
    /// # Errors
    /// The first line that does not read. To see all of them, iterate with [`DetailReader`].
    pub fn read(input: impl BufRead) -> Result<Self, DetailError> {
        let mut reader = DetailReader::new(input);
        let mut log = Self::default();
        for record in &mut reader {
            let record = record?;
            log.by_key
                .entry(record.key.clone())
                .or_default()
                .push(log.records.len());
            log.records.push(record);
        }
        log.passed_over = reader.passed_over();
        Ok(log)
    }

    /// Every record, in the file's order.
    #[must_use]
    pub fn records(&self) -> &[DetailRecord] {
        &self.records
    }

    /// Lines with content that are no records.
    #[must_use]
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// The records of one key, in the file's order.
    pub fn all(&self, key: &str) -> impl Iterator<Item = &DetailRecord> {
        self.by_key
            .get(key)
            .into_iter()
            .flatten()
            .filter_map(|&index| self.records.get(index))
    }

    /// The first record of a key: the one that counts when a key occurs again (official `log_parser.py`).
    #[must_use]
    pub fn first(&self, key: &str) -> Option<&DetailRecord> {
        self.all(key).next()
    }

    /// The value of a key's first record.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.first(key).map(|record| &record.value)
    }

    /// Records marked as errors.
    pub fn errors(&self) -> impl Iterator<Item = &DetailRecord> {
        self.records.iter().filter(|record| record.is_error)
    }

    /// Records marked as warnings.
    pub fn warnings(&self) -> impl Iterator<Item = &DetailRecord> {
        self.records.iter().filter(|record| record.is_warning)
    }
}
