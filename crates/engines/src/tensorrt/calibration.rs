//! Samples for INT8 calibration, found on disk and hashed, for networks with one or several inputs. `on_device` copies
//! them to the device, and TensorRT processes them there.

mod on_device;

use std::{
    fs::{self},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow};
use regatta_fsutil::{
    hash::{hex, sha256_hex},
    regular_file::{self, MAX_TEXT},
};
use regatta_tensorrt::{CalibrationInput, ElementType};
use regatta_types::{benchmark::Dtype, documents::Document as _, npy::NpyHeader, samples::SampleSet};
use sha2::{Digest as _, Sha256};

pub use self::on_device::OnDevice;

/// The element types of samples, and those of networks.
const TYPES: [(Dtype, ElementType); 5] = [
    (Dtype::Float32, ElementType::Fp32),
    (Dtype::Float16, ElementType::Fp16),
    (Dtype::Int8, ElementType::Int8),
    (Dtype::Int32, ElementType::Int32),
    (Dtype::Int64, ElementType::Int64),
];

/// The location of one sample's data.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    file: PathBuf,
    begin: u64,
}

/// One input's part of every sample.
#[derive(Debug)]
struct InputSamples {
    input: CalibrationInput,
    places: Vec<Place>,
}

/// Calibration samples on disk.
#[derive(Debug)]
pub struct Samples {
    /// At least one input. All have the same number of samples.
    inputs: Vec<InputSamples>,
    /// SHA-256 of all samples in order.
    sha256: String,
}

/// Returns whether a calibration is a file of scales, and not samples.
pub fn has_scales(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "cache")
}

/// Returns the SHA-256 by which manifests of engines name a calibration: that of the scales' file, or of all samples.
///
/// # Errors
/// When a file cannot be read, and as [`Samples::find`].
pub fn sha256_of(path: &Path) -> anyhow::Result<String> {
    if has_scales(path) {
        let scales = regular_file::read(path, MAX_TEXT)
            .with_context(|| format!("the calibration cache {} cannot be read", path.display()))?;
        return Ok(sha256_hex(&scales));
    }
    Ok(Samples::find(path, None)?.sha256)
}

impl Samples {
    /// Finds the samples at a path. In a directory, they are in the order of `list` or of their names. In a file, the
    /// first dimension is the sample index. If the directory's `samples.json` names several inputs, it has such a file for
    /// each input, and `list` contains row numbers.
    ///
    /// # Errors
    /// When there are no samples, a sample differs in type or shape, or `prep` has not finished.
    pub fn find(path: &Path, list: Option<&Path>) -> anyhow::Result<Self> {
        let names = if path.is_dir() {
            // Partly prepared samples would give scales from a mix of old and new samples.
            SampleSet::check_whole(path)?;
            input_names(path)?
        } else {
            Vec::new()
        };
        let inputs = if !names.is_empty() {
            let arrays = names.into_iter().map(|name| {
                let file = path.join(format!("{name}.npy"));
                rows(of_file(&file, Some(name))?, list)
            });
            arrays.collect::<anyhow::Result<_>>()?
        } else if path.is_dir() {
            vec![of_directory(&files(path, list)?)?]
        } else {
            vec![rows(of_file(path, None)?, list)?]
        };
        let mut samples = Self {
            inputs,
            sha256: String::new(),
        };
        let (count, first) = (samples.count(), &samples.inputs[0]);
        if count == 0 {
            return Err(anyhow!("{} has no calibration sample", path.display()));
        }
        if let Some(other) = samples.inputs.iter().find(|input| input.places.len() != count) {
            return Err(anyhow!(
                "there are {count} calibration samples in {}, but {} in {}",
                first.places[0].file.display(),
                other.places.len(),
                other.places.first().map_or(path, |place| &place.file).display()
            ));
        }
        samples.sha256 = samples.hash()?;
        Ok(samples)
    }

    /// Returns the number of samples.
    pub fn count(&self) -> usize {
        self.inputs[0].places.len()
    }

