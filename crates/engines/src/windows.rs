//! Volumes of any size with a network for windows: a wrapper of an engine that computes windows. Windows are cut out of the sample, computed
//! in batches, and their outputs blended with a Gaussian; the answer is the class of each voxel.
//!
//! Blending is on the CPU, between two batches of the engine. Everything is allocated when the engine is loaded.

mod blender;
mod gaussian;

use std::{ops::Range, sync::Arc};

use regatta_types::{
    benchmark::{Benchmark, Response, SlidingWindows},
    layout::{Layout, Packing},
};

use self::blender::{Blender, Scores};
use super::{Answers, Batch, Engine, EngineError, Input, LoadRequest, Loaded, ModelMismatch};

/// Loads an engine for windows in this layout with `load_windows`, and wraps each of its streams.
pub(super) fn load(
    request: &LoadRequest<'_>,
    windows: &SlidingWindows,
    layout: Layout,
    load_windows: impl FnOnce(&LoadRequest<'_>) -> Result<Loaded, EngineError>,
) -> Result<Loaded, EngineError> {
    let unfit = |reason: ModelMismatch| EngineError::ModelUnfit {
        file: request.model_file.clone(),
        benchmark: request.benchmark.name.clone(),
        reason,
    };
    let grid = WindowGrid::of(request.benchmark, windows, layout).map_err(&unfit)?;
    let mut of_windows = request.benchmark.clone();
    of_windows.model.response = Response::Raw;
    of_windows.model.windows = None;
    of_windows.model.input_format = layout;
    let loaded = load_windows(&LoadRequest {
        benchmark: &of_windows,
        image_sizes: Arc::clone(&request.image_sizes),
        volumes: Arc::default(),
        sequences: Arc::default(),
        model_file: request.model_file.clone(),
        ..*request
    })?;
    let engines = loaded.engines.into_iter().map(|engine| {
        let windowed = Windowed::new(engine, &grid, windows, &request.volumes, &unfit)?;
        Ok(Box::new(windowed) as Box<dyn Engine>)
    });
    Ok(Loaded {
        description: loaded.description,
        engines: engines.collect::<Result<_, EngineError>>()?,
        // The engine reads windows, not samples.
        shared: None,
    })
}

/// The windows of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WindowGrid {
    /// The voxels of a window along each dimension.
    window: [usize; 3],
    stride: [usize; 3],
    /// The bytes of a voxel.
    element: usize,
    /// The elements of a window for each voxel. Layouts for several channels pad the only one with zeros.
    pitch: usize,
}

impl WindowGrid {
    fn of(benchmark: &Benchmark, windows: &SlidingWindows, layout: Layout) -> Result<Self, ModelMismatch> {
        let model = &benchmark.model;
        let &[1, depth, height, width] = &model.input_shape[..] else {
            return Err(format!(
                "windows have one channel and three dimensions, but its input is {:?}",
                model.input_shape
            )
            .into());
        };
        let window = [depth, height, width];
        let is_cube = depth == height && height == width;
        let has_stride = (0..3).all(|axis| (1..=window[axis]).contains(&windows.stride[axis]));
        if !is_cube
            || !has_stride
            || !(2..=MAX_CLASSES).contains(&windows.classes)
            || windows.deviation <= 0.0
        {
            return Err(
                "[model.windows] needs cubes, a stride from 1 to their side, 2 to 256 classes and a positive deviation"
                    .into(),
            );
        }
        let element = model.input_dtype.size();
        let pitch = match layout.packing(element) {
            Packing::AsItIs => 1,
            Packing::Blocks(of) | Packing::Last(of) => of,
            Packing::Lines(_) => {
                return Err(
                    format!("windows cannot have the layout {layout} that the settings request").into(),
                );
            }
        };
        Ok(Self {
            window,
            stride: windows.stride,
            element,
            pitch,
        })
    }

    const fn voxels(&self) -> usize {
        self.window[0] * self.window[1] * self.window[2]
    }

    /// Returns the bytes of a window in its layout.
    const fn bytes(&self) -> usize {
        self.voxels() * self.pitch * self.element
    }

    /// Returns the number of windows along each dimension of a volume.
    fn counts(&self, volume: [usize; 3]) -> [usize; 3] {
        [0, 1, 2].map(|axis| match volume[axis].checked_sub(self.window[axis]) {
            Some(rest) => rest / self.stride[axis] + 1,
            None => 0,
        })
    }

    /// Returns the beginning of a window by its number. The last dimension is the fastest.
    fn start(&self, [_, rows, columns]: [usize; 3], number: usize) -> [usize; 3] {
        let [depth, row, column] = [number / columns / rows, number / columns % rows, number % columns];
        [
            depth * self.stride[0],
            row * self.stride[1],
            column * self.stride[2],
        ]
    }

