//! The CUDA graphs of a runner or a network, one for each frequent batch size.

use regatta_cuda::Graph;

/// Graphs by their number of rows.
#[derive(Default)]
pub(super) struct GraphSet(Vec<(usize, Graph)>);

impl GraphSet {
    /// Adds a graph for `rows` rows.
    pub(super) fn add(&mut self, rows: usize, graph: Graph) {
        self.0.push((rows, graph));
    }

    /// Returns the graph that computes `rows` rows.
    pub(super) fn of(&self, rows: usize) -> Option<&Graph> {
        self.0
            .iter()
            .find(|(size, _)| *size == rows)
            .map(|(_, graph)| graph)
    }

    /// Returns the rows of the smallest graph that computes `rows` rows or more.
    pub(super) fn at_least(&self, rows: usize) -> Option<usize> {
        let sizes = self.0.iter().map(|&(size, _)| size);
        sizes.filter(|&size| size >= rows).min()
    }
}
