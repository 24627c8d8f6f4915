//! The driver's SUT and library, in Rust: answers within `issue_query` with the sample's index.

use std::sync::Mutex;

use regatta_loadgen::sut::{
    Completer, Query, QuerySampleIndex, QuerySampleLibrary, QuerySampleResponse, SutError, SystemUnderTest,
};

/// Answers at once, and notes what it was asked.
pub(crate) struct EchoSut {
    first_tokens: bool,
    issued: Mutex<Vec<u64>>,
}

impl EchoSut {
    pub(crate) fn new(first_tokens: bool) -> Self {
        Self {
            first_tokens,
            issued: Mutex::default(),
        }
    }

    /// Sample indices, with a mark after each query.
    pub(crate) fn issued(self) -> Vec<u64> {
        self.issued.into_inner().unwrap()
    }
}

impl SystemUnderTest for EchoSut {
    fn name(&self) -> &str {
        "EchoSUT"
    }

    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        let samples: Vec<_> = (0..query.len()).map(|position| query.sample(position)).collect();
        let data: Vec<[u8; 8]> = samples
            .iter()
            .map(|sample| (sample.index as u64).to_le_bytes())
            .collect();
        let responses: Vec<_> = samples
            .iter()
            .zip(&data)
            .map(|(sample, data)| QuerySampleResponse {
                id: sample.id,
                data,
                n_tokens: i64::try_from(2 + sample.index % 7).unwrap(),
            })
            .collect();
        let mut issued = self.issued.lock().unwrap();
        issued.extend(samples.iter().map(|sample| sample.index as u64));
        issued.push(u64::MAX);
        if self.first_tokens {
            completer.first_token(&responses);
        }
        completer.complete(&responses);
        Ok(())
    }

    fn flush_queries(&self) -> Result<(), SutError> {
        Ok(())
    }
}

/// Only counts.
pub(crate) struct CountingQsl {
    pub(crate) total: u64,
    pub(crate) performance: u64,
}

impl QuerySampleLibrary for CountingQsl {
    fn name(&self) -> &str {
        "CountingQSL"
    }

    fn total_sample_count(&self) -> usize {
        usize::try_from(self.total).unwrap()
    }

    fn performance_sample_count(&self) -> usize {
        usize::try_from(self.performance).unwrap()
    }

    fn load_samples_to_ram(&self, _: &[QuerySampleIndex]) -> Result<(), SutError> {
        Ok(())
    }

    fn unload_samples_from_ram(&self, _: &[QuerySampleIndex]) -> Result<(), SutError> {
        Ok(())
    }
}