    /// Returns the largest batch up to `most` that the samples fill without a rest.
    pub fn batch_up_to(&self, most: u32) -> u32 {
        largest_divisor(self.count(), most)
    }

    /// Returns how many times the samples are read, one time after another, until they fill batches of this size without a rest.
    pub fn repetitions(&self, batch: u32) -> usize {
        repetitions(self.count(), batch as usize)
    }

    /// Returns the SHA-256 of all samples in order, hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    fn hash(&self) -> anyhow::Result<String> {
        let mut hasher = Sha256::new();
        let mut data = Vec::new();
        for number in 0..self.count() {
            for input in &self.inputs {
                data.resize(input.input.sample_bytes, 0);
                read(&input.places[number], &mut data)?;
                hasher.update(&data);
            }
        }
        Ok(hex(&hasher.finalize()))
    }
}

/// Returns the inputs for which a directory has an array, as `regatta prep` writes them for networks with several inputs. Empty if
/// every sample has its own file.
fn input_names(directory: &Path) -> anyhow::Result<Vec<String>> {
    let path = directory.join(SampleSet::FILE);
    let document = match regular_file::read(&path, MAX_TEXT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        document => document.with_context(|| format!("{} cannot be read", path.display()))?,
    };
    let set = SampleSet::from_json(&document)
        .with_context(|| format!("the form of the samples in {} is unknown", directory.display()))?;
    let are_several = set.tensors.len() > 1;
    let names = set.tensors.into_iter().filter_map(|tensor| tensor.name);
    Ok(names.filter(|_| are_several).collect())
}

/// Returns the files that a list names, or all files of the directory by name.
fn files(directory: &Path, list: Option<&Path>) -> anyhow::Result<Vec<PathBuf>> {
    let Some(list) = list else {
        let paths: io::Result<Vec<_>> =
            fs::read_dir(directory).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
        let mut paths =
            paths.with_context(|| format!("cannot read the directory {}", directory.display()))?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "npy"));
        paths.sort();
        return Ok(paths);
    };
    let names = listed(list)?;
    Ok(names
        .iter()
        .map(|name| directory.join(format!("{name}.npy")))
        .collect())
}

/// Returns the first word of every line.
fn listed(list: &Path) -> anyhow::Result<Vec<String>> {
    let text = regular_file::read_text(list)
        .with_context(|| format!("the calibration list {} cannot be read", list.display()))?;
    let words = text
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().next());
    Ok(words.map(str::to_owned).collect())
}

/// Selects the rows that a list names, counted from 0 as in MLCommons' list for BERT. Without a list, selects all rows.
fn rows(all: InputSamples, list: Option<&Path>) -> anyhow::Result<InputSamples> {
    let Some(list) = list else { return Ok(all) };
    let row = |word: &String| {
        let number = word.parse::<usize>().ok();
        let place = number.and_then(|number| all.places.get(number));
        place.cloned().ok_or_else(|| {
            anyhow!(
                "the calibration list {} names `{word}`, but its samples have the numbers 0 to {}",
                list.display(),
                all.places.len().saturating_sub(1)
            )
        })
    };
    let places = listed(list)?.iter().map(row).collect::<anyhow::Result<_>>()?;
    Ok(InputSamples { places, ..all })
}

fn of_directory(files: &[PathBuf]) -> anyhow::Result<InputSamples> {
    let mut places = Vec::with_capacity(files.len());
    let mut first: Option<Vec<u64>> = None;
    for file in files {
        let found = header(file, false)?;
        match &first {
            Some(first) if *first != found.shape => {
                return Err(anyhow!(
                    "the calibration sample {} is {:?}, but the first is {first:?}",
                    file.display(),
                    found.shape
                ));
            }
            Some(_) => {}
            None => first = Some(found.shape),
        }
        places.push(Place {
            file: file.clone(),
            begin: found.begin,
        });
    }
    let sample_bytes = match first {
        Some(shape) => bytes(&shape, ElementType::Fp32)?,
        None => 0,
    };
    Ok(InputSamples {
        input: CalibrationInput {
            name: None,
            element: ElementType::Fp32,
            sample_bytes,
        },
        places,
    })
}

