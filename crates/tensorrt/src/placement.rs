//! Which layers of a network a DLA core can run, layer by layer, as TensorRT says before it builds.

use serde::{Deserialize, Serialize};

/// One layer of the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Its name in the network.
    pub name: String,
    /// Its kind, such as `Convolution`.
    pub kind: String,
    /// Whether DLA can run it.
    pub on_dla: bool,
    /// TensorRT's words about it, where it gave any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// All layers. Empty when no DLA core was asked for: then all of them run on the GPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Placement {
    /// The layers in the network's order.
    pub layers: Vec<Layer>,
}

impl Placement {
    /// The layers that fall back to the GPU.
    pub fn on_gpu(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|layer| !layer.on_dla)
    }
}
