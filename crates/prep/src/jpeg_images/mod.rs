//! The preparation kind `jpeg-images`: classified photographs, as ImageNet publishes them, become samples with the bytes of the
//! reference's `pre_process_vgg`. All processors work; samples are recorded in the order of the labels.

mod area;
mod labels;
mod linear;
mod region;
mod request;
mod sample;
mod source;

use std::{fmt::Write as _, path::Path};

use regatta_types::benchmark::Prep;

use self::source::Source;
pub use self::{request::ImageRequest, sample::SampleMaker, source::labels_among};
use crate::{
    error::PrepError,
    in_order::in_order,
    report::PrepReport,
    samples::{MapFile, SampleWriter},
};

/// Makes the samples of a benchmark from its JPEG images below the scratch directory `out`, as [`prepare`](crate::prepare) does, but
/// in any form.
///
/// # Errors
/// [`PrepError`] names the first wrong file. Labels, number and total size of the images are checked before anything is written.
pub fn prepare_images(
    request: &ImageRequest<'_>,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    let benchmark = request.benchmark;
    let Some(Prep::JpegImages(kind)) = &benchmark.prep else {
        return Err(PrepError::NoPrepSection {
            benchmark: benchmark.name.clone(),
        });
    };
    let mut target = benchmark.in_form(request.form)?;
    let maker = SampleMaker::new(benchmark, kind, request.form, request.quantised)?;
    let source = Source::open(request, kind)?;
    let total = source.images.len();
    if let Some(list) = request.calibration {
        // A directory for each list: an engine is calibrated with every sample in it, and a submission uses one list.
        let name = list.file_stem().unwrap_or_default().to_string_lossy();
        target.dataset.dir = sibling(&target.dataset.dir, &format!("{name}_{}", request.form));
        target.dataset.map = sibling(&target.dataset.map, &format!("{name}_map.txt"));
        target.dataset.total_samples = total;
    }
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
        let sample = maker.read(&source.dir.join(name))?;
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

/// Checks that a directory has the labels and the images of a benchmark, by name and total size. No image is decoded.
///
/// # Errors
/// [`PrepError`] names the first wrong file, as for [`prepare_images`].
pub fn check_images(request: &ImageRequest<'_>) -> Result<(), PrepError> {
    let Some(Prep::JpegImages(kind)) = &request.benchmark.prep else {
        return Err(PrepError::NoPrepSection {
            benchmark: request.benchmark.name.clone(),
        });
    };
    Source::open(request, kind).map(drop)
}

/// Returns the path beside `path` with another name.
fn sibling(path: &str, name: &str) -> String {
    Path::new(path)
        .with_file_name(name)
        .to_string_lossy()
        .into_owned()
}
