//! A complete detail log in memory, for lookups by key.
//!
//! The module does not interpret keys. The rules and the checker do.

use std::{collections::HashMap, io::BufRead};

use super::{
    detail::{DetailError, DetailReader, DetailRecord},
    detail_value::Value,
};

/// The maximum size of a log that is kept in memory, in bytes. The largest published ones have 2 MiB.
const MAX_BYTES: u64 = 64 << 20;
/// The maximum number of records that are kept.
const MAX_RECORDS: usize = 500_000;

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
    /// Returns the error of the first line that cannot be read, or [`DetailError::TooLarge`]. To see all errors, or to read a log of any
    /// size, iterate with [`DetailReader`].
    pub fn read(input: impl BufRead) -> Result<Self, DetailError> {
        let mut input = input.take(MAX_BYTES);
        let log = Self::read_limited(&mut input);
        // The limit may have cut a record.
        if input.limit() == 0 {
            return Err(DetailError::TooLarge { limit: "64 MiB" });
        }
        log
    }

    fn read_limited(input: impl BufRead) -> Result<Self, DetailError> {
        let mut reader = DetailReader::new(input);
        let mut log = Self::default();
        for record in &mut reader {
            let record = record?;
            if log.records.len() == MAX_RECORDS {
                return Err(DetailError::TooLarge {
                    limit: "500,000 records",
                });
            }
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
