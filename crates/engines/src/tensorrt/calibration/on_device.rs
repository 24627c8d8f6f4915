//! Copies calibration samples to the device, batch by batch. Samples that do not fill the batches are repeated from the first one until a batch
//! ends with the last one: TensorRT then sees each sample equally often, and finds the same scales.

use std::error::Error;

use regatta_cuda::{Context, DeviceMemory, Driver, HostMemory, Stream};
use regatta_tensorrt::{CalibrationInput, Calibrator};

use super::{InputSamples, Samples, read};

/// Samples, and memory for one batch.
pub struct OnDevice<'a> {
    samples: &'a Samples,
    batch: usize,
    /// The number of samples that were copied, and of all that will be, with repetitions.
    next: usize,
    end: usize,
    stream: Stream,
    /// The memory for each input of the samples.
    memories: Vec<(HostMemory, DeviceMemory)>,
}

/// The network has an input that the samples do not have.
#[derive(Debug, thiserror::Error)]
#[error("the calibration samples have no values for the network's input {0}")]
struct Nothing(String);

impl<'a> OnDevice<'a> {
    /// Opens CUDA and allocates memory for a batch.
    ///
    /// # Errors
    /// When there is no device, or it has too little memory.
    pub fn new(samples: &'a Samples, batch: u32) -> anyhow::Result<Self> {
        let end = samples.count() * samples.repetitions(batch);
        let batch = batch as usize;
        let context: Context = Driver::open()?.context(0)?;
        let memories = samples.inputs.iter().map(|input| {
            let bytes = input.input.sample_bytes * batch;
            Ok((
                HostMemory::new(&context, bytes)?,
                DeviceMemory::new(&context, bytes)?,
            ))
        });
        Ok(Self {
            samples,
            batch,
            next: 0,
            end,
            stream: Stream::new(&context)?,
            memories: memories.collect::<anyhow::Result<_>>()?,
        })
    }

    /// Returns the device address of the data for the network's input `name`.
    fn address(&self, name: &str) -> Result<u64, Nothing> {
        let fits = |input: &InputSamples| input.input.name.as_deref().is_none_or(|own| own == name);
        let position = self.samples.inputs.iter().position(fits);
        position
            .map(|position| self.memories[position].1.address())
            .ok_or_else(|| Nothing(name.to_owned()))
    }
}

impl Calibrator for OnDevice<'_> {
    fn inputs(&self) -> Vec<CalibrationInput> {
        let inputs = self.samples.inputs.iter();
        inputs.map(|input| input.input.clone()).collect()
    }

    fn next_batch(&mut self, inputs: &[String]) -> Result<Option<Vec<u64>>, Box<dyn Error + Send + Sync>> {
        if self.next >= self.end {
            return Ok(None);
        }
        let count = self.samples.count();
        for (input, (host, device)) in self.samples.inputs.iter().zip(&mut self.memories) {
            let chunks = host.bytes_mut().chunks_exact_mut(input.input.sample_bytes);
            for (number, data) in (self.next..).zip(chunks) {
                read(&input.places[number % count], data)?;
            }
            // SAFETY: both memories outlive the copy, and nothing accesses them before the synchronisation below.
            unsafe { self.stream.copy_to_device(device, host, host.bytes().len()) }?;
        }
        self.stream.synchronize()?;
        self.next += self.batch;
        let addresses = inputs.iter().map(|name| self.address(name));
        Ok(Some(addresses.collect::<Result<_, _>>()?))
    }
}
