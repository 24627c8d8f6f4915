//! A model as a benchmark's file describes it: its file, inputs and response. Reads no model.

use std::{fmt, num::NonZeroUsize};

use serde::{Deserialize, Serialize};

use super::{
    detections::Detections, diffusion::Diffusion, dtype::Dtype, encoder_decoder::EncoderDecoder,
    transducer::Transducer, windows::SlidingWindows,
};
use crate::{EngineKind, layout::Layout};

/// A model file and its inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Path below the scratch directory (`MLPERF_SCRATCH_PATH`).
    pub file: String,
    /// SHA-256 of the file, hexadecimal; `None` when users supply their own file.
    #[serde(default)]
    pub sha256: Option<String>,
    /// Shape of one sample of the first input, without the batch dimension.
    pub input_shape: Vec<usize>,
    /// Element type of the samples on disk and of the model's input.
    pub input_dtype: Dtype,
    /// Layout of samples on disk and in memory. `input_shape` is the input's own shape in every layout.
    #[serde(default, skip_serializing_if = "Layout::is_linear")]
    pub input_format: Layout,
    /// The input's name in the model; required when the model has several inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_name: Option<String>,
    /// Content of a response.
    pub response: Response,
    /// The names of the outputs that a response is made of, in this order, for a network with others beside them; by default the first output, or
    /// all for the responses `stacked`, `detections` and `all-outputs`. The other responses are made of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// A number that is added to the class of an `argmax-int32` response. It is -1 for a model whose first class is background, because
    /// labels count without it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub class_offset: i32,
    /// How outputs become detections; for the response `detections` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detections: Option<Detections>,
    /// Windows in which the model sees a sample; `None` for a model that takes complete samples. The shape of the input is then that
    /// of a window, and each sample has its own size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<SlidingWindows>,
    /// The loop in which three networks make a transcript of a waveform; `None` for a model of one network. The inputs are then a waveform
    /// and its number of values before the padding, an `int32` without dimensions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transducer: Option<Transducer>,
    /// The loop in which an encoder and a decoder make a transcript of a waveform, with the same inputs; `None` for a model of one network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder_decoder: Option<EncoderDecoder>,
    /// The loop in which networks make an image of a caption; `None` for other models. The inputs are then the caption's tokens for each of two
    /// text encoders, as `int32`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diffusion: Option<Diffusion>,
    /// How answers of generated tokens are decoded; `None` for a model that does not generate tokens on a model server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<Generation>,
    /// The input that has ones for a sample's tokens and zeros for the padding behind them; `None` for a model without sequences. Inputs of
    /// its shape may be shortened to the tokens ([`sequence_length`](Self::sequence_length)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask_input: Option<String>,
    /// Libraries with TensorRT plug-ins that an engine of the network needs, as paths below the scratch directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tensorrt_plugins: Vec<String>,
    /// The inputs after the first. A sample then has one tensor per input. Each input's samples are in one array instead of one file per
    /// sample.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_inputs: Vec<FurtherInput>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// How an answer of generated tokens is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Generation {
    /// The maximum number of tokens, at least 1.
    pub max_tokens: usize,
    /// The minimum number of tokens; 0 by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub min_tokens: usize,
    /// The width of the beam search; by default, answers are decoded greedily.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beams: Option<NonZeroUsize>,
}

impl Generation {
    /// Returns greedy decoding of at most this number of tokens.
    #[must_use]
    pub const fn greedy(max_tokens: usize) -> Self {
        Self {
            max_tokens,
            min_tokens: 0,
            beams: None,
        }
    }
}

/// A model input after the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FurtherInput {
    /// Its name in the model.
    pub name: String,
    /// Shape of one sample, without the batch dimension.
    pub shape: Vec<usize>,
    /// Type of its elements.
    pub dtype: Dtype,
}

/// One input of a model, with the layout of its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelInput<'a> {
    /// Its name, when the benchmark's file sets one.
    pub name: Option<&'a str>,
    /// Shape of one sample in the model, without the batch dimension.
    pub shape: &'a [usize],
    /// Type of its elements.
    pub dtype: Dtype,
    /// Layout of a sample.
    pub layout: Layout,
}

impl ModelInput<'_> {
    /// Returns the shape of a sample in memory. A single block of channels does not get its own dimension, as in NVIDIA's files. Returns `None` when
    /// the shape cannot have the layout.
    #[must_use]
    pub fn stored(&self) -> Option<Vec<usize>> {
        let mut stored = self.layout.stored(self.shape, self.dtype.size())?;
        if stored.len() > self.shape.len() && stored[0] == 1 {
            stored.remove(0);
        }
        Some(stored)
    }

    /// Returns the bytes of one sample; `None` when the shape cannot have the layout or is empty.
    #[must_use]
    pub fn bytes(&self) -> Option<usize> {
        let bytes = self
            .stored()?
            .iter()
            .try_fold(self.dtype.size(), |bytes, dim| bytes.checked_mul(*dim));
        bytes.filter(|&bytes| bytes > 0)
    }
}

