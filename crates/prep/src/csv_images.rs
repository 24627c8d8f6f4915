//! The preparation kind `csv-images`: reads a gzipped table with an image and its label on each line. Writes no samples.

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
};

use flate2::bufread::GzDecoder;
use regatta_fsutil::regular_file;

use crate::error::{PrepError, TableError};

/// The largest length of a number on average over a line. Tables of images need a few characters.
const MAX_NUMBER_LEN: u64 = 64;

/// A row of the table.
#[derive(Debug, PartialEq)]
pub(crate) struct Image {
    /// The row's number, from 0.
    pub(crate) row: usize,
    /// The pixels in the order of the table.
    pub(crate) pixels: Vec<f32>,
    pub(crate) label: i64,
}

/// Reads the rows from `skip_rows` on, at most `most` of them. Checks the rows before as well.
///
/// # Errors
/// [`PrepError::Open`], or [`PrepError::Table`] for the first invalid line, or the first one too many.
pub(crate) fn read(
    path: &Path,
    skip_rows: usize,
    pixels: usize,
    most: usize,
) -> Result<Vec<Image>, PrepError> {
    let file = regular_file::open(path).map_err(|source| PrepError::Open {
        path: path.to_owned(),
        source,
    })?;
    let mut table = BufReader::new(GzDecoder::new(BufReader::new(file)));
    let mut images = Vec::new();
    for row in 0.. {
        let image = read_row(&mut table, row, pixels).map_err(|source| PrepError::Table {
            path: path.to_owned(),
            line: row + 1,
            source,
        })?;
        match image {
            // A small file can unpack to any number of rows.
            Some(_) if images.len() == most => {
                return Err(PrepError::Table {
                    path: path.to_owned(),
                    line: row + 1,
                    source: TableError::TooManyRows { most },
                });
            }
            Some(image) if row >= skip_rows => images.push(image),
            Some(_) => {}
            None => break,
        }
    }
    Ok(images)
}

fn read_row(table: &mut impl BufRead, row: usize, pixels: usize) -> Result<Option<Image>, TableError> {
    let limit = MAX_NUMBER_LEN * (pixels as u64 + 1);
    let mut line = Vec::new();
    table
        .take(limit)
        .read_until(b'\n', &mut line)
        .map_err(TableError::Unpack)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.len() as u64 == limit && !line.ends_with(b"\n") {
        return Err(TableError::TooLong { limit });
    }
    let text = String::from_utf8_lossy(&line);
    let mut columns: Vec<&str> = text.trim_end().split(',').collect();
    let (found, expected) = (columns.len(), pixels + 1);
    let label = match columns.pop() {
        Some(label) if found == expected => label,
        _ => return Err(TableError::Columns { expected, found }),
    };
    let values: Result<Vec<f32>, TableError> = columns
        .iter()
        .enumerate()
        .map(|(index, text)| pixel(index + 1, text))
        .collect();
    let label = label
        .trim()
        .parse()
        .map_err(|_| invalid_number(found, "label", label))?;
    Ok(Some(Image {
        row,
        pixels: values?,
        label,
    }))
}

fn pixel(column: usize, text: &str) -> Result<f32, TableError> {
    text.trim()
        .parse()
        .ok()
        .filter(|value: &f32| value.is_finite())
        .ok_or_else(|| invalid_number(column, "number", text))
}

fn invalid_number(column: usize, what: &'static str, text: &str) -> TableError {
    TableError::Number {
        column,
        what,
        text: text.chars().take(40).collect(),
    }
}
