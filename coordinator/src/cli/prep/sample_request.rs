//! Makes a set of samples in this process, for `regatta prep` and for commands that need the samples as an intermediate step.

use std::path::Path;

use regatta_datasets::bundled;
use regatta_prep::{
    ImageRequest, PrepError, PrepHint, PrepReport, convert_samples, install_bundled, prepare, prepare_images,
    raw_data_dir,
};
use regatta_types::{
    benchmark::{Benchmark, Dtype, Prep},
    samples::{Form, Quantised, Rounding, SampleSet},
};

use crate::exit::Failure;

/// The recorded source of a scale from the benchmark's file.
pub(in crate::cli) const PUBLISHED: &str = "published";

/// Returns the quantisation of `int8` samples that a benchmark's file says. Returns `None` for other samples, and if no scale was published.
pub(in crate::cli) fn published_quantisation(benchmark: &Benchmark, form: Form) -> Option<Quantised> {
    let (scale, rounding) = match &benchmark.prep {
        _ if form.dtype != Dtype::Int8 => return None,
        Some(Prep::JpegImages(kind)) => (kind.int8_scale?, Rounding::TowardZero),
        Some(Prep::DetectionImages(kind)) => (kind.int8_scale?, Rounding::TowardZero),
        Some(Prep::Volumes(kind)) => (kind.int8_scale(), Rounding::Nearest),
        _ => return None,
    };
    Some(Quantised {
        scale,
        rounding,
        source: PUBLISHED.to_owned(),
    })
}

/// The reason why a set of samples was not made.
pub(in crate::cli) enum NotMade {
    Failure(Failure),
    Damaged(PrepError),
}

impl From<Failure> for NotMade {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

#[derive(Debug)]
pub(in crate::cli) struct SampleRequest<'a> {
    pub(in crate::cli) benchmark: &'a Benchmark,
    pub(in crate::cli) form: Form,
    /// The quantisation, for `int8` only.
    pub(in crate::cli) quantised: Option<Quantised>,
    /// The directory of the published data set. `None` selects the default one.
    pub(in crate::cli) data: Option<&'a Path>,
    /// The labels or annotations. `None` selects those beside the images.
    pub(in crate::cli) labels: Option<&'a Path>,
    /// A calibration list. If it is set, only the samples of the list are made.
    pub(in crate::cli) calibration: Option<&'a Path>,
    /// Whether to make the samples of damaged images, too.
    pub(in crate::cli) accepts_damaged: bool,
}

impl SampleRequest<'_> {
    /// Makes the benchmark's own samples, or samples in another form. Makes the own samples first if the other form is made from them.
    ///
    /// # Errors
    /// Returns [`NotMade`]. A second call continues.
    pub(in crate::cli) fn make(
        &self,
        out: &Path,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<PrepReport, NotMade> {
        let (benchmark, form, quantised) = (self.benchmark, self.form, self.quantised.as_ref());
        if let Some(
            Prep::JpegImages(_)
            | Prep::DetectionImages(_)
            | Prep::LetterboxImages(_)
            | Prep::Volumes(_)
            | Prep::Speech(_),
        ) = &benchmark.prep
        {
            if self.labels.is_some() && matches!(benchmark.prep, Some(Prep::Volumes(_) | Prep::Speech(_))) {
                return Err(Failure::misuse("--labels is for benchmarks of images").into());
            }
            if self.accepts_damaged && matches!(benchmark.prep, Some(Prep::Volumes(_) | Prep::Speech(_))) {
                return Err(only_images().into());
            }
            return self.make_of_images(out, progress);
        }
        if self.labels.is_some() || self.calibration.is_some() {
            let sentence = "--labels and --calibration are for benchmarks of images, volumes or speech";
            return Err(Failure::misuse(sentence).into());
        }
        if self.accepts_damaged {
            return Err(only_images().into());
        }
        let is_own = form == benchmark.form();
        if is_own && quantised.is_some() {
            return Err(failure(PrepError::Scale { form }).into());
        }
        if !is_own {
            benchmark.in_form(form).map_err(Failure::usage)?;
        }
        let is_there = out.join(&benchmark.dataset.map).is_file();
        if is_own || (!is_there && benchmark.prep.is_some()) {
            let report = match self.data {
                Some(data) => prepare(benchmark, data, out, progress),
                None if bundled::contains(benchmark) => install_bundled(benchmark, out, progress),
                None => prepare(benchmark, &raw_data_dir(benchmark, out), out, progress),
            };
            let report = report.map_err(failure)?;
            if is_own {
                return Ok(report);
            }
        }
        Ok(convert_samples(benchmark, form, quantised, out, progress).map_err(failure)?)
    }

    /// Makes samples of JPEG images or volumes in any form. If the images are missing, converts the 32-bit samples instead, if they exist.
    fn make_of_images(
        &self,
        out: &Path,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<PrepReport, NotMade> {
        let (benchmark, form, quantised) = (self.benchmark, self.form, self.quantised.as_ref());
        let usual = raw_data_dir(benchmark, out);
        let is_made = out.join(&benchmark.dataset.dir).join(SampleSet::FILE).is_file();
        if self.data.is_none()
            && !usual.is_dir()
            && is_made
            && form != benchmark.form()
            && self.calibration.is_none()
        {
            return Ok(convert_samples(benchmark, form, quantised, out, progress).map_err(failure)?);
        }
        let request = ImageRequest {
            benchmark,
            form,
            quantised,
            data: self.data.unwrap_or(&usual),
            labels: self.labels,
            calibration: self.calibration,
            accepts_damaged: self.accepts_damaged,
        };
        prepare_images(&request, out, progress).map_err(|error| match error {
            PrepError::DamagedImages { .. } => NotMade::Damaged(error),
            error => failure(error).into(),
        })
    }
}

fn only_images() -> Failure {
    Failure::misuse("--accept-damaged is for benchmarks of images")
}

/// Converts an error of preparation to the failure of a command.
pub(super) fn failure(error: PrepError) -> Failure {
    let hint = error.hint().map(|hint| match hint {
        PrepHint::PublishedFile => "`regatta data show BENCHMARK` shows where the file is published",
        PrepHint::Annotations => "`regatta data show BENCHMARK` shows how the annotations are made",
        PrepHint::Labels => "name the right file with --labels: a line NAME CLASS per image",
    });
    Failure::of_kind(error.kind(), error).optional_hint(hint)
}