    /// Copies a window out of a volume. Padding is left as it is.
    fn cut(&self, sample: &[u8], volume: [usize; 3], start: [usize; 3], window: &mut [u8]) {
        let [_, height, width] = volume;
        let line = self.window[2] * self.element;
        for (number, to) in window.chunks_exact_mut(line * self.pitch).enumerate() {
            let (depth, row) = (
                start[0] + number / self.window[1],
                start[1] + number % self.window[1],
            );
            let from = ((depth * height + row) * width + start[2]) * self.element;
            let from = &sample[from..from + line];
            if self.pitch == 1 {
                to.copy_from_slice(from);
                continue;
            }
            let voxels = from.chunks_exact(self.element);
            for (to, voxel) in to.chunks_exact_mut(self.pitch * self.element).zip(voxels) {
                to[..self.element].copy_from_slice(voxel);
            }
        }
    }
}

/// Classes are answered in a byte.
const MAX_CLASSES: usize = 256;

/// An engine for windows, as an engine for volumes.
struct Windowed {
    engine: Box<dyn Engine>,
    grid: WindowGrid,
    classes: usize,
    /// The size of each sample.
    volumes: Arc<[[usize; 3]]>,
    blender: Blender,
    /// The windows of a batch.
    windows: Vec<u8>,
    /// The places of windows in a batch. To the engine, they are the samples' indices.
    places: Vec<usize>,
    outputs: Answers,
}

impl Windowed {
    /// Wraps an engine. Computes one batch of blank windows, which shows the form of their outputs and gives the engine its buffers.
    ///
    /// # Errors
    /// Returns the engine's error. For unsupported outputs it names the output and the supported shape.
    fn new(
        mut engine: Box<dyn Engine>,
        grid: &WindowGrid,
        windows: &SlidingWindows,
        volumes: &Arc<[[usize; 3]]>,
        unfit: &impl Fn(ModelMismatch) -> EngineError,
    ) -> Result<Self, EngineError> {
        let most = engine.max_batch();
        let windows_of_batch = vec![0; most * grid.bytes()];
        let places: Vec<usize> = (0..most).collect();
        let mut outputs = Answers::default();
        let batch = Batch {
            samples: &places,
            input: Input::Contiguous(&windows_of_batch),
        };
        engine.infer(&batch, &mut outputs)?;
        let found = outputs.iter().next().map_or(0, <[u8]>::len);
        let needed = windows.classes * grid.voxels();
        if found != needed * size_of::<f32>() && found != needed * size_of::<half::f16>() {
            let mismatch = format!(
                "its output has {found} bytes for a window, but {} classes of {:?} voxels are {needed} numbers of 4 or 2 bytes",
                windows.classes, grid.window
            );
            return Err(unfit(mismatch.into()));
        }
        let largest = volumes.iter().map(|[_, height, width]| height * width).max();
        let blender = Blender::new(grid.window, windows, largest.unwrap_or(0)).map_err(unfit)?;
        Ok(Self {
            engine,
            grid: *grid,
            classes: windows.classes,
            volumes: Arc::clone(volumes),
            blender,
            windows: windows_of_batch,
            places,
            outputs,
        })
    }

    /// Computes the windows with these numbers, and blends them into the answer.
    fn add(
        &mut self,
        numbers: Range<usize>,
        counts: [usize; 3],
        volume: [usize; 3],
        sample: &[u8],
        answer: &mut [u8],
    ) -> Result<(), EngineError> {
        let bytes = self.grid.bytes();
        let count = numbers.len();
        for (number, window) in numbers.clone().zip(self.windows.chunks_exact_mut(bytes)) {
            let start = self.grid.start(counts, number);
            self.grid.cut(sample, volume, start, window);
        }
        self.outputs.clear();
        let batch = Batch {
            samples: &self.places[..count],
            input: Input::Contiguous(&self.windows[..count * bytes]),
        };
        self.engine.infer(&batch, &mut self.outputs)?;
        for (number, output) in numbers.zip(self.outputs.iter()) {
            let start = self.grid.start(counts, number);
            self.blender.add(
                start,
                Scores::of(output, self.classes, self.grid.voxels()),
                answer,
            );
        }
        Ok(())
    }
}

impl Engine for Windowed {
    fn max_batch(&self) -> usize {
        1
    }

    fn unit(&self) -> usize {
        self.engine.unit()
    }

    fn unit_name(&self) -> String {
        self.engine.unit_name()
    }

    fn answer_bytes(&self) -> usize {
        let voxels = self.volumes.iter().map(|volume| volume.iter().product());
        voxels.max().unwrap_or(0)
    }

    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
        let (&[sample], Input::Contiguous(data)) = (batch.samples, batch.input) else {
            return Err(EngineError::BatchSize {
                size: batch.samples.len(),
                max: 1,
            });
        };
        let volume = self.volumes.get(sample).copied().unwrap_or_default();
        let counts = self.grid.counts(volume);
        let (voxels, windows) = (volume.iter().product::<usize>(), counts.iter().product::<usize>());
        if data.len() != voxels * self.grid.element || windows == 0 {
            return Err(EngineError::InputSize {
                samples: 1,
                size: data.len(),
                expected: voxels * self.grid.element,
            });
        }
        let answer = answers.add(voxels);
        self.blender.begin(volume);
        for first in (0..windows).step_by(self.places.len()) {
            let last = windows.min(first + self.places.len());
            self.add(first..last, counts, volume, data, answer)?;
        }
        self.blender.finish(answer);
        Ok(())
    }
}
