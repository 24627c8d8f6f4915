//! Forms of a benchmark's samples: an element type and a layout, one directory per form, and `samples.json` beside the samples. `prep`
//! makes the samples and engines read them; this module does neither.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    benchmark::{Benchmark, DownloadPurpose, Dtype, Model, ModelInput},
    documents::document,
    engine_settings::{EngineSettings, InputType},
    layout::Layout,
};

/// Element type and layout of samples. The name follows the directories of NVIDIA's harness, for example `int8_chw4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// Type of the elements.
    pub dtype: Dtype,
    /// Memory layout of the elements.
    pub layout: Layout,
}

/// The error for a form that a benchmark's samples cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// The benchmark's own samples are not 32-bit floats in linear layout, or the requested form cannot be made from them.
    #[error(
        "the samples of {benchmark} are {own} and cannot be made {requested}: forms are made from fp32_linear"
    )]
    Own {
        /// The benchmark.
        benchmark: String,
        /// The form in its file.
        own: Form,
        /// The requested form.
        requested: Form,
    },
    /// A tensor of this shape cannot have the layout.
    #[error("samples of {shape:?}, as those of {benchmark} are, cannot be laid out as {requested}")]
    Shape {
        /// The benchmark.
        benchmark: String,
        /// The shape of its input.
        shape: Vec<usize>,
        /// The requested form.
        requested: Form,
    },
}

impl Form {
    /// Creates a form. `dla_hwc4` becomes `chw4`: images have the same bytes in both, so GPU and DLA read one set.
    #[must_use]
    pub fn new(dtype: Dtype, layout: Layout) -> Self {
        let layout = if layout == Layout::DlaHwc4 {
            Layout::Chw4
        } else {
            layout
        };
        Self { dtype, layout }
    }

    /// Returns the form that an engine's settings (`input_dtype`, `input_format`) request. `None` when neither is set. A missing type is
    /// that of `own`; a missing layout is linear.
    #[must_use]
    pub fn requested(settings: &EngineSettings, own: Self) -> Option<Self> {
        let (dtype, layout) = (settings.input_dtype, settings.input_format);
        if dtype.is_none() && layout.is_none() {
            return None;
        }
        Some(Self::new(
            dtype.map_or(own.dtype, Dtype::from),
            layout.unwrap_or_default(),
        ))
    }

    /// Whether engines accept samples of this form in place of `other`. They convert between 16-bit and 32-bit floats, because such a
    /// number needs no scale.
    #[must_use]
    pub fn converts_to(self, other: Self) -> bool {
        use Dtype::{Float16, Float32};
        self.layout == other.layout
            && (self.dtype == other.dtype
                || matches!((self.dtype, other.dtype), (Float32, Float16) | (Float16, Float32)))
    }

    /// Returns the command that makes a benchmark's samples of this form. The user replaces the words in capitals.
    #[must_use]
    pub fn prep_command(self, benchmark: &str) -> String {
        let scale = if self.dtype == Dtype::Int8 {
            " --scale SCALE"
        } else {
            ""
        };
        let (dtype, layout) = (self.dtype.word(), self.layout);
        format!("regatta prep {benchmark} --dtype {dtype} --layout {layout}{scale} --output SCRATCH")
    }
}

impl From<InputType> for Dtype {
    fn from(input: InputType) -> Self {
        match input {
            InputType::Fp32 => Self::Float32,
            InputType::Fp16 => Self::Float16,
            InputType::Int8 => Self::Int8,
            InputType::Int32 => Self::Int32,
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.dtype.word(), self.layout)
    }
}

impl Benchmark {
    /// Returns the directory in the scratch directory into which `prep` writes the samples of a calibration list. `list` is the file name of the list
    /// without its extension. Each list has a separate directory, because an engine is calibrated with all samples of a directory.
    #[must_use]
    pub fn calibration_dir(&self, list: &str, form: Form) -> String {
        let beside = Path::new(&self.dataset.dir).with_file_name(format!("{list}_{form}"));
        beside.to_string_lossy().into_owned()
    }

