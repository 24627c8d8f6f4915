//! The preparation kind `detection-images`: annotated photographs, as OpenImages and COCO publish them, become samples with the bytes of the
//! reference's `pre_process_openimages_retinanet` and `pre_process_coco_resnet34`. The annotations are copied beside the samples.

mod annotations;
mod bilinear;
mod sample;
mod source;

use std::path::{Path, PathBuf};

use regatta_types::benchmark::Benchmark;

pub use self::annotations::AnnotationError;
pub(crate) use self::{
    annotations::{AnnotatedImage, Annotation, Annotations, read_annotations},
    sample::{ResizedSampleMaker, image_shape},
    source::{annotated_images, calibration_images, checked, open},
};
use crate::{
    published::published_files, speech::transcripts_file, squad::squad_labels, volumes::description_file,
};

/// Returns the directory below the scratch directory in which the accuracy script finds the annotations, in the dataset's own tree: the
/// directory of the map.
#[must_use]
pub fn detection_directory(benchmark: &Benchmark) -> PathBuf {
    Path::new(&benchmark.dataset.map)
        .parent()
        .unwrap_or(Path::new(""))
        .to_owned()
}

/// Returns the annotations beside the samples, which the accuracy metric reads, below the scratch directory. `None` without annotations.
pub(crate) fn annotations_file(benchmark: &Benchmark) -> Option<PathBuf> {
    let annotations = benchmark.prep.as_ref()?.annotations()?;
    Some(detection_directory(benchmark).join(annotations))
}

/// Returns the files beside a benchmark's samples that its accuracy needs besides the map, below the scratch directory: annotations,
/// questions and vocabulary, the description of segmentations, or transcripts.
#[must_use]
pub fn label_files(benchmark: &Benchmark) -> Vec<PathBuf> {
    let questions = squad_labels(benchmark).into_iter().flatten();
    let files = annotations_file(benchmark).into_iter().chain(questions);
    files
        .chain(description_file(benchmark))
        .chain(transcripts_file(benchmark))
        .chain(published_files(benchmark))
        .collect()
}
