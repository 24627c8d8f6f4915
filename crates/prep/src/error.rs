//! What can keep samples from being made.

use std::{io, path::PathBuf};

use regatta_rules::samples::{Form, FormError, NotWhole};

use crate::{npy::NpyFault, scale::ScaleError, val_map::ValMapError};

/// Samples that could not be made. What had been written stays and is taken up by the next try; there is no map file
/// until all samples are there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrepError {
    /// The benchmark's file says nothing on how its samples are made.
    #[error(
        "the file of benchmark {benchmark} has no [prep] section: its samples must be brought ready-made"
    )]
    NoRecipe {
        /// The benchmark.
        benchmark: String,
    },
    /// The benchmark's file asks for what this kind of preparation cannot do.
    #[error("the file of benchmark {benchmark} cannot be followed: {reason}")]
    Recipe {
        /// The benchmark.
        benchmark: String,
        /// Which settings, and why not.
        reason: String,
    },
    /// The dataset cannot be opened.
    #[error("cannot open the dataset {path}", path = path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// A line of the dataset is wrong or cannot be had. Lines count from 1, in the unpacked table.
    #[error("{path}, line {line}", path = path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What is wrong.
        #[source]
        source: TableFault,
    },
    /// The dataset has another number of samples than its benchmark's file says.
    #[error("{path} gives {found} samples where the benchmark has {expected}", path = path.display())]
    SampleCount {
        /// The file.
        path: PathBuf,
        /// As the benchmark's file says.
        expected: usize,
        /// As found.
        found: usize,
    },
    /// A sample, the map or a directory cannot be written.
    #[error("cannot write {path}", path = path.display())]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The samples cannot have that form.
    #[error(transparent)]
    Form(#[from] FormError),
    /// Bytes are made by a scale, and nothing else is.
    #[error(
        "{form} cannot be made so: int8 needs a scale, by --scale or out of a --calibration-cache, and other types take none"
    )]
    Scale {
        /// What was wanted.
        form: Form,
    },
    /// The scale cannot be had.
    #[error("the scale cannot be had")]
    Cache(#[from] ScaleError),
    /// The samples that another form is made of are not whole.
    #[error(transparent)]
    NotWhole(#[from] NotWhole),
    /// The map of the samples that another form is made of does not read.
    #[error("the samples that others are made of cannot be found: have they been prepared?")]
    Map(#[from] ValMapError),
    /// A sample that another form is made of does not do.
    #[error("{path} is no sample to make others of", path = path.display())]
    Source {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: NpyFault,
    },
    /// An array does not do.
    #[error("{path} does not do", path = path.display())]
    Array {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: NpyFault,
    },
    /// A file that should have come with the program did not.
    #[error("{file} does not come with this program: put it below the scratch directory yourself")]
    NotBundled {
        /// The path below the scratch directory.
        file: String,
    },
}

/// What is wrong with a line of a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableFault {
    /// It cannot be unpacked or read: a damaged or incomplete file, or a failing disk.
    #[error("the table cannot be unpacked from here on")]
    Unpack(#[source] io::Error),
    /// Far too long for so many numbers.
    #[error("the line is longer than {limit} bytes")]
    TooLong {
        /// The longest line that is read.
        limit: u64,
    },
    /// Not as many columns as the samples' shape and a label need.
    #[error("{found} columns where {expected} are needed (pixels and a label)")]
    Columns {
        /// Pixels and one.
        expected: usize,
        /// As found.
        found: usize,
    },
    /// A pixel that is no finite number, or a label that is no integer.
    #[error("column {column} is no {what}: `{given}`")]
    Number {
        /// From 1.
        column: usize,
        /// `number` or `label`.
        what: &'static str,
        /// As it stands there, at most 40 characters.
        given: String,
    },
}