    /// Returns the directories of the published calibration lists' samples, in the form that the network expects, also after
    /// [`in_form`](Self::in_form). There are none for a model of several networks: their scales are stored in one file per network.
    #[must_use]
    pub fn calibration_dirs(&self) -> Vec<String> {
        if self.model.networks().len() > 1 {
            return Vec::new();
        }
        let lists = self
            .downloads
            .iter()
            .filter(|download| download.purpose == DownloadPurpose::Calibration);
        let stems = lists.filter_map(|list| Path::new(&list.path).file_stem()?.to_str());
        // Forms of other numbers are made from this one.
        let dtype = match self.model.input_dtype {
            whole @ (Dtype::Int32 | Dtype::Int64) => whole,
            _ => Dtype::Float32,
        };
        let form = Form::new(dtype, Layout::Linear);
        stems.map(|list| self.calibration_dir(list, form)).collect()
    }

    /// Returns the form of samples that an engine's settings request, as [`Form::requested`]. The layout is that of the engine's input: of a model
    /// with windows, these are packed, and the volumes stay linear.
    #[must_use]
    pub fn requested_form(&self, settings: &EngineSettings) -> Option<Form> {
        let mut requested = Form::requested(settings, self.form())?;
        if self.model.windows.is_some() {
            requested.layout = Layout::Linear;
        }
        Some(requested)
    }

    /// Returns the form of the samples in [`Dataset::dir`](crate::benchmark::Dataset::dir).
    #[must_use]
    pub fn form(&self) -> Form {
        Form {
            dtype: self.model.input_dtype,
            layout: self.model.input_format,
        }
    }

    /// Returns this benchmark with samples of another form. Their directory is named after the form and is a sibling of the benchmark's
    /// own.
    ///
    /// # Errors
    /// [`FormError`] when the samples cannot have that form.
    pub fn in_form(&self, form: Form) -> Result<Self, FormError> {
        let own = self.form();
        if form == own {
            return Ok(self.clone());
        }
        let is_source = own == Form::new(Dtype::Float32, Layout::Linear);
        let is_target = matches!(form.dtype, Dtype::Float32 | Dtype::Float16 | Dtype::Int8);
        // Whole numbers have one form, in which they stay beside an input of floats.
        let is_whole = |dtype| matches!(dtype, Dtype::Int32 | Dtype::Int64);
        let mut further = self.model.further_inputs.iter();
        if !is_source || !is_target || !further.all(|input| is_whole(input.dtype)) {
            return Err(FormError::Own {
                benchmark: self.name.clone(),
                own,
                requested: form,
            });
        }
        let shape = &self.model.input_shape;
        if form.layout.stored(shape, form.dtype.size()).is_none() {
            return Err(FormError::Shape {
                benchmark: self.name.clone(),
                shape: shape.clone(),
                requested: form,
            });
        }
        let mut changed = self.clone();
        changed.model.input_dtype = form.dtype;
        changed.model.input_format = form.layout;
        let beside = Path::new(&self.dataset.dir).with_file_name(form.to_string());
        changed.dataset.dir = beside.to_string_lossy().into_owned();
        Ok(changed)
    }
}

/// `samples.json`: description of the samples in a directory. `prep` writes it last, so its presence means a complete set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleSet {
    /// Schema number of this document.
    pub schema: u16,
    /// The benchmark.
    pub benchmark: String,
    /// Number of samples.
    pub samples: usize,
    /// The tensors of each sample, one per model input.
    pub tensors: Vec<SampleTensor>,
    /// How floats became integers; `None` for samples that are not quantised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantised: Option<Quantised>,
}
document!(SampleSet, "samples' document", 1);

