//! Makes a benchmark's samples from its images, volumes or utterances, in any form and of any kind. All processors work; samples are recorded in the
//! order of the labels.

use std::path::{Path, PathBuf};

use regatta_datasets::{
    annotations::{AnnotationError, read_annotations},
    label_files::annotations_file,
};
use regatta_types::benchmark::{Benchmark, Prep};

use crate::{
    atomic,
    damaged_images::{DamagedImage, ImageFault},
    detection_images,
    error::PrepError,
    image_sample_maker::ImageSampleMaker,
    in_order::in_order,
    jpeg_images::{ImageRequest, ImageSource, LabelledImage, Sample},
    letterbox_images::{self, selected_annotations},
    report::PrepReport,
    samples::{MapFile, SampleFiles, SampleWriter, StoredSample, make_dir},
    speech, volumes,
};

/// Makes the samples of a benchmark from its JPEG images, volumes or utterances below the scratch directory `out`, as [`prepare`](crate::prepare) does, but
/// in any form.
///
/// # Errors
/// [`PrepError`] names the first wrong file, but all damaged images, after the samples of the others are made. Labels or annotations, and number and
/// total size of the images are checked before anything is written.
pub fn prepare_images(
    request: &ImageRequest<'_>,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    let (benchmark, form, quantised) = (request.benchmark, request.form, request.quantised);
    let target = sample_target(request)?;
    match &benchmark.prep {
        Some(Prep::JpegImages(kind)) => {
            let maker = ImageSampleMaker::new(benchmark, form, quantised)?;
            let source = ImageSource::open(request, kind)?;
            make(request, target, &source, &maker, out, progress)
        }
        Some(Prep::DetectionImages(kind)) => {
            let maker = ImageSampleMaker::new(benchmark, form, quantised)?;
            let (source, annotations) = detection_images::open(request, kind)?;
            let report = make(request, target, &source, &maker, out, progress)?;
            if let Some(path) = annotations {
                write_annotations(benchmark, &read_annotations(&path)?, out)?;
            }
            Ok(report)
        }
        Some(Prep::LetterboxImages(kind)) => {
            let maker = ImageSampleMaker::new(benchmark, form, quantised)?;
            let (source, annotations) = letterbox_images::open(request, kind)?;
            let report = make(request, target, &source, &maker, out, progress)?;
            if let Some(path) = annotations {
                let selected = selected_annotations(&read_annotations(&path)?, &kind.licences);
                let selected = selected.map_err(|source| AnnotationError::Form { path, source })?;
                write_annotations(benchmark, &selected, out)?;
            }
            Ok(report)
        }
        Some(Prep::Volumes(kind)) => volumes::prepare(request, kind, target, out, progress),
        Some(Prep::Speech(kind)) => speech::prepare(request, kind, target, out, progress),
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
        Some(Prep::LetterboxImages(kind)) => letterbox_images::open(request, kind).map(drop),
        Some(Prep::Volumes(kind)) => volumes::open(request, kind).map(drop),
        Some(Prep::Speech(kind)) => speech::open(request, kind).map(drop),
        _ => Err(no_images(request.benchmark)),
    }
}

fn no_images(benchmark: &Benchmark) -> PrepError {
    PrepError::NoPrepSection {
        benchmark: benchmark.name.clone(),
    }
}

/// Returns the benchmark in the requested form, with the directory and the map of the samples that [`prepare_images`] makes. The samples of a
/// calibration list have a separate directory and map.
///
/// # Errors
/// [`PrepError::Form`] when the samples cannot have the form.
pub fn sample_target(request: &ImageRequest<'_>) -> Result<Benchmark, PrepError> {
    let mut target = request.benchmark.in_form(request.form)?;
    if let Some(list) = request.calibration {
        // A submission uses only one list.
        let name = list.file_stem().unwrap_or_default().to_string_lossy();
        target.dataset.dir = target.calibration_dir(&name, request.form);
        target.dataset.map = sibling(&target.dataset.map, &format!("{name}_map.txt"));
    }
    Ok(target)
}

