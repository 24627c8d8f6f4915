//! The SUT with worker threads. LoadGen's issuing thread adds samples to a queue. Each worker owns a lane and serves
//! batches from the queue. Used for scenarios with overlapping queries and for queries that streams share.

use std::{
    io,
    sync::Arc,
    thread::{self, JoinHandle},
};

use regatta_loadgen::sut::{Completer, Query, SutError, SystemUnderTest};

use super::{
    fault::{FirstFault, HarnessError},
    lane::Lane,
    queue::{QueueClosed, SampleQueue},
};

/// A SUT whose workers end when it is dropped.
pub(crate) struct QueuedSut {
    name: String,
    queue: Arc<SampleQueue>,
    workers: Vec<JoinHandle<()>>,
    fault: FirstFault,
}

impl QueuedSut {
    /// Starts a worker for each lane.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(crate) fn start(
        name: String,
        lanes: Vec<Lane>,
        queue: SampleQueue,
        fault: FirstFault,
    ) -> io::Result<Self> {
        let mut sut = Self {
            name,
            queue: Arc::new(queue),
            workers: Vec::new(),
            fault,
        };
        for (number, lane) in lanes.into_iter().enumerate() {
            let (queue, fault) = (Arc::clone(&sut.queue), sut.fault.clone());
            let worker = thread::Builder::new().name(format!("stream-{number}"));
            sut.workers
                .push(worker.spawn(move || work(lane, &queue, &fault))?);
        }
        Ok(sut)
    }

    fn abandoned(&self, reason: String) -> SutError {
        self.fault.remember(HarnessError::Abandoned(reason))
    }
}

/// Serves batches until the queue is closed or the engine fails.
fn work(mut lane: Lane, queue: &SampleQueue, fault: &FirstFault) {
    let (most, unit) = (lane.max_batch(), lane.unit());
    let mut batch = Vec::with_capacity(most);
    while let Some(completer) = queue.take(&mut batch, most, unit) {
        let served = lane.serve(&batch, &completer);
        queue.done(unit);
        if let Err(error) = served {
            let error = fault.remember(error);
            queue.close(&error.to_string());
            completer.fail(error);
        }
    }
}

impl SystemUnderTest for QueuedSut {
    fn name(&self) -> &str {
        &self.name
    }

    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        self.queue
            .push(query, completer)
            .map_err(|QueueClosed(reason)| self.abandoned(reason))
    }

    fn flush_queries(&self) -> Result<(), SutError> {
        self.queue
            .flush()
            .map_err(|QueueClosed(reason)| self.abandoned(reason))
    }
}

impl Drop for QueuedSut {
    fn drop(&mut self) {
        self.queue.close("the run is over");
        for worker in self.workers.drain(..) {
            // A worker catches panics of its engine. If the worker itself panics, the error is ignored here.
            let _ = worker.join();
        }
    }
}
