//! A system under test that responds at once, and a sample library without data, for tests of LoadGen.

use std::sync::Mutex;

use regatta_loadgen::{
    request::ConfText,
    sut::{
        Completer, Query, QuerySampleIndex, QuerySampleLibrary, QuerySampleResponse, SutError,
        SystemUnderTest,
    },
};

/// Creates a conf text.
pub fn conf(text: &str) -> ConfText {
    ConfText::new("test.conf", text)
}

/// A system under test that responds within `issue_query` with the sample's index.
#[derive(Default)]
pub struct Null {
    /// The sample indices of each query, if they are recorded.
    pub queries: Mutex<Vec<Vec<QuerySampleIndex>>>,
    /// Whether queries are recorded.
    pub remember: bool,
}

impl SystemUnderTest for Null {
    fn name(&self) -> &str {
        "null"
    }

    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        if self.remember {
            let indices = (0..query.len()).map(|i| query.sample(i).index).collect();
            self.queries.lock().unwrap().push(indices);
        }
        for position in 0..query.len() {
            let sample = query.sample(position);
            let data = (sample.index as u64).to_le_bytes();
            completer.complete(&[QuerySampleResponse {
                id: sample.id,
                data: &data,
                n_tokens: 1,
            }]);
        }
        Ok(())
    }

    fn flush_queries(&self) -> Result<(), SutError> {
        Ok(())
    }
}

/// A sample library that records which samples are loaded.
pub struct Samples {
    /// Samples in the whole set.
    pub total: usize,
    /// Samples that are loaded together.
    pub performance: usize,
    /// The currently loaded samples.
    pub loaded: Mutex<Vec<QuerySampleIndex>>,
}

impl Samples {
    /// Creates a library of these sizes, with nothing loaded.
    pub fn new(total: usize, performance: usize) -> Self {
        Self {
            total,
            performance,
            loaded: Mutex::default(),
        }
    }
}

impl QuerySampleLibrary for Samples {
    fn name(&self) -> &str {
        "samples"
    }
    fn total_sample_count(&self) -> usize {
        self.total
    }
    fn performance_sample_count(&self) -> usize {
        self.performance
    }
    fn load_samples_to_ram(&self, samples: &[QuerySampleIndex]) -> Result<(), SutError> {
        self.loaded.lock().unwrap().extend_from_slice(samples);
        Ok(())
    }
    fn unload_samples_from_ram(&self, samples: &[QuerySampleIndex]) -> Result<(), SutError> {
        let mut loaded = self.loaded.lock().unwrap();
        let remaining = loaded
            .len()
            .checked_sub(samples.len())
            .ok_or("unloaded more than was loaded")?;
        loaded.truncate(remaining);
        Ok(())
    }
}
