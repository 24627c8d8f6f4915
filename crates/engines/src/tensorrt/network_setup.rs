//! The parameters of a network of a loop on a GPU. What the network does with them is in `network`.

use std::sync::Arc;

use regatta_cuda::{Stream, WaitMode};

use super::{network_tensors::NetworkTensors, request::Graphs};

/// The parameters of a network.
pub(super) struct NetworkSetup {
    /// The unit's number and name.
    pub(super) unit: usize,
    pub(super) unit_name: String,
    /// The unit's name and the network's file, for messages.
    pub(super) unit_and_network: String,
    pub(super) tensors: NetworkTensors,
    /// Whether the number of rows may differ between computations. Otherwise, every computation uses all rows.
    pub(super) shape_is_free: bool,
    pub(super) profile: usize,
    /// The most streams.
    pub(super) streams: usize,
    /// The rows of a batch of the engine, at least as many.
    pub(super) rows: usize,
    /// The stream to compute on, if several networks share one.
    pub(super) inference: Option<Arc<Stream>>,
    pub(super) graphs: Graphs,
    /// Numbers of rows to capture as graphs.
    pub(super) graph_sizes: Vec<usize>,
    /// Whether the device works in host memory. What is kept is in the device's memory all the same.
    pub(super) is_direct: bool,
    pub(super) wait: WaitMode,
    /// Whether the result is only an input of another network.
    pub(super) is_for_network: bool,
}
