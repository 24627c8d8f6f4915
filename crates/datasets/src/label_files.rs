//! The files of a benchmark beside its samples that preparation writes and the accuracy metric reads, by their paths below the scratch
//! directory. It reads no file.

use std::path::{Path, PathBuf};

use regatta_types::benchmark::{Benchmark, Prep};

/// Returns the files beside the samples of a SQuAD benchmark that its accuracy needs, below the scratch directory: questions and
/// vocabulary. `None` for other benchmarks.
#[must_use]
pub fn squad_labels(benchmark: &Benchmark) -> Option<[PathBuf; 2]> {
    let Some(Prep::Squad(kind)) = &benchmark.prep else {
        return None;
    };
    let directory = squad_directory(benchmark);
    Some([&kind.questions, &kind.vocabulary].map(|name| directory.join(name)))
}

/// Returns the file beside these in which the reference's accuracy script keeps its own features. Preparation removes it when they
/// have changed.
#[must_use]
pub fn squad_feature_cache(benchmark: &Benchmark) -> PathBuf {
    squad_directory(benchmark).join("eval_features.pickle")
}

/// Returns the directory of the questions and vocabulary of a SQuAD benchmark below the scratch directory.
#[must_use]
pub fn squad_directory(benchmark: &Benchmark) -> PathBuf {
    Path::new(&benchmark.dataset.dir)
        .parent()
        .unwrap_or(Path::new(""))
        .to_owned()
}

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
#[must_use]
pub fn annotations_file(benchmark: &Benchmark) -> Option<PathBuf> {
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

/// Returns the files that are copied from a benchmark's data set as they are, below the scratch directory. Empty for other benchmarks.
#[must_use]
pub fn published_files(benchmark: &Benchmark) -> Vec<PathBuf> {
    let Some(Prep::Published { files }) = &benchmark.prep else {
        return Vec::new();
    };
    let dir = Path::new(&benchmark.dataset.dir);
    files.iter().map(|file| dir.join(&file.name)).collect()
}

/// Returns the directory of the segmentations below the scratch directory, which the reference's `accuracy_kits.py` takes as `--preprocessed_data_dir`. `None` for a
/// benchmark without volumes.
#[must_use]
pub fn segmentation_directory(benchmark: &Benchmark) -> Option<PathBuf> {
    matches!(benchmark.prep, Some(Prep::Volumes(_)))
        .then(|| Path::new(&benchmark.dataset.map).with_file_name("segmentations"))
}

/// Returns the path of the pickled description of the segmented cases, below the scratch directory. It is written last. `None` for a benchmark without volumes.
#[must_use]
pub fn description_file(benchmark: &Benchmark) -> Option<PathBuf> {
    Some(segmentation_directory(benchmark)?.join("preprocessed_files.pkl"))
}

/// Returns the path of a case's segmentation in the directory of segmentations.
#[must_use]
pub fn segmentation_path(directory: &Path, case: &str) -> PathBuf {
    directory.join("nifti").join(case).join("segmentation.nii.gz")
}

/// Returns the path of the transcripts below the scratch directory. `None` for a benchmark without utterances.
#[must_use]
pub fn transcripts_file(benchmark: &Benchmark) -> Option<PathBuf> {
    let Some(Prep::Speech(kind)) = &benchmark.prep else {
        return None;
    };
    let name = match &kind.clips {
        Some(clips) => clips.transcripts.clone(),
        None => format!("{}-wav.json", kind.set),
    };
    Some(Path::new(&benchmark.dataset.dir).with_file_name(name))
}
