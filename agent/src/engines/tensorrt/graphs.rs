//! The graphs of a runner, one for each batch size that a run will often have.

use regatta_cuda::Graph;

/// Graphs by the rows that they compute.
#[derive(Default)]
pub(super) struct GraphSet(Vec<(usize, Graph)>);

impl GraphSet {
    /// Adds a graph for so many rows.
    pub(super) fn add(&mut self, rows: usize, graph: Graph) {
        self.0.push((rows, graph));
    }

    /// The graph that computes so many rows.
    pub(super) fn of(&self, rows: usize) -> Option<&Graph> {
        self.0
            .iter()
            .find(|(size, _)| *size == rows)
            .map(|(_, graph)| graph)
    }
}
