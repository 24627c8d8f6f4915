//! A whole detail log in memory, for lookups by key.
//!
//! The module does not interpret keys. The rules and the checker do.

use std::{collections::HashMap, io::BufRead};

use super::{
    detail::{DetailError, DetailReader, DetailRecord},
    detail_value::Value,
};

/// All records of a detail log, in file order.
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
    /// Returns the error of the first line that cannot be read. To see all errors, iterate with [`DetailReader`].
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

    /// Returns every record, in file order.
    #[must_use]
    pub fn records(&self) -> &[DetailRecord] {
        &self.records
    }

    /// Returns the number of lines with content that are not records.
    #[must_use]
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// Returns the records of one key, in file order.
    pub fn all(&self, key: &str) -> impl Iterator<Item = &DetailRecord> {
        self.by_key
            .get(key)
            .into_iter()
            .flatten()
            .filter_map(|&index| self.records.get(index))
    }

    /// Returns the first record of a key, which is the one that counts if a key repeats (official `log_parser.py`).
    #[must_use]
    pub fn first(&self, key: &str) -> Option<&DetailRecord> {
        self.all(key).next()
    }

    /// Returns the value of a key's first record.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.first(key).map(|record| &record.value)
    }

    /// Returns the records marked as errors.
    pub fn errors(&self) -> impl Iterator<Item = &DetailRecord> {
        self.records.iter().filter(|record| record.is_error)
    }

    /// Returns the records marked as warnings.
    pub fn warnings(&self) -> impl Iterator<Item = &DetailRecord> {
        self.records.iter().filter(|record| record.is_warning)
    }
}
