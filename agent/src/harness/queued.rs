//! The SUT with worker threads: LoadGen's issuing thread puts samples into a queue, each worker owns a lane and serves
//! batches from it. For scenarios in which queries overlap, and for queries that are shared between streams.

use std::{
    io,
    sync::Arc,
    thread::{self, JoinHandle},
};

use regatta_loadgen::sut::{Completer, Query, SutError, SystemUnderTest};

use super::{
    fault::{FirstFault, HarnessError},
    lane::Lane,
    queue::SampleQueue,
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
            .map_err(|reason| self.abandoned(reason))
    }

    fn flush_queries(&self) -> Result<(), SutError> {
        self.queue.flush().map_err(|reason| self.abandoned(reason))
    }
}

impl Drop for QueuedSut {
    fn drop(&mut self) {
        self.queue.close("the run is over");
        for worker in self.workers.drain(..) {
            // A worker catches its engine's panics; should it panic itself, the queue is closed and the run told.
            let _ = worker.join();
        }
    }
}
