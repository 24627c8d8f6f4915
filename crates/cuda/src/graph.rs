//! Graphs: what a stream was given once, to be launched again by one call.

use std::{error::Error, ptr};

use cudarc::driver::sys::{CUgraph, CUgraphExec, CUstreamCaptureMode};

use crate::{context::Context, error::CudaError, stream::Stream};

/// A graph that can be launched. Destroyed when dropped.
pub struct Graph {
    context: Context,
    raw: CUgraphExec,
    nodes: usize,
}

// SAFETY: an executable graph may be used from any thread, by one at a time.
unsafe impl Send for Graph {}

impl Graph {
    /// Keeps what `work` gives to `stream` instead of having it done. Other threads may use CUDA meanwhile.
    ///
    /// # Errors
    /// What `work` failed with, or [`CudaError`], when something in between cannot be kept.
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
        // SAFETY: the stream lives.
        let begun = unsafe { (functions.cuStreamBeginCapture_v2)(stream.raw(), mode) };
        context.check("cuStreamBeginCapture", begun)?;
        let worked = work();
        let mut kept = Kept {
            context,
            raw: ptr::null_mut(),
        };
        // SAFETY: `kept.raw` outlives the call. Whatever happened in between, the capture must end.
        let ended = unsafe { (functions.cuStreamEndCapture)(stream.raw(), &raw mut kept.raw) };
        worked.map_err(Into::into)?;
        context.check("cuStreamEndCapture", ended)?;
        Ok(kept.instantiate()?)
    }

    /// How many copies, kernels and other steps it has.
    #[must_use]
    pub const fn nodes(&self) -> usize {
        self.nodes
    }

    /// Has all of it done, in the stream's turn.
    ///
    /// # Safety
    /// Every memory that it touches lives and is not used otherwise until the stream has come so far.
    ///
    /// # Errors
    /// [`CudaError`].
    pub unsafe fn launch(&self, stream: &Stream) -> Result<(), CudaError> {
        self.context.bind()?;
        // SAFETY: the caller's promise; graph and stream live.
        let launched = unsafe { (self.context.functions().cuGraphLaunch)(self.raw, stream.raw()) };
        self.context.check("cuGraphLaunch", launched)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: made once, destroyed once.
            unsafe { (self.context.functions().cuGraphExecDestroy)(self.raw) };
        }
    }
}

/// What was captured, until it can be launched.
struct Kept<'a> {
    context: &'a Context,
    raw: CUgraph,
}

impl Kept<'_> {
    fn instantiate(&self) -> Result<Graph, CudaError> {
        let functions = self.context.functions();
        let mut nodes = 0;
        // SAFETY: the graph lives; without room for nodes only their number is told.
        let counted = unsafe { (functions.cuGraphGetNodes)(self.raw, ptr::null_mut(), &raw mut nodes) };
        self.context.check("cuGraphGetNodes", counted)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the graph lives and `raw` outlives the call.
        let made = unsafe { (functions.cuGraphInstantiateWithFlags)(&raw mut raw, self.raw, 0) };
        self.context.check("cuGraphInstantiateWithFlags", made)?;
        Ok(Graph {
            context: self.context.clone(),
            raw,
            nodes,
        })
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: given once, destroyed once; what was made of it stands on its own.
            unsafe { (self.context.functions().cuGraphDestroy)(self.raw) };
        }
    }
}
