//! Makes a benchmark's samples from its JPEG images, in any form and of either kind. All processors work; samples are recorded in the
//! order of the labels.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use regatta_types::benchmark::{Benchmark, Prep};

use crate::{
    atomic,
    detection_images::{self, ResizedSampleMaker},
    error::PrepError,
    in_order::in_order,
    jpeg_images::{ImageRequest, ImageSource, Sample, SampleMaker},
    report::PrepReport,
    samples::{MapFile, SampleWriter, make_dir},
};

/// The largest file of annotations that is copied.
const LARGEST_ANNOTATIONS: u64 = 1 << 30;

/// Makes the samples of a benchmark from its JPEG images below the scratch directory `out`, as [`prepare`](crate::prepare) does, but
/// in any form.
///
/// # Errors
/// [`PrepError`] names the first wrong file. Labels or annotations, and number and total size of the images are checked before anything
/// is written.
pub fn prepare_images(
    request: &ImageRequest<'_>,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    let (benchmark, form, quantised) = (request.benchmark, request.form, request.quantised);
    let target = target(request)?;
    match &benchmark.prep {
        Some(Prep::JpegImages(kind)) => {
            let maker = SampleMaker::new(benchmark, kind, form, quantised)?;
            let source = ImageSource::open(request, kind)?;
            make(request, target, &source, |path| maker.read(path), out, progress)
        }
        Some(Prep::DetectionImages(kind)) => {
            let maker = ResizedSampleMaker::new(benchmark, kind, form, quantised)?;
            let (source, annotations) = detection_images::open(request, kind)?;
            let report = make(request, target, &source, |path| maker.read(path), out, progress)?;
            if let Some(annotations) = annotations {
                copy(
                    &annotations,
                    &out.join(detection_images::labels_file(benchmark, kind)),
                )?;
            }
            Ok(report)
        }
        _ => Err(no_images(benchmark)),
    }
}

/// Checks that a directory has the labels or annotations and the images of a benchmark, by name and total size. No image is decoded.
///
/// # Errors
/// [`PrepError`] names the first wrong file, as for [`prepare_images`].
pub fn check_images(request: &ImageRequest<'_>) -> Result<(), PrepError> {
    match &request.benchmark.prep {
        Some(Prep::JpegImages(kind)) => ImageSource::open(request, kind).map(drop),
        Some(Prep::DetectionImages(kind)) => detection_images::open(request, kind).map(drop),
        _ => Err(no_images(request.benchmark)),
    }
}

fn no_images(benchmark: &Benchmark) -> PrepError {
    PrepError::NoPrepSection {
        benchmark: benchmark.name.clone(),
    }
}

/// Returns the benchmark in the requested form. The samples of a calibration list have a directory and a map of their own.
fn target(request: &ImageRequest<'_>) -> Result<Benchmark, PrepError> {
    let mut target = request.benchmark.in_form(request.form)?;
    if let Some(list) = request.calibration {
        // A directory for each list: an engine is calibrated with every sample in it, and a submission uses one list.
        let name = list.file_stem().unwrap_or_default().to_string_lossy();
        target.dataset.dir = sibling(&target.dataset.dir, &format!("{name}_{}", request.form));
        target.dataset.map = sibling(&target.dataset.map, &format!("{name}_map.txt"));
    }
    Ok(target)
}

fn make(
    request: &ImageRequest<'_>,
    mut target: Benchmark,
    source: &ImageSource,
    read: impl Fn(&Path) -> Result<Sample, PrepError> + Sync,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    let total = source.images.len();
    target.dataset.total_samples = total;
    let mut map_text = String::new();
    for image in &source.images {
        // Writing to a String cannot fail.
        let _ = writeln!(map_text, "{} {}", image.name, image.label);
    }
    let map = MapFile::new(&target, out, &map_text)?;
    let mut writer = SampleWriter::new(&target, out)?;
    let files = writer.files();
    let make = |index: usize| {
        let name = &source.images[index].name;
        let sample = read(&source.dir.join(name))?;
        let stored = files.store(name, &sample.data)?;
        Ok::<_, PrepError>((sample, stored))
    };
    let mut clipped = 0;
    in_order(total, make, |index, (sample, stored)| {
        clipped += sample.clipped;
        writer.record(&source.images[index].name, &sample.data, &stored);
        progress(index + 1, total);
    })?;
    Ok(PrepReport {
        samples: total,
        unchanged: writer.unchanged,
        clipped,
        dir: writer.finish(&target, request.quantised.cloned())?,
        map: map.finish()?,
    })
}

/// Copies the annotations beside the samples, where the accuracy metric reads them.
fn copy(from: &Path, to: &Path) -> Result<(), PrepError> {
    let bytes = regular_file::read(from, LARGEST_ANNOTATIONS).map_err(|source| PrepError::Open {
        path: from.to_owned(),
        source,
    })?;
    make_dir(to.parent().unwrap_or(to))?;
    atomic::write(to, &bytes)
        .map(drop)
        .map_err(|source| PrepError::Write {
            path: to.to_owned(),
            source,
        })
}

/// Returns the path beside `path` with another name.
fn sibling(path: &str, name: &str) -> String {
    let beside: PathBuf = Path::new(path).with_file_name(name);
    beside.to_string_lossy().into_owned()
}
