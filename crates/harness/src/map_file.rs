//! The map file of a dataset: one line per sample, with its name and its label (for classification).
//!
//! The device only needs the names. The coordinator uses the labels, so here they must only be present.

use std::{
    io,
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineProblem {
    /// It has no name.
    #[error("the line is empty")]
    Empty,
    /// It has a name only.
    #[error("the label is missing")]
    NoLabel,
    /// The name is a path outside of the dataset.
    #[error("the name leads out of the dataset's directory")]
    LeadsOut,
}

/// Why a map file is not valid.
#[derive(Debug, thiserror::Error)]
pub enum MapFileError {
    /// The file cannot be read.
    #[error(
        "the map file {} cannot be read; hint: `regatta asset add --benchmark NAME` on the workstation distributes a benchmark's files",
        path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A line does not consist of a name and a label.
    #[error("{} line {line}: {problem}; a line has a sample's name and its label", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        problem: LineProblem,
    },
    /// A line does not have the size of the sample's original image.
    #[error(
        "{} line {line}: the image's width and height are missing; hint: `regatta prep` on the workstation writes them, and `regatta asset add` \
         distributes the map",
        path.display()
    )]
    Size {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
    },
    /// The number of samples differs from the benchmark's.
    #[error("the map file {} names {found} samples, but the benchmark has {expected}", path.display())]
    Count {
        /// The file.
        path: PathBuf,
        /// Number of samples in the file.
        found: usize,
        /// Number of samples in the benchmark's description.
        expected: usize,
    },
}

/// Reads the names of all samples. Their order defines the sample indices.
///
/// # Errors
/// [`MapFileError`] when the file cannot be read, a line is malformed, or the count is not `expected`.
pub(crate) fn read_sample_names(path: &Path, expected: usize) -> Result<Vec<String>, MapFileError> {
    let text = regular_file::read_text(path).map_err(|source| MapFileError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let names = text
        .lines()
        .enumerate()
        .map(|(index, line)| {
            let malformed = |problem| MapFileError::Line {
                path: path.to_owned(),
                line: index + 1,
                problem,
            };
            sample_name(line).map(str::to_owned).map_err(malformed)
        })
        .collect::<Result<Vec<_>, _>>()?;
    if names.len() == expected {
        Ok(names)
    } else {
        Err(MapFileError::Count {
            path: path.to_owned(),
            found: names.len(),
            expected,
        })
    }
}

/// Reads the third and fourth column: the width and height of each sample's original image.
///
/// # Errors
/// [`MapFileError`] when the file cannot be read, or a line has no size.
pub(crate) fn read_image_sizes(path: &Path) -> Result<Vec<[u32; 2]>, MapFileError> {
    let text = regular_file::read_text(path).map_err(|source| MapFileError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let lines = text.lines().enumerate();
    lines
        .map(|(index, line)| {
            let mut sides = line.split_ascii_whitespace().skip(2).map(str::parse::<u32>);
            match (sides.next(), sides.next()) {
                (Some(Ok(width @ 1..)), Some(Ok(height @ 1..))) => Ok([width, height]),
                _ => Err(MapFileError::Size {
                    path: path.to_owned(),
                    line: index + 1,
                }),
            }
        })
        .collect()
}

/// Returns the name in a line. The name must not lead out of the dataset's directory.
fn sample_name(line: &str) -> Result<&str, LineProblem> {
    let mut words = line.split_ascii_whitespace();
    let name = words.next().ok_or(LineProblem::Empty)?;
    words.next().ok_or(LineProblem::NoLabel)?;
    let leads_out = name.starts_with('/') || name.split('/').any(|part| part == "..") || name.contains('\0');
    if leads_out {
        Err(LineProblem::LeadsOut)
    } else {
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The error is the message, with `DIR` for the directory.
    fn read(text: &str, expected: usize) -> Result<Vec<String>, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("val_map.txt");
        fs::write(&path, text).unwrap();
        let place = directory.path().display().to_string();
        read_sample_names(&path, expected).map_err(|error| error.to_string().replace(&place, "DIR"))
    }

    #[test]
    fn names_keep_the_order_of_the_lines() {
        assert_eq!(read("b.JPEG 65\na\t970 extra\n", 2).unwrap(), ["b.JPEG", "a"]);
    }

    #[test]
    fn sizes_of_images_are_read_or_located() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("val_map.txt");
        fs::write(&path, "a.jpg 9 640 480\nb.jpg 4 1 2 more\n").unwrap();
        assert_eq!(read_image_sizes(&path).unwrap(), [[640, 480], [1, 2]]);
        for line in [
            "b.jpg 4",
            "b.jpg 4 640",
            "b.jpg 4 640 0",
            "b.jpg 4 640 -1",
            "b.jpg 4 640 x",
        ] {
            fs::write(&path, format!("a.jpg 9 640 480\n{line}\n")).unwrap();
            let error = read_image_sizes(&path).unwrap_err().to_string();
            assert!(
                error.contains("line 2: the image's width and height are missing; hint:"),
                "{error}"
            );
        }
    }

    #[test]
    fn faults_are_located() {
        let faults: Vec<String> = [
            ("a 1\n\nb 2\n", 2),
            ("a 1\nb\n", 2),
            ("../../etc/x 1\n", 1),
            ("/x 1\n", 1),
            ("a 1\n", 2),
        ]
        .into_iter()
        .map(|(text, expected)| read(text, expected).unwrap_err())
        .collect();
        insta::assert_snapshot!(faults.join("\n"));
    }
}
