//! The seam between a LoadGen and the system under test: queries, responses, and who may call what from where.
//!
//! Both LoadGens (ours and the MLCommons one) and every harness meet here. The seam allocates nothing per query and
//! allows a query to be a borrowed array or a sequence that is computed as it is read.

mod resident;

use std::{error::Error, sync::Arc};

pub use resident::ResidentLibrary;

/// Identifies one expected response by its place in the order of issue, counted from 1 over the whole run: one more than
/// the `seq_id` of LoadGen's logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct ResponseId(pub u64);

/// Position of a sample in the whole dataset.
pub type QuerySampleIndex = usize;

/// One sample of a query. Laid out as the official `QuerySample` on 64-bit machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct QuerySample {
    /// What the response must carry.
    pub id: ResponseId,
    /// Which sample to compute.
    pub index: QuerySampleIndex,
}

/// A query that is computed as it is read, such as a whole Offline run.
pub trait QuerySequence: Sync {
    /// Number of samples.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The sample at `position`, which is less than [`len`](Self::len).
    fn sample(&self, position: usize) -> QuerySample;
}

/// A query as the SUT sees it: random access, valid until `issue_query` returns.
#[derive(Clone, Copy)]
pub enum Query<'a> {
    /// Samples that lie in memory.
    Slice(&'a [QuerySample]),
    /// Samples that are computed on access.
    Lazy(&'a dyn QuerySequence),
}

impl<'a> Query<'a> {
    /// Number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Slice(samples) => samples.len(),
            Self::Lazy(samples) => samples.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sample at `position`.
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

    /// The samples, one after the other.
    pub fn iter(self) -> impl Iterator<Item = QuerySample> + 'a {
        (0..self.len()).map(move |position| self.sample(position))
    }

    /// The samples as they lie in memory, where they do.
    #[must_use]
    pub const fn as_slice(&self) -> Option<&'a [QuerySample]> {
        match self {
            Self::Slice(samples) => Some(samples),
            Self::Lazy(_) => None,
        }
    }
}

/// One answer.
#[derive(Debug, Clone, Copy)]
pub struct QuerySampleResponse<'a> {
    /// Which expected response this is.
    pub id: ResponseId,
    /// The answer's bytes, as they go to the accuracy log.
    pub data: &'a [u8],
    /// Tokens in the answer, 0 where there are none to count.
    pub n_tokens: i64,
}

impl<'a> QuerySampleResponse<'a> {
    /// An answer without tokens to count.
    #[must_use]
    pub const fn new(id: ResponseId, data: &'a [u8]) -> Self {
        Self {
            id,
            data,
            n_tokens: 0,
        }
    }
}

/// Where answers go. What stands behind it belongs to the LoadGen in use.
pub trait CompletionSink: Send + Sync {
    /// Takes final answers. The bytes have been copied, or are not needed, when it returns.
    fn complete(&self, responses: &[QuerySampleResponse<'_>]);
    /// Takes the first token of answers that are still being made.
    fn first_token(&self, responses: &[QuerySampleResponse<'_>]);
    /// Gives up the run: no further answers will come.
    fn fail(&self, error: SutError);
}

/// Hands answers to LoadGen. May be cloned and called from any thread, also from within `issue_query`.
#[derive(Clone)]
pub struct Completer(Arc<dyn CompletionSink>);

impl Completer {
    /// Wraps a LoadGen's sink.
    #[must_use]
    pub fn new(sink: Arc<dyn CompletionSink>) -> Self {
        Self(sink)
    }

    /// Hands over final answers; LoadGen stamps them with one clock reading on entry.
    pub fn complete(&self, responses: &[QuerySampleResponse<'_>]) {
        self.0.complete(responses);
    }

    /// Hands over first tokens.
    pub fn first_token(&self, responses: &[QuerySampleResponse<'_>]) {
        self.0.first_token(responses);
    }

    /// Gives up the run: it becomes invalid with this reason and LoadGen stops waiting.
    pub fn fail(&self, error: SutError) {
        self.0.fail(error);
    }
}

/// Why a SUT cannot go on.
pub type SutError = Box<dyn Error + Send + Sync>;

/// What LoadGen measures. Called from LoadGen's issuing threads only.
pub trait SystemUnderTest: Sync {
    /// The name in the logs.
    fn name(&self) -> &str;

    /// Takes a query. May answer before returning or later, from any thread.
    ///
    /// # Errors
    /// When the SUT cannot take it; the run ends and is invalid.
    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError>;

    /// Called after the last query of a series: whatever was held back for a fuller batch must go now. A SUT that holds
    /// nothing back has nothing to do here.
    ///
    /// # Errors
    /// When the SUT cannot do so; the run ends and is invalid.
    fn flush_queries(&self) -> Result<(), SutError> {
        Ok(())
    }
}

/// The dataset. LoadGen calls it from one thread, never within the timed window.
pub trait QuerySampleLibrary: Sync {
    /// The name in the logs.
    fn name(&self) -> &str;
    /// Samples in the whole set.
    fn total_sample_count(&self) -> usize;
    /// Samples that fit into memory together.
    fn performance_sample_count(&self) -> usize;

    /// Brings samples into memory. The same index may stand more than once (MultiStream pads its sets).
    ///
    /// # Errors
    /// When a sample cannot be read; the run ends and is invalid.
    fn load_samples_to_ram(&self, samples: &[QuerySampleIndex]) -> Result<(), SutError>;

    /// Lets them go.
    ///
    /// # Errors
    /// When that fails; the run ends and is invalid.
    fn unload_samples_from_ram(&self, samples: &[QuerySampleIndex]) -> Result<(), SutError>;
}
