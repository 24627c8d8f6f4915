//! The work of requests on blocking threads. It is admitted before it gets a thread, so that pages leave threads and processors to devices.
//! A request whose connection ends while it waits leaves its queue. Work that has begun is finished, and pages that take a while keep its
//! result for the next request.

use std::sync::Arc;

use axum::{extract::FromRequestParts, http::request::Parts};

use super::{
    access::{ReaderKey, Visitor},
    hub::Hub,
    page_error::PageError,
    work_queues::WorkQueue,
};

/// The work of one request. Handlers take it instead of the hub, and reach the hub only on a thread that was admitted.
pub(super) struct PageWork {
    hub: Arc<Hub>,
    reader: ReaderKey,
}

impl FromRequestParts<Arc<Hub>> for PageWork {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, hub: &Arc<Hub>) -> Result<Self, PageError> {
        // The gate adds the visitor to every request that it lets through.
        let visitor = parts.extensions.get::<Visitor>();
        let reader = visitor.and_then(Visitor::reader_key);
        Ok(Self {
            hub: Arc::clone(hub),
            reader: reader.ok_or_else(PageError::internal)?,
        })
    }
}

impl PageWork {
    /// Does work that takes milliseconds.
    ///
    /// # Errors
    /// Returns the error of `work`, or an error when too many requests wait.
    pub(super) async fn quick<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Hub) -> Result<T, PageError> + Send + 'static,
    ) -> Result<T, PageError> {
        self.run(&self.hub.queues().quick, work).await
    }

    /// Does work that may take long: it waits for files, or computes from many runs.
    ///
    /// # Errors
    /// Returns the error of `work`, or an error when too many requests wait.
    pub(super) async fn slow<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Hub) -> Result<T, PageError> + Send + 'static,
    ) -> Result<T, PageError> {
        self.run(&self.hub.queues().slow, work).await
    }

    /// Does work that changes the lab.
    ///
    /// # Errors
    /// Returns the error of `work`, or an error when too many requests wait.
    pub(super) async fn action<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Hub) -> Result<T, PageError> + Send + 'static,
    ) -> Result<T, PageError> {
        self.run(&self.hub.queues().actions, work).await
    }

    async fn run<T: Send + 'static>(
        &self,
        queue: &WorkQueue,
        work: impl FnOnce(&Hub) -> Result<T, PageError> + Send + 'static,
    ) -> Result<T, PageError> {
        let permit = queue.enter(self.reader).await?;
        let hub = Arc::clone(&self.hub);
        let done = tokio::task::spawn_blocking(move || {
            // The permit ends with the work, also when nobody waits for its result any more.
            let _permit = permit;
            work(&hub)
        });
        done.await.unwrap_or_else(|_| Err(PageError::internal()))
    }
}
