//! The preparation kind `volumes`: computed tomographies with segmentations, as KiTS19 publishes them, become samples of different sizes,
//! with the bytes of the reference's `preprocess.py`. Beside the samples are the files that the reference's accuracy script reads.

mod geometry;
mod memory;
mod reference_files;
mod sample;
mod source;
mod window;
mod zoom;

use std::path::Path;

use regatta_datasets::{
    label_files::{description_file, segmentation_directory, segmentation_path},
    volumes::{VolumeError, segmentation_file},
};
use regatta_types::benchmark::{Benchmark, Volumes};

pub(crate) use self::source::open;
use self::{
    memory::{free_memory, volumes_at_once},
    reference_files::{DescribedCase, description},
    sample::VolumeSampleMaker,
    source::Case,
    window::CalibrationWindows,
};
use crate::{
    atomic,
    error::PrepError,
    in_order::in_order_at_once,
    jpeg_images::ImageRequest,
    report::PrepReport,
    samples::{MapFile, SampleFiles, SampleWriter, StoredSample, make_dir, remove},
};

/// Makes the samples of a benchmark from the cases that `request` names. `target` is the benchmark in the requested form. The samples of a
/// calibration list are windows.
pub(crate) fn prepare(
    request: &ImageRequest<'_>,
    kind: &Volumes,
    mut target: Benchmark,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    let cases = open(request, kind)?;
    let total = cases.len();
    let maker = VolumeSampleMaker::new(request.benchmark, kind, request.form, request.quantised)?;
    let at_once = at_once(&maker, &cases)?;
    // Classes of calibration samples are not needed.
    let segmentations = segmentation_directory(request.benchmark)
        .filter(|_| request.calibration.is_none())
        .map(|directory| out.join(directory));
    let described = description_file(request.benchmark).filter(|_| segmentations.is_some());
    let described = described.map(|path| out.join(path));
    let of_target = target.clone();
    let windows = CalibrationWindows::of(&of_target).filter(|_| request.calibration.is_some());
    let mut writer = SampleWriter::new(&target, out)?;
    if let Some(path) = &described {
        remove(path)?;
    }
    let making = Making {
        maker,
        files: writer.files(),
        segmentations: segmentations.as_deref(),
        has_windows: windows.is_some(),
    };
    let (mut clipped, mut lines, mut descriptions) = (0, String::new(), Vec::new());
    let (mut samples, mut written) = (0, Ok(()));
    in_order_at_once(
        at_once,
        total,
        |index| making.make(&cases[index]),
        |index, made| {
            clipped += made.clipped;
            let [depth, height, width] = made.case.size;
            if let Some(windows) = windows.as_ref().filter(|_| written.is_ok()) {
                let mut number = 0;
                written = windows.each(&made.data, made.case.size, |window| {
                    let name = format!("{}_{number}", made.case.name);
                    (number, samples) = (number + 1, samples + 1);
                    lines.push_str(&format!("{name}\n"));
                    writer.write(&name, window)
                });
            } else if let Some(stored) = &made.stored {
                samples += 1;
                lines.push_str(&format!("{} {depth} {height} {width}\n", made.case.name));
                writer.record(&made.case.name, &made.data, stored);
            }
            descriptions.push(made.case);
            progress(index + 1, total);
        },
    )?;
    written?;
    target.dataset.total_samples = samples;
    if let Some(path) = described {
        let text = description(&descriptions).and_then(|bytes| atomic::write(&path, &bytes));
        text.map_err(|source| PrepError::Write { path, source })?;
    }
    if request.calibration.is_some() {
        writer.remove_others()?;
    }
    let map = MapFile::new(&target, out, &lines)?;
    Ok(PrepReport {
        samples,
        unchanged: writer.unchanged,
        clipped,
        damaged: Vec::new(),
        dir: writer.finish(&target, request.quantised.cloned())?,
        map: map.finish()?,
    })
}

/// Reads all headers, and returns how many cases are made at once.
fn at_once(maker: &VolumeSampleMaker<'_>, cases: &[Case]) -> Result<usize, PrepError> {
    let free = free_memory();
    let mut largest = 0;
    for case in cases {
        let needed = maker.memory(&case.directory)?;
        if let Some(free) = free.filter(|free| needed > free.with_swap) {
            return Err(VolumeError::Memory {
                directory: case.directory.clone(),
                needed,
                free: free.with_swap,
            }
            .into());
        }
        largest = needed.max(largest);
    }
    Ok(volumes_at_once(largest, free.map(|free| free.available)))
}

/// What each thread needs to make a case.
struct Making<'a> {
    maker: VolumeSampleMaker<'a>,
    files: SampleFiles,
    segmentations: Option<&'a Path>,
    /// Whether only windows of the volumes are stored.
    has_windows: bool,
}

/// A case whose files are written.
struct MadeCase {
    case: DescribedCase,
    data: Vec<u8>,
    clipped: u64,
    /// `None` if only windows are stored.
    stored: Option<StoredSample>,
}

impl Making<'_> {
    fn make(&self, case: &Case) -> Result<MadeCase, PrepError> {
        let affine = match self.segmentations {
            Some(directory) => self.write_segmentation(case, directory)?,
            None => Default::default(),
        };
        let sample = self.maker.sample(&case.directory)?;
        let [depth, height, width] = sample.size;
        let shape = [1, depth, height, width];
        let stored = match self.has_windows {
            true => None,
            false => Some(self.files.store_shaped(&case.name, &shape, &sample.data)?),
        };
        Ok(MadeCase {
            case: DescribedCase {
                name: case.name.clone(),
                size: sample.size,
                affine,
            },
            data: sample.data,
            clipped: sample.clipped,
            stored,
        })
    }

    /// Writes the classes of a case at the common spacing, and returns their map to millimetres.
    fn write_segmentation(&self, case: &Case, directory: &Path) -> Result<[[f64; 4]; 3], PrepError> {
        let made = self.maker.segmentation(&case.directory)?;
        let path = segmentation_path(directory, &case.name);
        make_dir(path.parent().unwrap_or(directory))?;
        let file = segmentation_file(
            &made.classes.voxels,
            made.classes.size,
            self.maker.spacing(),
            &made.affine,
        );
        let written = file.and_then(|bytes| atomic::write(&path, &bytes));
        written.map_err(|source| PrepError::Write { path, source })?;
        Ok(made.affine)
    }
}
