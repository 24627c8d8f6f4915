//! The engines that an agent may have, and their spellings.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::UnknownWord;

/// The engines that an agent may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// Responds at once with the sample index; measures LoadGen and harness alone.
    Null,
    /// ONNX on the CPU.
    Tract,
    /// TensorRT on GPU and DLA.
    Tensorrt,
    /// A model server that the device runs, asked over HTTP.
    Server,
    /// A modelled accelerator with configured service times. Never a measurement.
    Sim,
    /// ONNX by a library of ONNX Runtime that is installed on the device, on the CPU or on NVIDIA's GPUs.
    Onnxruntime,
}

impl EngineKind {
    /// Every engine.
    pub const ALL: [Self; 6] = [
        Self::Null,
        Self::Tract,
        Self::Onnxruntime,
        Self::Tensorrt,
        Self::Server,
        Self::Sim,
    ];

    /// Returns the command-line spelling.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Tract => "tract",
            Self::Tensorrt => "tensorrt",
            Self::Server => "server",
            Self::Sim => "sim",
            Self::Onnxruntime => "onnxruntime",
        }
    }

    /// Whether responses come from the benchmark's model. Results of other engines can never be staged.
    #[must_use]
    pub const fn computes(self) -> bool {
        matches!(
            self,
            Self::Tract | Self::Onnxruntime | Self::Tensorrt | Self::Server
        )
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for EngineKind {
    type Err = UnknownWord;

    /// Parses a name in any case.
    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Self::ALL
            .into_iter()
            .find(|engine| engine.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownWord {
                kind: "engine",
                text: text.to_owned(),
                known: "null, tract, onnxruntime, tensorrt, server, sim",
            })
    }
}
