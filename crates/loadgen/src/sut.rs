//! Interface between a LoadGen and the system under test (SUT): queries, responses, and the threads that may call.
//!
//! Both LoadGens (Regatta's and the MLCommons one) and every harness use it. The interface allocates nothing per query. A query may be a
//! borrowed array or a sequence that is computed as it is read.

mod resident;

use std::{error::Error, sync::Arc};

pub use resident::ResidentLibrary;

/// Identifies one expected response by its position in the order of issue, counted from 1 over the complete run. It equals the `seq_id`
/// of LoadGen's logs plus one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct ResponseId(pub u64);

/// Index of a sample in the complete dataset.
pub type QuerySampleIndex = usize;

/// One sample of a query. Its layout equals the official `QuerySample` on 64-bit machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct QuerySample {
    /// The id that the response must carry.
    pub id: ResponseId,
    /// The sample to compute.
    pub index: QuerySampleIndex,
}

/// A query that is computed as it is read, for example a complete Offline run.
pub trait QuerySequence: Sync {
    /// Returns the number of samples.
    fn len(&self) -> usize;
    /// Whether the query has no samples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the sample at `position`, which is less than [`len`](Self::len).
    fn sample(&self, position: usize) -> QuerySample;
}

/// A query as the SUT sees it: random access, valid until `issue_query` returns.
#[derive(Clone, Copy)]
pub enum Query<'a> {
    /// Samples in memory.
    Slice(&'a [QuerySample]),
    /// Samples that are computed on access.
    Lazy(&'a dyn QuerySequence),
}

impl<'a> Query<'a> {
    /// Returns the number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Slice(samples) => samples.len(),
            Self::Lazy(samples) => samples.len(),
        }
    }

    /// Whether the query has no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the sample at `position`.
    ///
    /// # Panics
    /// When `position` is not less than [`len`](Self::len).
    #[must_use]
    pub fn sample(&self, position: usize) -> QuerySample {
        match self {
            Self::Slice(samples) => samples[position],
            Self::Lazy(samples) => samples.sample(position),
        }
    }

    /// Returns the samples in order.
    pub fn iter(self) -> impl Iterator<Item = QuerySample> + 'a {
        (0..self.len()).map(move |position| self.sample(position))
    }

    /// Returns the samples as a slice, when they are in memory.
    #[must_use]
    pub const fn as_slice(&self) -> Option<&'a [QuerySample]> {
        match self {
            Self::Slice(samples) => Some(samples),
            Self::Lazy(_) => None,
        }
    }
}

/// One response.
#[derive(Debug, Clone, Copy)]
pub struct QuerySampleResponse<'a> {
    /// The expected response that this is.
    pub id: ResponseId,
    /// The response's bytes, as the accuracy log contains them.
    pub data: &'a [u8],
    /// Number of tokens in the response; 0 for models without tokens.
    pub n_tokens: i64,
}

impl<'a> QuerySampleResponse<'a> {
    /// Creates a response without a token count.
    #[must_use]
    pub const fn new(id: ResponseId, data: &'a [u8]) -> Self {
        Self {
            id,
            data,
            n_tokens: 0,
        }
    }
}

/// The receiver of responses, which the LoadGen in use implements.
pub trait CompletionSink: Send + Sync {
    /// Takes final responses. It does not access the bytes after it returns.
    fn complete(&self, responses: &[QuerySampleResponse<'_>]);
    /// Takes the first token of responses that are still being computed.
    fn first_token(&self, responses: &[QuerySampleResponse<'_>]);
    /// Gives up the run: no further responses will come.
    fn fail(&self, error: SutError);
}

/// Passes responses to LoadGen. It may be cloned and called from any thread, also from within `issue_query`.
#[derive(Clone)]
pub struct Completer(Arc<dyn CompletionSink>);

impl Completer {
    /// Wraps a LoadGen's sink.
    #[must_use]
    pub fn new(sink: Arc<dyn CompletionSink>) -> Self {
        Self(sink)
    }

    /// Passes final responses. LoadGen stamps them with one clock reading on entry.
    pub fn complete(&self, responses: &[QuerySampleResponse<'_>]) {
        self.0.complete(responses);
    }

    /// Passes first tokens.
    pub fn first_token(&self, responses: &[QuerySampleResponse<'_>]) {
        self.0.first_token(responses);
    }

    /// Gives up the run: it becomes invalid with this reason and LoadGen stops waiting.
    pub fn fail(&self, error: SutError) {
        self.0.fail(error);
    }
}

/// Why a SUT cannot continue.
pub type SutError = Box<dyn Error + Send + Sync>;

/// The system that LoadGen measures. Only LoadGen's issuing threads call it.
pub trait SystemUnderTest: Sync {
    /// Returns the name for the logs.
    fn name(&self) -> &str;

    /// Takes a query. The SUT may respond before this returns or later, from any thread.
    ///
    /// # Errors
    /// When the SUT cannot take the query; the run ends and is invalid.
    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError>;

    /// Sends queries that the SUT held back for a fuller batch. LoadGen calls it after the last query of a series. The default does
    /// nothing, for a SUT that holds nothing back.
    ///
    /// # Errors
    /// When the SUT cannot send them; the run ends and is invalid.
    fn flush_queries(&self) -> Result<(), SutError> {
        Ok(())
    }
}

/// The dataset. LoadGen calls it from one thread, never within the timed window.
pub trait QuerySampleLibrary: Sync {
    /// Returns the name for the logs.
    fn name(&self) -> &str;
    /// Returns the number of samples in the complete dataset.
    fn total_sample_count(&self) -> usize;
    /// Returns the number of samples that fit into memory together.
    fn performance_sample_count(&self) -> usize;

    /// Loads samples into memory. An index may occur more than once (MultiStream pads its sets).
    ///
    /// # Errors
    /// When a sample cannot be read; the run ends and is invalid.
    fn load_samples_to_ram(&self, samples: &[QuerySampleIndex]) -> Result<(), SutError>;

    /// Releases the samples.
    ///
    /// # Errors
    /// When that fails; the run ends and is invalid.
    fn unload_samples_from_ram(&self, samples: &[QuerySampleIndex]) -> Result<(), SutError>;
}
