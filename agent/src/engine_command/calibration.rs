//! Samples for INT8 calibration: found on disk, hashed, and brought to the device batch by batch. What becomes of them is
//! TensorRT's affair.

use std::{
    error::Error,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow};
use regatta_cuda::{Context, DeviceMemory, Driver, HostMemory, Stream};
use regatta_tensorrt::Calibration;
use sha2::{Digest as _, Sha256};

use crate::npy_header::NpyHeader;

/// numpy's name of the type that calibrating takes.
const FLOAT32: &str = "'<f4'";

/// Where the data of one sample lies.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    file: PathBuf,
    begin: u64,
}

/// Samples on disk.
#[derive(Debug)]
pub(super) struct Samples {
    places: Vec<Place>,
    sample_bytes: usize,
    /// SHA-256 of all of them in order.
    sha256: String,
}

impl Samples {
    /// Those of a directory, in the order of `list` or of their names; or of one file whose first dimension counts them.
    ///
    /// # Errors
    /// When there is none, or one is no float32 of the others' shape.
    pub(super) fn find(path: &Path, list: Option<&Path>) -> anyhow::Result<Self> {
        let (places, sample_bytes) = if path.is_dir() {
            of_directory(&files(path, list)?)?
        } else {
            of_file(path)?
        };
        if places.is_empty() {
            return Err(anyhow!("{} holds no calibration sample", path.display()));
        }
        let mut samples = Self {
            places,
            sample_bytes,
            sha256: String::new(),
        };
        samples.sha256 = samples.hash()?;
        Ok(samples)
    }

    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.places.len()
    }

    /// SHA-256 of all of them in order, hexadecimal.
    pub(super) fn sha256(&self) -> &str {
        &self.sha256
    }

    fn hash(&self) -> anyhow::Result<String> {
        let mut hasher = Sha256::new();
        let mut data = vec![0; self.sample_bytes];
        for place in &self.places {
            read(place, &mut data)?;
            hasher.update(&data);
        }
        Ok(hasher
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }
}

/// The files that a list names, or all of the directory by name.
fn files(directory: &Path, list: Option<&Path>) -> anyhow::Result<Vec<PathBuf>> {
    let Some(list) = list else {
        let entries =
            fs::read_dir(directory).with_context(|| format!("cannot look into {}", directory.display()))?;
        let paths: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.path())).collect();
        let mut paths = paths.with_context(|| format!("cannot look into {}", directory.display()))?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "npy"));
        paths.sort();
        return Ok(paths);
    };
    let text = fs::read_to_string(list)
        .with_context(|| format!("the calibration list {} cannot be read", list.display()))?;
    let names = text
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().next());
    Ok(names.map(|name| directory.join(format!("{name}.npy"))).collect())
}

fn of_directory(files: &[PathBuf]) -> anyhow::Result<(Vec<Place>, usize)> {
    let mut places = Vec::with_capacity(files.len());
    let mut first: Option<Vec<u64>> = None;
    for file in files {
        let (shape, begin) = header(file)?;
        match &first {
            Some(first) if *first != shape => {
                return Err(anyhow!(
                    "the calibration sample {} is {shape:?}, but the first is {first:?}",
                    file.display()
                ));
            }
            Some(_) => {}
            None => first = Some(shape),
        }
        places.push(Place {
            file: file.clone(),
            begin,
        });
    }
    Ok((places, bytes(&first.unwrap_or_default())?))
}

fn of_file(file: &Path) -> anyhow::Result<(Vec<Place>, usize)> {
    let (shape, begin) = header(file)?;
    let Some((&count, sample)) = shape.split_first() else {
        return Err(anyhow!("{} holds one number, not samples", file.display()));
    };
    let sample_bytes = bytes(sample)?;
    let place = |number| Place {
        file: file.to_owned(),
        begin: begin + number * sample_bytes as u64,
    };
    Ok(((0..count).map(place).collect(), sample_bytes))
}

/// Shape, and where the data begins.
fn header(file: &Path) -> anyhow::Result<(Vec<u64>, u64)> {
    let mut opened = File::open(file)
        .with_context(|| format!("the calibration sample {} cannot be read", file.display()))?;
    let header = NpyHeader::read(&mut opened).with_context(|| {
        format!(
            "the calibration sample {} is no readable .npy file",
            file.display()
        )
    })?;
    if header.descr != FLOAT32 || header.fortran_order {
        return Err(anyhow!(
            "the calibration sample {} holds {header}, but must be float32 ({FLOAT32}) in C order",
            file.display()
        ));
    }
    let begin = opened.stream_position()?;
    Ok((header.shape, begin))
}

fn bytes(shape: &[u64]) -> anyhow::Result<usize> {
    let bytes = shape.iter().try_fold(4_u64, |bytes, dim| bytes.checked_mul(*dim));
    bytes
        .and_then(|bytes| usize::try_from(bytes).ok())
        .filter(|&bytes| bytes > 0)
        .ok_or_else(|| anyhow!("a calibration sample of shape {shape:?} holds nothing"))
}

fn read(place: &Place, data: &mut [u8]) -> anyhow::Result<()> {
    let file = &place.file;
    let filled = File::open(file).and_then(|mut opened| {
        opened.seek(SeekFrom::Start(place.begin))?;
        opened.read_exact(data)
    });
    filled.with_context(|| format!("the calibration sample {} cannot be read in full", file.display()))
}

/// Samples on their way to the device.
pub(super) struct OnDevice<'a> {
    samples: &'a Samples,
    batch: usize,
    next: usize,
    stream: Stream,
    host: HostMemory,
    device: DeviceMemory,
}

impl<'a> OnDevice<'a> {
    /// Opens CUDA and takes memory for a batch.
    ///
    /// # Errors
    /// When there is no device, or not enough of its memory.
    pub(super) fn new(samples: &'a Samples, batch: usize) -> anyhow::Result<Self> {
        let context: Context = Driver::open()?.context(0)?;
        let bytes = samples.sample_bytes * batch;
        Ok(Self {
            samples,
            batch,
            next: 0,
            stream: Stream::new(&context)?,
            host: HostMemory::new(&context, bytes)?,
            device: DeviceMemory::new(&context, bytes)?,
        })
    }
}

impl Calibration for OnDevice<'_> {
    fn sample_bytes(&self) -> usize {
        self.samples.sample_bytes
    }

    fn next_batch(&mut self) -> Result<Option<u64>, Box<dyn Error + Send + Sync>> {
        let Some(places) = self.samples.places.get(self.next..self.next + self.batch) else {
            return Ok(None);
        };
        for (place, data) in places
            .iter()
            .zip(self.host.bytes_mut().chunks_exact_mut(self.samples.sample_bytes))
        {
            read(place, data)?;
        }
        // SAFETY: both memories live as long as the stream, and nobody touches them before the wait below.
        unsafe {
            self.stream
                .copy_to_device(&self.device, &self.host, self.host.bytes().len())
        }?;
        self.stream.synchronize()?;
        self.next += self.batch;
        Ok(Some(self.device.address()))
    }
}