/// Returns the samples in one file. For a network with one input they must be floats. A named array may have its
/// input's type.
fn of_file(file: &Path, name: Option<String>) -> anyhow::Result<InputSamples> {
    let found = header(file, name.is_some())?;
    let Some((&count, sample)) = found.shape.split_first() else {
        return Err(anyhow!("{} has one number, not samples", file.display()));
    };
    let sample_bytes = bytes(sample, found.element)?;
    let place = |number| Place {
        file: file.to_owned(),
        begin: found.begin + number * sample_bytes as u64,
    };
    Ok(InputSamples {
        input: CalibrationInput {
            name,
            element: found.element,
            sample_bytes,
        },
        places: (0..count).map(place).collect(),
    })
}

/// The header of a file.
struct Header {
    element: ElementType,
    shape: Vec<u64>,
    /// Offset of the data.
    begin: u64,
}

fn header(file: &Path, any_type: bool) -> anyhow::Result<Header> {
    let mut opened = regular_file::open(file)
        .with_context(|| format!("the calibration sample {} cannot be read", file.display()))?;
    let header = NpyHeader::read(&mut opened).with_context(|| {
        format!(
            "the calibration sample {} is not a readable .npy file",
            file.display()
        )
    })?;
    let known = TYPES.iter().find(|(dtype, _)| header.is_of(dtype.numpy()));
    let taken = |element: &ElementType| (any_type || *element == ElementType::Fp32) && !header.fortran_order;
    let Some(element) = known.map(|(_, element)| *element).filter(taken) else {
        let expected = if any_type {
            "fp32, fp16, int8, int32 or int64"
        } else {
            "float32 ('<f4')"
        };
        return Err(anyhow!(
            "the calibration sample {} has {header}, but must be {expected} in C order",
            file.display()
        ));
    };
    let begin = opened.stream_position()?;
    Ok(Header {
        element,
        shape: header.shape,
        begin,
    })
}

fn bytes(shape: &[u64], element: ElementType) -> anyhow::Result<usize> {
    let one = element.size() as u64;
    let bytes = shape.iter().try_fold(one, |bytes, dim| bytes.checked_mul(*dim));
    bytes
        .and_then(|bytes| usize::try_from(bytes).ok())
        .filter(|&bytes| bytes > 0)
        .ok_or_else(|| anyhow!("a calibration sample of shape {shape:?} is empty"))
}

fn read(place: &Place, data: &mut [u8]) -> anyhow::Result<()> {
    let file = &place.file;
    let filled = regular_file::open(file).and_then(|mut opened| {
        opened.seek(SeekFrom::Start(place.begin))?;
        opened.read_exact(data)
    });
    filled.with_context(|| format!("the calibration sample {} cannot be read in full", file.display()))
}

fn largest_divisor(count: usize, most: u32) -> u32 {
    let mut sizes = (1..=most).rev();
    sizes
        .find(|&size| count.is_multiple_of(size as usize))
        .unwrap_or(1)
}

fn repetitions(count: usize, batch: usize) -> usize {
    let (mut rest, mut divisor) = (count, batch);
    while rest > 0 {
        (rest, divisor) = (divisor % rest, rest);
    }
    batch / divisor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_in_a_full_batch_and_none_is_read_more_often_than_another() {
        // The published lists have 500 images, and 100 questions.
        for (count, most, batch) in [
            (500, 256, 250),
            (500, 32, 25),
            (100, 128, 100),
            (499, 32, 1),
            (7, 1, 1),
        ] {
            assert_eq!(largest_divisor(count, most), batch, "{count} samples");
        }
        for (count, batch, times) in [(500, 32, 8), (500, 20, 1), (5, 3, 3), (2, 8, 4), (6, 4, 2)] {
            assert_eq!(
                repetitions(count, batch),
                times,
                "{count} samples in batches of {batch}"
            );
        }
    }
}
