//! Why requests to a server have no answers.

use std::io;

use regatta_tokenizer::NotTokens;

use super::{
    answer::AnswerError,
    http::{HttpError, MAX_ANSWER},
    kserve::KserveError,
    region::RegionError,
    run_server::RunServer,
    server_error::ServerError,
};
use crate::EngineError;

/// Why requests to a server have no answers.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error(transparent)]
    Kserve(#[from] KserveError),
    #[error(
        "the server does not describe the network {0}: {1}; hint: `kserve.network` in the driver is the network's name on the server"
    )]
    NoNetwork(String, #[source] HttpError),
    #[error(
        "the server takes at most {max} samples in a request, but the run has batches of {batch}; hint: `--set batch_size={max}`, or raise `max_batch_size` in the network's configuration"
    )]
    Batches { batch: usize, max: usize },
    #[error("the output {name} has the shape {shape:?}, not a row for each of {size} samples")]
    Rows {
        name: String,
        shape: Vec<usize>,
        size: usize,
    },
    #[error("the prompt is not of the benchmark's tokenizer")]
    Prompt(#[source] NotTokens),
    #[error(
        "the outputs of {batch} samples have {} MiB, and an answer may have {}; hint: a smaller `batch_size`, or `shared_memory = true` in the driver",
        .bytes >> 20,
        MAX_ANSWER >> 20
    )]
    LargeAnswer { batch: usize, bytes: usize },
    #[error("shared memory cannot be read")]
    Memory(#[from] io::Error),
    #[error(transparent)]
    Region(#[from] RegionError),
    #[error(transparent)]
    Batch(#[from] EngineError),
}

impl RequestError {
    /// Returns the error of a request. Why the server ended explains more than a broken connection.
    pub(super) fn of(error: HttpError, server: &RunServer) -> Self {
        if matches!(error, HttpError::Broken(_) | HttpError::Connect(_))
            && let Err(ended) = server.check_runs_on()
        {
            return ended.into();
        }
        error.into()
    }
}
