//! The errors of a preparation. The causes in NumPy files, scales and maps have their errors beside the code that reads them.

use std::{io, path::PathBuf};

use regatta_datasets::{
    annotations::AnnotationError, speech::SpeechError, squad::SquadError, val_map::ValMapError,
    volumes::VolumeError,
};
use regatta_types::{
    ErrorKind,
    samples::{Form, FormError, NotWhole},
};

use crate::{
    damaged_images::{DamagedImage, FirstDamaged, ImageFault},
    npy::NpyError,
    published::PublishedError,
    quantisation::ScaleError,
};

/// What the person who asked can do about an error. The command line words it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrepHint {
    /// Find out where the missing file is published.
    PublishedFile,
    /// Find out how the annotations are made.
    Annotations,
    /// Name another file of labels.
    Labels,
}

/// The error when samples cannot be prepared. Samples that were written remain, and the next attempt continues with them.
/// `samples.json` exists only when all samples do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrepError {
    /// The benchmark's file has no `[prep]` section.
    #[error(
        "the file of benchmark {benchmark} has no [prep] section; hint: add one, or provide prepared samples"
    )]
    NoPrepSection {
        /// The benchmark's name.
        benchmark: String,
    },
    /// The kind of preparation does not support the benchmark's settings.
    #[error("the samples of benchmark {benchmark} cannot be prepared: {reason}")]
    UnsupportedSettings {
        /// The benchmark's name.
        benchmark: String,
        /// The setting and the reason.
        reason: String,
    },
    /// The directory of the dataset does not exist.
    #[error("there is no directory {dir} with the dataset; hint: name it with --data; `regatta data show {benchmark}` shows where it is published", dir = dir.display())]
    NoDataset {
        /// The benchmark's name.
        benchmark: String,
        /// The directory.
        dir: PathBuf,
    },
    /// The directory of images has no file of labels.
    #[error("{dir} has neither val_map.txt nor val.txt; hint: name the file of labels with --labels", dir = dir.display())]
    NoLabels {
        /// The directory.
        dir: PathBuf,
    },
    /// The labels of the images cannot be read.
    #[error("the labels are not lines of NAME CLASS")]
    Labels(#[source] ValMapError),
    /// A line of the labels is wrong.
    #[error("{path}, line {line}: {reason}; hint: the classes of val_map.txt count from 0", path = path.display())]
    Label {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        reason: String,
    },
    /// A calibration list names an image twice, or one that the labels do not have.
    #[error(
        "{path}, line {line}: {name} is on an earlier line or not among the labels; hint: use a list of calibration/ImageNet of mlcommons/inference",
        path = path.display()
    )]
    CalibrationImage {
        /// The list.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The image.
        name: String,
    },
    /// Images of the labels do not exist.
    #[error(
        "{missing} of {total} images in {labels} are not in {dir}, the first is {first}; hint: unpack the dataset there, or name the right labels with --labels",
        labels = labels.display(), dir = dir.display()
    )]
    MissingImages {
        /// The directory of the images.
        dir: PathBuf,
        /// The number of missing images.
        missing: usize,
        /// The number of images.
        total: usize,
        /// The first missing image.
        first: String,
        /// The file of labels.
        labels: PathBuf,
    },
    /// The images are not those that were published.
    #[error(
        "the {total} images in {dir} have {found} bytes, but the published ones have {expected}; hint: unpack the published archive again, without changing images",
        dir = dir.display()
    )]
    SourceBytes {
        /// The directory of the images.
        dir: PathBuf,
        /// The number of images.
        total: usize,
        /// Their size.
        found: u64,
        /// The size that the benchmark's file states.
        expected: u64,
    },
    /// An image is damaged.
    #[error("the image {path} cannot be used", path = path.display())]
    Image {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: ImageFault,
    },
    /// Images are damaged. The samples of all others were made.
    #[error(
        "{found} of {total} images in {dir} are damaged: {first}",
        found = images.len(), dir = dir.display(), first = FirstDamaged(images)
    )]
    DamagedImages {
        /// The directory of the images.
        dir: PathBuf,
        /// The number of images.
        total: usize,
        /// The damaged ones, in the order of the labels.
        images: Vec<DamagedImage>,
    },
    /// Of the images in annotations, another number is selected than the benchmark needs.
    #[error(
        "{found} of {total} images in {path} have an accepted licence, but the benchmark needs {expected}; hint: name the annotations of the dataset with --labels",
        path = path.display()
    )]
    SelectedImages {
        /// The annotations.
        path: PathBuf,
        /// The number of selected images.
        found: usize,
        /// The number of all images.
        total: usize,
        /// The number in the benchmark's file.
        expected: usize,
    },
    /// An image is so thin that resizing it to the sample leaves no pixel.
    #[error(
        "the image {path} of {} x {} pixels is too thin to be resized; hint: download it again",
        size[0], size[1], path = path.display()
    )]
    ThinImage {
        /// The file.
        path: PathBuf,
        /// Width and height in pixels.
        size: [usize; 2],
    },
    /// Annotations cannot be used.
    #[error(transparent)]
    Annotations(#[from] AnnotationError),
    /// Annotations or a calibration list name an image twice, or one outside of the dataset.
    #[error(
        "{path} names the image `{name}`, which is repeated or no plain file name; hint: download or create the file again",
        path = path.display()
    )]
    ImageName {
        /// The annotations or the list.
        path: PathBuf,
        /// The image.
        name: String,
    },
    /// A volume cannot be used.
    #[error(transparent)]
    Volume(#[from] VolumeError),
    /// An utterance cannot be used.
    #[error(transparent)]
    Speech(#[from] SpeechError),
    /// A published file is missing or another one.
    #[error(transparent)]
    Published(#[from] PublishedError),
    /// Questions or vocabulary cannot be used.
    #[error(transparent)]
    Squad(#[from] SquadError),
    /// A file of the dataset cannot be opened.
    #[error("cannot open the dataset {path}", path = path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A line of a table is invalid or cannot be read.
    #[error("{path}, line {line}", path = path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// The line in the unpacked table, from 1.
        line: usize,
        /// The cause.
        #[source]
        source: TableError,
    },
    /// The dataset has another number of samples than its benchmark.
    #[error("{path} has {found} samples, but the benchmark needs {expected}", path = path.display())]
    SampleCount {
        /// The file.
        path: PathBuf,
        /// The number in the benchmark's file.
        expected: usize,
        /// The number in the dataset.
        found: usize,
    },
    /// A sample, the map or a directory cannot be written.
    #[error("cannot write {path}", path = path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The benchmark's samples cannot have the requested form.
    #[error(transparent)]
    Form(#[from] FormError),
    /// A scale is missing for `int8`, or given for another type.
    #[error(
        "samples cannot be converted to {form}: int8 needs a scale from --scale or --calibration-cache, and no other type takes one"
    )]
    Scale {
        /// The requested form.
        form: Form,
    },
    /// The scale cannot be read from a calibration cache.
    #[error("the scale cannot be read")]
    Cache(#[from] ScaleError),
    /// The samples to convert are incomplete.
    #[error(transparent)]
    NotWhole(#[from] NotWhole),
    /// The map of the samples to convert cannot be read.
    #[error("the samples to convert cannot be listed (have they been prepared?)")]
    Map(#[from] ValMapError),
    /// A sample to convert is invalid.
    #[error("the sample {path} cannot be converted", path = path.display())]
    Source {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: NpyError,
    },
    /// An array is invalid.
    #[error("the array {path} cannot be used", path = path.display())]
    Array {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: NpyError,
    },
    /// A manifest cannot be read.
    #[error("the manifest {path} cannot be read; hint: `regatta prep NAME` writes one with the samples", path = path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A line of a manifest is invalid.
    #[error("{path}, line {line}: not `SHA256  DIRECTORY/NAME.npy`", path = path.display())]
    ManifestLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The document of the samples cannot be read.
    #[error("{path} cannot be read; hint: prepare the samples with `regatta prep`", path = path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A manifest does not have a line for each file of the samples.
    #[error("{path} has {lines} lines for {expected} files; hint: copy it again", path = path.display())]
    ManifestLength {
        /// The file.
        path: PathBuf,
        lines: usize,
        /// The number of files.
        expected: usize,
    },
    /// A required file is neither bundled nor below the scratch directory.
    #[error("{file} is not bundled with this program; hint: put it below the scratch directory")]
    NotBundled {
        /// The path below the scratch directory.
        file: String,
    },
}

impl PrepError {
    /// Returns who has to act: the person who asked names other files or settings, or a file, its contents or the disk are damaged.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NoPrepSection { .. }
            | Self::UnsupportedSettings { .. }
            | Self::Form(_)
            | Self::Scale { .. }
            | Self::NoDataset { .. }
            | Self::NoLabels { .. }
            | Self::Labels(_)
            | Self::Label { .. }
            | Self::MissingImages { .. }
            | Self::CalibrationImage { .. }
            | Self::Squad(_)
            | Self::Published(_)
            | Self::Annotations(_)
            | Self::ImageName { .. }
            | Self::Volume(VolumeError::MissingCases { .. } | VolumeError::CalibrationCase { .. })
            | Self::Speech(
                SpeechError::MissingChapters { .. }
                | SpeechError::Utterances { .. }
                | SpeechError::CalibrationUtterance { .. },
            )
            | Self::Cache(_) => ErrorKind::Usage,
            _ => ErrorKind::Internal,
        }
    }

    /// Returns what the person who asked can do, if the message does not say it.
    #[must_use]
    pub const fn hint(&self) -> Option<PrepHint> {
        match self {
            Self::Squad(SquadError::Read { .. }) | Self::Published(PublishedError::Read { .. }) => {
                Some(PrepHint::PublishedFile)
            }
            Self::Annotations(AnnotationError::Read { .. }) => Some(PrepHint::Annotations),
            Self::Labels(_) => Some(PrepHint::Labels),
            _ => None,
        }
    }
}

/// The error for a line of a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The table cannot be unpacked or read: the file is damaged or incomplete, or the disk fails.
    #[error("the table cannot be unpacked from here on")]
    Unpack(#[source] io::Error),
    /// The line is too long for its number of columns.
    #[error("the line is longer than {limit} bytes")]
    TooLong {
        /// The largest length that is read.
        limit: u64,
    },
    /// The table has more rows than the benchmark has samples.
    #[error("the table continues behind the {most} samples of the benchmark")]
    TooManyRows {
        /// The number of samples in the benchmark's file.
        most: usize,
    },
    /// The line has another number of columns than pixels and a label need.
    #[error("{found} columns, but {expected} are needed (pixels and a label)")]
    Columns {
        /// The number of pixels plus one.
        expected: usize,
        /// The number of columns in the line.
        found: usize,
    },
    /// A pixel is not a finite number, or a label is not an integer.
    #[error("column {column} is not a valid {what}: `{text}`")]
    Number {
        /// The column, from 1.
        column: usize,
        /// `number` or `label`.
        what: &'static str,
        /// The column's text, at most 40 characters.
        text: String,
    },
}