/// The inputs of a model that takes prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptInputs<'a> {
    /// The number of tokens of the longest prompt.
    pub longest: usize,
    /// The token ids.
    pub ids: ModelInput<'a>,
    /// The number of tokens.
    pub count: ModelInput<'a>,
}

/// The inputs of a model that takes captions for two text encoders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptionInputs<'a> {
    /// The number of tokens of a caption with its padding.
    pub length: usize,
    /// The names of the token inputs, one for each text encoder.
    pub names: [&'a str; 2],
}

/// Formats as `int32 linear [384] input_ids`.
impl fmt::Display for ModelInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?}", self.dtype.word(), self.layout, self.shape)?;
        self.name.map_or(Ok(()), |name| write!(f, " {name}"))
    }
}

impl Model {
    /// Returns the model of a server that a client on another machine uses. The run's settings name its file.
    pub(super) const fn served() -> Self {
        Self {
            file: String::new(),
            sha256: None,
            input_shape: Vec::new(),
            input_dtype: Dtype::Int32,
            input_format: Layout::Linear,
            input_name: None,
            response: Response::Tokens,
            outputs: Vec::new(),
            class_offset: 0,
            detections: None,
            windows: None,
            transducer: None,
            encoder_decoder: None,
            diffusion: None,
            generation: Some(Generation::greedy(1)),
            mask_input: None,
            tensorrt_plugins: Vec::new(),
            further_inputs: Vec::new(),
        }
    }

    /// Whether an engine can compute the model's responses.
    #[must_use]
    pub const fn has_engine(&self) -> bool {
        self.is_computed_by(EngineKind::Tensorrt) || self.is_computed_by(EngineKind::Server)
    }

    /// Whether engines of a kind can compute the model's responses. Those that need no model answer any.
    #[must_use]
    pub const fn is_computed_by(&self, kind: EngineKind) -> bool {
        match (kind, self.response) {
            (EngineKind::Null | EngineKind::Sim, _) => true,
            (EngineKind::Server, Response::Tokens) => self.generation.is_some(),
            (EngineKind::Server, Response::Transcript) => self.encoder_decoder.is_some(),
            (EngineKind::Server, Response::Image) | (_, Response::Tokens) => false,
            (_, Response::Image) => self.diffusion.is_some(),
            (_, Response::Transcript) => self.transducer.is_some() || self.encoder_decoder.is_some(),
            _ => true,
        }
    }

    /// Checks the outputs that a response is made of.
    ///
    /// # Errors
    /// What is wrong with `outputs`.
    pub(super) fn check_outputs(&self) -> Result<(), String> {
        let outputs = &self.outputs;
        let has_loop =
            self.transducer.is_some() || self.encoder_decoder.is_some() || self.diffusion.is_some();
        if !outputs.is_empty() && has_loop {
            return Err("`outputs` is for a model of one network".to_owned());
        }
        if !outputs.is_empty() && self.response == Response::Tokens {
            return Err(
                "`outputs` is for a network, and the response `tokens` is generated by a model server"
                    .to_owned(),
            );
        }
        if !self.response.takes_all_outputs() && outputs.len() > 1 {
            return Err(format!(
                "`outputs` names {}, but the benchmark's responses are made of one output",
                outputs.join(", ")
            ));
        }
        match (1..outputs.len()).find(|&last| outputs[..last].contains(&outputs[last])) {
            Some(twice) => Err(format!("`outputs` names {} twice", outputs[twice])),
            None => Ok(()),
        }
    }

    /// Whether a response is a sequence of generated tokens, which LoadGen may count.
    #[must_use]
    pub const fn generates_tokens(&self) -> bool {
        match self.response {
            Response::Tokens => true,
            Response::Transcript => self.encoder_decoder.is_some(),
            _ => false,
        }
    }

