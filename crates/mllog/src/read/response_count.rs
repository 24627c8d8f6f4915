//! Counts the responses of `mlperf_log_accuracy.json` by sample, without decoding them.

use std::io::Read;

use super::{AccuracyLogError, AccuracyScanner};

/// The number of responses in an accuracy log, for a library of known size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseCount {
    /// Samples of the library with at least one response.
    pub answered: usize,
    /// Samples of the library without a response.
    pub missing: usize,
    /// Further responses to the same samples.
    pub duplicates: usize,
}

impl ResponseCount {
    /// Reads the log `input` and counts the responses to `samples` samples. Responses to other samples do not count.
    ///
    /// # Errors
    /// [`AccuracyLogError`] if the log cannot be read.
    pub fn read(input: impl Read, samples: usize) -> Result<Self, AccuracyLogError> {
        let mut has_response = vec![false; samples];
        let (mut answered, mut duplicates) = (0, 0);
        let mut scanner = AccuracyScanner::new(input);
        while let Some(entry) = scanner.next_entry(|_| {})? {
            let position = usize::try_from(entry.qsl_idx).unwrap_or(usize::MAX);
            if let Some(seen) = has_response.get_mut(position) {
                let was_seen = std::mem::replace(seen, true);
                answered += usize::from(!was_seen);
                duplicates += usize::from(was_seen);
            }
        }
        Ok(Self {
            answered,
            missing: samples - answered,
            duplicates,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_counted_by_sample() {
        let entry = |index: u64| format!("{{ \"seq_id\" : 0, \"qsl_idx\" : {index}, \"data\" : \"00\" }}");
        let log = format!("[\n{}\n]\n", [entry(1), entry(1), entry(9)].join(",\n"));
        let found = ResponseCount::read(log.as_bytes(), 3).unwrap();
        let expected = ResponseCount {
            answered: 1,
            missing: 2,
            duplicates: 1,
        };
        assert_eq!(found, expected);
        assert!(ResponseCount::read(&log.as_bytes()[..20], 3).is_err());
    }
}