/// One tensor of every sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleTensor {
    /// The input's name, when the model has several inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Type of the elements.
    pub dtype: Dtype,
    /// Memory layout of the elements.
    pub format: Layout,
    /// The input's shape. The layout may pad it on disk.
    pub shape: Vec<usize>,
    /// SHA-256 of the concatenated data of all samples, hexadecimal.
    pub sha256: String,
}

/// Quantisation of floats to integers: divided by the scale, rounded, and clamped to -128 to 127.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quantised {
    /// The value of one step.
    pub scale: f32,
    /// How fractions are rounded.
    pub rounding: Rounding,
    /// Where the scale comes from, as text.
    pub source: String,
}

/// How fractions are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rounding {
    /// Truncates, as NVIDIA's preprocessing of images does.
    #[default]
    TowardZero,
    /// Rounds to nearest, ties to even, as TensorRT's own quantisation and numpy's `round` do.
    Nearest,
}

/// The error for samples of another type, layout or shape than a run needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("they are {found}, but {expected} is needed")]
pub struct OtherSamples {
    /// The form of the samples found.
    pub found: String,
    /// The form that the run needs.
    pub expected: String,
}

/// The error for samples that are incomplete or cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum NotWhole {
    /// `prep` was interrupted or still runs.
    #[error(
        "the samples in {} are incomplete: `regatta prep` was interrupted there or is still running; run it again",
        .0.display()
    )]
    HalfMade(PathBuf),
    /// The directory cannot be examined.
    #[error("{} cannot be read", directory.display())]
    Unknown {
        /// The directory of the samples.
        directory: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl SampleSet {
    /// The document's file name in the samples' directory.
    pub const FILE: &str = "samples.json";

    /// Marker file beside samples whose preparation is running or was interrupted. Some of them may be older, with another scale.
    pub const UNFINISHED: &str = "samples.unfinished";

    /// Checks that no preparation of the samples in `directory` is unfinished. A missing directory passes.
    ///
    /// # Errors
    /// [`NotWhole`] when the marker exists or cannot be examined.
    pub fn check_whole(directory: &Path) -> Result<(), NotWhole> {
        match directory.join(Self::UNFINISHED).try_exists() {
            Ok(false) => Ok(()),
            Ok(true) => Err(NotWhole::HalfMade(directory.to_owned())),
            Err(source) => Err(NotWhole::Unknown {
                directory: directory.to_owned(),
                source,
            }),
        }
    }

    /// Checks that these samples have the model's inputs.
    ///
    /// # Errors
    /// [`OtherSamples`] with both sides as text.
    pub fn check(&self, model: &Model) -> Result<(), OtherSamples> {
        let own = |tensor: &SampleTensor| {
            let input = ModelInput {
                name: tensor.name.as_deref(),
                shape: &tensor.shape,
                dtype: tensor.dtype,
                layout: tensor.format,
            };
            input.to_string()
        };
        let found: Vec<_> = self.tensors.iter().map(own).collect();
        let expected: Vec<_> = model.inputs().map(|input| input.to_string()).collect();
        if found == expected {
            return Ok(());
        }
        Err(OtherSamples {
            found: found.join(", "),
            expected: expected.join(", "),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EngineKind, documents::Document as _};

    fn digits() -> Benchmark {
        Benchmark::from_toml(include_str!("../../../configs/benchmarks/digits.toml")).unwrap()
    }

    #[test]
    fn sample_forms_are_separate_and_selected_by_the_settings() {
        let benchmark = digits();
        let requested = |words: &[(&str, &str)]| {
            let settings = EngineSettings::parse(EngineKind::Tensorrt, words.iter().copied()).unwrap();
            Form::requested(&settings, benchmark.form())
        };
        assert_eq!(requested(&[("batch_size", "8")]), None);
        assert_eq!(requested(&[("input_format", "linear")]), Some(benchmark.form()));
        let form = requested(&[("input_dtype", "int8"), ("input_format", "dla_hwc4")]).unwrap();
        assert_eq!(form.to_string(), "int8_chw4");
        let changed = benchmark.in_form(form).unwrap();
        assert_eq!(changed.dataset.dir, "preprocessed_data/digits/int8_chw4");
        assert_eq!(changed.form(), form);
        assert_eq!(changed.model.sample_bytes(), Some(256));
        assert_eq!(changed.dataset.map, benchmark.dataset.map);
        assert_eq!(
            form.prep_command("digits"),
            "regatta prep digits --dtype int8 --layout chw4 --scale SCALE --output SCRATCH"
        );
        let half = Form::new(Dtype::Float16, Layout::Linear);
        assert!(benchmark.form().converts_to(half) && !half.converts_to(form));
    }

    #[test]
    fn calibration_samples_have_the_networks_form_whatever_that_of_the_samples() {
        let text = include_str!("../../../configs/benchmarks/resnet50.toml");
        let benchmark = Benchmark::from_toml(text).unwrap();
        let list = "preprocessed_data/imagenet/ResNet50/cal_image_list_option_1_fp32_linear";
        assert_eq!(benchmark.calibration_dirs(), [list]);
        let changed = benchmark.in_form(Form::new(Dtype::Int8, Layout::Chw4)).unwrap();
        assert_eq!(changed.calibration_dirs(), [list]);
    }

    #[test]
    fn volumes_stay_linear_whatever_the_layout_of_their_windows() {
        let benchmark =
            Benchmark::from_toml(include_str!("../../../configs/benchmarks/3d-unet-99.toml")).unwrap();
        let words = [("input_dtype", "int8"), ("input_format", "cdhw32")];
        let settings = EngineSettings::parse(EngineKind::Tensorrt, words).unwrap();
        let requested = benchmark.requested_form(&settings).unwrap();
        assert_eq!(requested, Form::new(Dtype::Int8, Layout::Linear));
        let Some(crate::benchmark::Prep::Volumes(volumes)) = &benchmark.prep else {
            unreachable!("3D-UNet has volumes")
        };
        // The bounds of preprocessing in Hounsfield units, and the same as int8 samples.
        for (value, quantised) in [(304.0, 127.0), (-79.0, -113.0)] {
            let steps: f32 = (value - 101.0) / 76.9 / volumes.int8_scale();
            assert!((steps - quantised).abs() < 0.5, "{value}: {steps}");
        }
    }

    #[test]
    fn impossible_sample_forms_are_refused() {
        let mut benchmark = digits();
        let form = Form::new(Dtype::Int8, Layout::DlaLinear);
        benchmark.model.input_shape = vec![64];
        let refused = benchmark.in_form(form).unwrap_err().to_string();
        assert_eq!(
            refused,
            "samples of [64], as those of digits are, cannot be laid out as int8_dla_linear"
        );
        benchmark.model.input_dtype = Dtype::Int32;
        let refused = benchmark.in_form(form).unwrap_err().to_string();
        assert_eq!(
            refused,
            "the samples of digits are int32_linear and cannot be made int8_dla_linear: forms are made from fp32_linear"
        );
    }

    #[test]
    fn a_document_tells_what_the_samples_are() {
        let text = r#"{"schema":1,"benchmark":"digits","samples":597,"tensors":[{"dtype":"int8","format":"chw4","shape":[1,8,8],"sha256":"00"}],"quantised":{"scale":0.0625,"rounding":"toward-zero","source":"given"}}"#;
        let set = SampleSet::from_json(text.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&set).unwrap(), text);
        let benchmark = digits();
        let other = set.check(&benchmark.model).unwrap_err().to_string();
        assert_eq!(
            other,
            "they are int8 chw4 [1, 8, 8], but fp32 linear [1, 8, 8] is needed"
        );
        let form = Form::new(Dtype::Int8, Layout::Chw4);
        set.check(&benchmark.in_form(form).unwrap().model).unwrap();
    }
}