fn make(
    request: &ImageRequest<'_>,
    mut target: Benchmark,
    source: &ImageSource,
    maker: &ImageSampleMaker,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    let total = source.images.len();
    target.dataset.total_samples = total;
    let has_sizes = matches!(request.benchmark.prep, Some(Prep::LetterboxImages(_)));
    let mut lines: Vec<String> = source.images.iter().map(|image| map_line(image, None)).collect();
    if !has_sizes {
        // Removes a map of other samples. Sizes are known only at the end.
        MapFile::new(&target, out, &lines.concat())?;
    }
    let mut writer = SampleWriter::new(&target, out)?;
    let files = writer.files();
    let make = |index: usize| make_one(&source.dir, &source.images[index].name, maker, &files, request);
    let (mut clipped, mut damaged) = (0, Vec::new());
    in_order(total, make, |index, made| {
        let name = &source.images[index].name;
        damaged.extend(made.fault.map(|fault| DamagedImage {
            name: name.clone(),
            fault,
        }));
        if let Some((sample, stored)) = made.sample {
            clipped += sample.clipped;
            if has_sizes {
                lines[index] = map_line(&source.images[index], Some(sample.size));
            }
            writer.record(name, &sample.data, &stored);
        }
        progress(index + 1, total);
    })?;
    let is_accepted = |image: &DamagedImage| request.accepts_damaged && image.fault.has_sample();
    let (damaged, refused): (Vec<_>, Vec<_>) = damaged.into_iter().partition(is_accepted);
    if !refused.is_empty() {
        return Err(PrepError::DamagedImages {
            dir: source.dir.clone(),
            total,
            images: refused,
        });
    }
    let map_text = lines.concat();
    if request.calibration.is_some() {
        writer.remove_others()?;
    }
    let map = MapFile::new(&target, out, &map_text)?;
    Ok(PrepReport {
        samples: total,
        unchanged: writer.unchanged,
        clipped,
        damaged,
        dir: writer.finish(&target, request.quantised.cloned())?,
        map: map.finish()?,
    })
}

/// An image whose sample was made, unless it is damaged.
struct MadeImage {
    sample: Option<(Sample, StoredSample)>,
    fault: Option<ImageFault>,
}

fn make_one(
    dir: &Path,
    name: &str,
    maker: &ImageSampleMaker,
    files: &SampleFiles,
    request: &ImageRequest<'_>,
) -> Result<MadeImage, PrepError> {
    let mut sample = match maker.read(&dir.join(name)) {
        Ok(sample) => sample,
        Err(PrepError::Image { source, .. }) => {
            return Ok(MadeImage {
                sample: None,
                fault: Some(source),
            });
        }
        Err(error) => return Err(error),
    };
    let fault = sample.damage.take().map(ImageFault::Damaged);
    if fault.is_some() && !request.accepts_damaged {
        return Ok(MadeImage { sample: None, fault });
    }
    let stored = files.store(name, &sample.data)?;
    Ok(MadeImage {
        sample: Some((sample, stored)),
        fault,
    })
}

/// Formats a map's line: name and label, and width and height of an image that is letterboxed.
fn map_line(image: &LabelledImage, size: Option<[usize; 2]>) -> String {
    let LabelledImage { name, label } = image;
    match size {
        Some([width, height]) => format!("{name} {label} {width} {height}\n"),
        None => format!("{name} {label}\n"),
    }
}

/// Writes annotations beside the samples, where the accuracy metric reads them.
fn write_annotations(benchmark: &Benchmark, json: &[u8], out: &Path) -> Result<(), PrepError> {
    let Some(path) = annotations_file(benchmark).map(|path| out.join(path)) else {
        return Ok(());
    };
    make_dir(path.parent().unwrap_or(&path))?;
    atomic::write(&path, json)
        .map(drop)
        .map_err(|source| PrepError::Write { path, source })
}

/// Returns the path beside `path` with another name.
fn sibling(path: &str, name: &str) -> String {
    let beside: PathBuf = Path::new(path).with_file_name(name);
    beside.to_string_lossy().into_owned()
}