    /// Returns the inputs in the order in which a sample has them.
    pub fn inputs(&self) -> impl Iterator<Item = ModelInput<'_>> + Clone {
        let first = ModelInput {
            name: self.input_name.as_deref(),
            shape: &self.input_shape,
            dtype: self.input_dtype,
            layout: self.input_format,
        };
        let further = self.further_inputs.iter().map(|input| ModelInput {
            name: Some(&input.name),
            shape: &input.shape,
            dtype: input.dtype,
            layout: Layout::Linear,
        });
        std::iter::once(first).chain(further)
    }

    /// Returns the inputs of a model that takes prompts: `int32` token ids with padding, and an `int32` without dimensions with the number of tokens.
    /// `None` for other models.
    #[must_use]
    pub fn prompt_inputs(&self) -> Option<PromptInputs<'_>> {
        let mut inputs = self.inputs();
        let (Some(ids), Some(count), None) = (inputs.next(), inputs.next(), inputs.next()) else {
            return None;
        };
        match (ids.shape, count.shape) {
            ([longest], []) if ids.dtype == Dtype::Int32 && count.dtype == Dtype::Int32 => {
                Some(PromptInputs {
                    longest: *longest,
                    ids,
                    count,
                })
            }
            _ => None,
        }
    }

    /// Returns the inputs of a model that takes captions: for each text encoder a named input of `int32` token ids, both of one length. `None` for
    /// other models.
    #[must_use]
    pub fn caption_inputs(&self) -> Option<CaptionInputs<'_>> {
        let mut inputs = self.inputs();
        let (Some(first), Some(second), None) = (inputs.next(), inputs.next(), inputs.next()) else {
            return None;
        };
        let are_tokens =
            first.dtype == Dtype::Int32 && second.dtype == Dtype::Int32 && first.shape == second.shape;
        match first.shape {
            &[length] if are_tokens => Some(CaptionInputs {
                length,
                names: [first.name?, second.name?],
            }),
            _ => None,
        }
    }

    /// Returns the full length of a sequence in tokens; `None` for a model without sequences, or whose mask is not an input of one
    /// dimension.
    #[must_use]
    pub fn sequence_length(&self) -> Option<usize> {
        let mask = self.mask_input.as_deref()?;
        match self.inputs().find(|input| input.name == Some(mask))?.shape {
            [length] => Some(*length),
            _ => None,
        }
    }

    /// Returns the paths of all files of the model below the scratch directory, its networks first.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        let texts = self.encoder_decoder.iter().map(|networks| &networks.texts);
        let of_diffusion = self.diffusion.iter();
        let of_diffusion =
            of_diffusion.flat_map(|networks| std::iter::once(&networks.latents).chain(&networks.weights));
        let others = texts.chain(of_diffusion).map(|name| self.beside(name));
        let plugins = self.tensorrt_plugins.iter().cloned();
        self.networks().into_iter().chain(others).chain(plugins).collect()
    }

    /// Returns the paths of the model's networks below the scratch directory, the model's own file first.
    #[must_use]
    pub fn networks(&self) -> Vec<String> {
        let transducer = self.transducer.iter();
        let decoder = self.encoder_decoder.iter().map(|networks| &networks.decoder);
        let of_diffusion = self.diffusion.iter();
        let of_diffusion = of_diffusion.flat_map(|networks| [&networks.denoiser, &networks.image_decoder]);
        let names = transducer
            .flat_map(|transducer| [&transducer.prediction, &transducer.joint])
            .chain(decoder)
            .chain(of_diffusion);
        std::iter::once(self.file.clone())
            .chain(names.map(|name| self.beside(name)))
            .collect()
    }

    /// Returns the path of a file in the directory of the model's own.
    fn beside(&self, name: &str) -> String {
        match self.file.rsplit_once('/') {
            Some((directory, _)) => format!("{directory}/{name}"),
            None => name.to_owned(),
        }
    }

    /// Returns the bytes of a sample: the sum over its tensors. For a model with [`windows`](Self::windows), those of a window. `None` when
    /// an input has no valid sample size.
    #[must_use]
    pub fn sample_bytes(&self) -> Option<usize> {
        self.inputs()
            .try_fold(0_usize, |sum, input| sum.checked_add(input.bytes()?))
    }
}

/// Content of a response's bytes. The accuracy log has the same bytes in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// The index of the largest output, as a little-endian 32-bit integer.
    ArgmaxInt32,
    /// The first output tensor, unchanged.
    Raw,
    /// All output tensors, interleaved element by element, like `numpy.stack(outputs, axis=-1)`. The tensors have one shape and type.
    /// `accuracy-squad.py` reads start and end in this form.
    Stacked,
    /// 7 floats for each detection: sample index, top, left, bottom and right as fractions of the image, score, class. Their number
    /// differs between samples. `accuracy-openimages.py` and `accuracy-coco.py` read this form.
    Detections,
    /// The class of each voxel of a sample, as an unsigned byte. Samples differ in size. `accuracy_kits.py` reads this form.
    Segmentation,
    /// The tokens of a generated text as 32-bit integers, without the prompt. `evaluation.py` reads this form with `--dtype int32`. Only
    /// the engine `server` computes it.
    Tokens,
    /// A generated image: a byte for red, green and blue of each pixel, row by row. `accuracy_coco.py` of `text_to_image` reads this form.
    Image,
    /// All output tensors one after the other.
    AllOutputs,
    /// The symbols of a transcript, a byte for each. Their number differs between samples. `accuracy_eval.py` reads this form.
    Transcript,
}

impl Response {
    /// Whether a response is made of all outputs of the network, and not of the first.
    #[must_use]
    pub const fn takes_all_outputs(self) -> bool {
        matches!(self, Self::Stacked | Self::Detections | Self::AllOutputs)
    }
}
