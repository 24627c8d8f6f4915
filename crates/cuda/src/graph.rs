//! CUDA graphs: the work that a stream was given once, captured so that one call launches all of it again.

use std::{error::Error, ptr};

use cudarc::driver::sys::{CUgraph, CUgraphExec, CUstreamCaptureMode};

use crate::{context::Context, error::CudaError, stream::Stream};

/// An executable graph. Dropping it destroys it.
pub struct Graph {
    context: Context,
    raw: CUgraphExec,
    nodes: usize,
}

// SAFETY: any thread may use an executable graph, one at a time.
unsafe impl Send for Graph {}

impl Graph {
    /// Captures the work that `work` gives to `stream`, instead of executing it. Other threads may use CUDA meanwhile.
    ///
    /// # Errors
    /// The error of `work`, or a [`CudaError`] when a call in between cannot be captured.
    pub fn capture<E>(
        stream: &Stream,
        work: impl FnOnce() -> Result<(), E>,
    ) -> Result<Self, Box<dyn Error + Send + Sync>>
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let context = stream.context();
        context.bind()?;
        let functions = context.functions();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream exists.
        let begin_result = unsafe { (functions.cuStreamBeginCapture_v2)(stream.raw(), mode) };
        context.check("cuStreamBeginCapture", begin_result)?;
        let work_result = work();
        let mut captured = CapturedGraph {
            context,
            raw: ptr::null_mut(),
        };
        // SAFETY: `captured.raw` outlives the call. The capture must end also when `work` has failed.
        let end_result = unsafe { (functions.cuStreamEndCapture)(stream.raw(), &raw mut captured.raw) };
        work_result.map_err(Into::into)?;
        context.check("cuStreamEndCapture", end_result)?;
        Ok(captured.instantiate()?)
    }

    /// Returns the number of the graph's nodes: copies, kernels and other steps.
    #[must_use]
    pub const fn nodes(&self) -> usize {
        self.nodes
    }

    /// Launches the graph in the stream.
    ///
    /// # Safety
    /// All memory that the graph uses exists, and nothing else uses it, until the stream has executed the graph.
    ///
    /// # Errors
    /// [`CudaError`] of `cuGraphLaunch`, or of earlier work.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<(), CudaError> {
        self.context.bind()?;
        // SAFETY: the caller guarantees the memory; graph and stream exist.
        let result = unsafe { (self.context.functions().cuGraphLaunch)(self.raw, stream.raw()) };
        self.context.check("cuGraphLaunch", result)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: created once, destroyed once.
            unsafe { (self.context.functions().cuGraphExecDestroy)(self.raw) };
        }
    }
}

/// A captured graph that is not executable yet. Dropping it destroys it.
struct CapturedGraph<'a> {
    context: &'a Context,
    raw: CUgraph,
}

impl CapturedGraph<'_> {
    fn instantiate(&self) -> Result<Graph, CudaError> {
        let functions = self.context.functions();
        let mut nodes = 0;
        // SAFETY: the graph exists. With a null pointer the call only returns the number of nodes.
        let result = unsafe { (functions.cuGraphGetNodes)(self.raw, ptr::null_mut(), &raw mut nodes) };
        self.context.check("cuGraphGetNodes", result)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the graph exists and `raw` outlives the call.
        let result = unsafe { (functions.cuGraphInstantiateWithFlags)(&raw mut raw, self.raw, 0) };
        self.context.check("cuGraphInstantiateWithFlags", result)?;
        Ok(Graph {
            context: self.context.clone(),
            raw,
            nodes,
        })
    }
}

impl Drop for CapturedGraph<'_> {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: captured once, destroyed once. The executable graph does not depend on it.
            unsafe { (self.context.functions().cuGraphDestroy)(self.raw) };
        }
    }
}
