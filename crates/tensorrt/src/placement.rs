//! The placement of a network's layers on DLA or GPU, which TensorRT reports before it builds. Decides nothing itself.

use serde::{Deserialize, Serialize};

/// A layer of the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// The layer's name in the network.
    pub name: String,
    /// The layer's kind, such as `Convolution`.
    pub kind: String,
    /// Whether DLA can run the layer.
    pub on_dla: bool,
    /// TensorRT's reason why DLA cannot run the layer, where it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The placement of all layers. Empty for an engine without DLA, whose layers all run on the GPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Placement {
    /// The layers in the network's order.
    pub layers: Vec<Layer>,
}

impl Placement {
    /// Returns the layers that fall back to the GPU.
    pub fn on_gpu(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|layer| !layer.on_dla)
    }
}
