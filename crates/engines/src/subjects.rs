//! The engines under test, and how each is loaded.

pub mod fake_engine;
mod modelled;

use std::{
    fmt, fs,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use regatta_cuda::WaitMode;
use regatta_tensorrt::Precision;
use regatta_test_support::{fixture::Fixture, oracle};
use regatta_types::engine_settings::{EngineSettings, GpuSelection};
use regatta_types::{
    Scenario,
    benchmark::{Benchmark, Dtype},
    documents::EngineKind,
};

pub use self::modelled::{sim_units, units_of};
use self::{
    fake_engine::{EngineForm, FakePlan, build, build_network, fake_device, installation},
    modelled::quick_settings,
};
use crate::{
    EngineBackend, EngineError, EngineRequest, LoadRequest, Loaded, SequenceBuckets, configure, load,
    tensorrt::{BuildOptions, Graphs, TensorRtBackend, TensorRtRequest, UnitRequest},
};

/// An engine with one kind of device use.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    pub kind: EngineKind,
    way: DeviceUse,
}

/// How the device is used. Engines without a device have only one variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeviceUse {
    /// Variable batch, copies to and from the device, and one stream for the work of all contexts.
    Copies,
    /// The device works in host memory, with graphs, and threads spin.
    HostMemory,
    /// An engine with a fixed batch size, which is padded, as a graph.
    FixedBatch,
    /// Two DLA cores, each with two batches of its engine in a row.
    LoopedDla,
    /// Two GPUs with separate memory.
    TwoGpus,
}

impl DeviceUse {
    const ALL: [Self; 5] = [
        Self::Copies,
        Self::HostMemory,
        Self::FixedBatch,
        Self::LoopedDla,
        Self::TwoGpus,
    ];

    const fn loops(self) -> usize {
        match self {
            Self::LoopedDla => 2,
            _ => 1,
        }
    }
}

/// Returns all subjects of this build.
pub fn subjects() -> Vec<Subject> {
    let mut subjects = vec![Subject::of(EngineKind::Null), Subject::of(EngineKind::Sim)];
    if cfg!(feature = "tract") {
        subjects.push(Subject::of(EngineKind::Tract));
    }
    if onnxruntime_library().is_some() {
        subjects.push(Subject::of(EngineKind::Onnxruntime));
    }
    subjects.extend(DeviceUse::ALL.map(|way| Subject {
        kind: EngineKind::Tensorrt,
        way,
    }));
    subjects
}

impl Subject {
    /// Returns an engine without a device, or with copies to and from it.
    pub const fn of(kind: EngineKind) -> Self {
        Self {
            kind,
            way: DeviceUse::Copies,
        }
    }

    /// Returns the number of units. Each has the requested number of streams.
    pub const fn units(&self) -> usize {
        match self.way {
            DeviceUse::LoopedDla | DeviceUse::TwoGpus => 2,
            DeviceUse::Copies | DeviceUse::HostMemory | DeviceUse::FixedBatch => 1,
        }
    }

    /// Returns the largest batch for a requested size, rounded up to whole loops.
    pub const fn most(&self, requested: usize) -> usize {
        requested.next_multiple_of(self.way.loops())
    }

    /// Returns whether networks with several input types exist for the engine. Other computing engines only have fp32
    /// networks.
    pub const fn has_types(&self) -> bool {
        matches!(self.kind, EngineKind::Tensorrt)
    }

    /// Loads the engine for the fixture's benchmark.
    ///
    /// # Panics
    /// Panics when it cannot be loaded.
    pub fn load(&self, fixture: &Fixture, batch_sizes: &[usize], streams: usize) -> Loaded {
        self.try_load(fixture, batch_sizes, streams).unwrap()
    }

    /// Loads the engine for the fixture's benchmark.
    ///
    /// # Errors
    /// [`EngineError`] of the engine.
    pub fn try_load(
        &self,
        fixture: &Fixture,
        batch_sizes: &[usize],
        streams: usize,
    ) -> Result<Loaded, EngineError> {
        self.load_for(&fixture.benchmark(), fixture, "fp32", batch_sizes, streams)
    }

    /// Loads the engine for samples of type `dtype` and, where the engine has types, a network with input type
    /// `element`.
    pub fn load_typed(&self, fixture: &Fixture, dtype: Dtype, element: &str) -> Result<Loaded, EngineError> {
        let mut benchmark = fixture.benchmark();
        benchmark.model.input_dtype = dtype;
        self.load_for(&benchmark, fixture, element, &[4], 1)
    }

    /// Loads the engine for a benchmark with the fixture's files. `element` is the type of the network's input.
    pub fn load_for(
        &self,
        benchmark: &Benchmark,
        fixture: &Fixture,
        element: &str,
        batch_sizes: &[usize],
        streams: usize,
    ) -> Result<Loaded, EngineError> {
        self.load_of_images(benchmark, fixture, element, batch_sizes, streams, Arc::default())
    }

    /// As [`load_for`](Self::load_for), with the width and height of each sample's image.
    pub fn load_of_images(
        &self,
        benchmark: &Benchmark,
        fixture: &Fixture,
        element: &str,
        batch_sizes: &[usize],
        streams: usize,
        image_sizes: Arc<[[u32; 2]]>,
    ) -> Result<Loaded, EngineError> {
        let largest = batch_sizes.iter().copied().max().unwrap();
        let tensorrt = self.tensorrt_request(fixture, element, largest, streams);
        let request = LoadRequest {
            image_sizes,
            ..load_request(benchmark, fixture, batch_sizes, streams)
        };
        self.load_with(&request, tensorrt)
    }

    /// Returns whether sequences can have several lengths.
    pub const fn has_lengths(&self) -> bool {
        self.kind.computes() && !matches!(self.way, DeviceUse::LoopedDla)
    }

    /// Loads the engine for the fixture's sequences.
    pub fn load_of_sequences(
        &self,
        fixture: &Fixture,
        batch_sizes: &[usize],
        streams: usize,
        sequences: Arc<SequenceBuckets>,
    ) -> Result<Loaded, EngineError> {
        let benchmark = fixture.benchmark();
        let largest = batch_sizes.iter().copied().max().unwrap();
        let tensorrt = self.request_of_sequences(fixture, largest, streams, &sequences);
        let request = LoadRequest {
            sequences,
            ..load_request(&benchmark, fixture, batch_sizes, streams)
        };
        self.load_with(&request, tensorrt)
    }

    /// As [`tensorrt_request`](Self::tensorrt_request), for the fixture's sequences.
    pub fn request_of_sequences(
        &self,
        fixture: &Fixture,
        batch: usize,
        streams: usize,
        sequences: &SequenceBuckets,
    ) -> TensorRtRequest {
        let lengths = match sequences.lengths() {
            [] => &[64],
            lengths => lengths,
        };
        self.tensorrt_request_at(&fixture.benchmark(), fixture, "int32", batch, streams, lengths)
    }

    /// Loads the engine for a benchmark with sliding windows and samples of these sizes. `batch_sizes` are of windows.
    pub fn load_of_volumes(
        &self,
        benchmark: &Benchmark,
        fixture: &Fixture,
        element: &str,
        batch_sizes: &[usize],
        volumes: Arc<[[usize; 3]]>,
    ) -> Result<Loaded, EngineError> {
        let tensorrt = self.tensorrt_request_for(benchmark, fixture, element, batch_sizes[0], 1);
        let request = LoadRequest {
            volumes,
            ..load_request(benchmark, fixture, batch_sizes, 1)
        };
        self.load_with(&request, tensorrt)
    }

    /// Returns whether models of several networks run on the subject.
    pub const fn has_networks(&self) -> bool {
        self.kind.computes() && !matches!(self.way, DeviceUse::LoopedDla)
    }

    /// Returns the batches with which models of several networks are tested. They take long, so that only the engines that differ most have all.
    pub fn network_batches(&self) -> &'static [usize] {
        match self.way {
            DeviceUse::Copies => &[1, 3, 8],
            DeviceUse::HostMemory => &[8],
            DeviceUse::FixedBatch | DeviceUse::LoopedDla | DeviceUse::TwoGpus => &[3],
        }
    }

    /// Loads a model of several networks, which are in `files`.
    pub fn load_networks(
        &self,
        benchmark: &Benchmark,
        fixture: &Fixture,
        files: &[PathBuf],
        batch: usize,
        streams: usize,
    ) -> Result<Loaded, EngineError> {
        if self.kind == EngineKind::Tensorrt {
            let form = self.engine_form(batch, streams);
            let _ = fs::remove_dir_all(fixture.path("engines"));
            for file in files.iter().filter(|file| file.exists()) {
                build_network(file, &form, fixture, &fixture.path("engines"));
            }
        }
        let tensorrt = self.request(fixture, batch, streams);
        self.load_with(&load_request(benchmark, fixture, &[batch], streams), tensorrt)
    }

    /// Loads a model of several networks with this precision on TensorRT, from engines with a precision each.
    pub fn load_networks_in(
        &self,
        requested: Precision,
        benchmark: &Benchmark,
        fixture: &Fixture,
        files: &[(PathBuf, Precision)],
    ) -> Result<Loaded, EngineError> {
        let _ = fs::remove_dir_all(fixture.path("engines"));
        for (file, precision) in files {
            let form = EngineForm {
                precision: *precision,
                ..self.engine_form(1, 1)
            };
            build_network(file, &form, fixture, &fixture.path("engines"));
        }
        let tensorrt = TensorRtRequest {
            precision: Some(requested),
            ..self.request(fixture, 1, 1)
        };
        self.load_with(&load_request(benchmark, fixture, &[1], 1), tensorrt)
    }

    /// Loads the engine with settings that do not slow down the tests, or with this request to TensorRT.
    ///
    /// # Errors
    /// [`EngineError`] of the engine.
    pub fn load_with(
        &self,
        request: &LoadRequest<'_>,
        tensorrt: TensorRtRequest,
    ) -> Result<Loaded, EngineError> {
        let engine_request = EngineRequest {
            settings: &quick_settings(),
            scenario: Scenario::Offline,
            model: &request.benchmark.model,
            scratch: None,
            sends_first_tokens: false,
            files: std::path::Path::new("."),
        };
        load(self.backend(&engine_request, tensorrt)?.as_ref(), request, None)
    }

    /// Returns the engine with the settings of a request, or, for TensorRT, with this request to the fakes.
    ///
    /// # Errors
    /// [`EngineError`] when this build does not contain the engine.
    pub fn backend(
        &self,
        request: &EngineRequest<'_>,
        tensorrt: TensorRtRequest,
    ) -> Result<Box<dyn EngineBackend>, EngineError> {
        match self.kind {
            EngineKind::Tensorrt => Ok(Box::new(TensorRtBackend::new(tensorrt))),
            EngineKind::Onnxruntime => {
                let library = EngineSettings {
                    onnxruntime_library: onnxruntime_library().map(str::to_owned),
                    ..EngineSettings::default()
                };
                let settings = &request.settings.clone().or(library);
                configure(self.kind, &EngineRequest { settings, ..*request })
            }
            kind => configure(kind, request),
        }
    }

    /// Returns the request to TensorRT, after an engine for it was stored in the fixture's cache.
    pub fn tensorrt_request(
        &self,
        fixture: &Fixture,
        element: &str,
        batch: usize,
        streams: usize,
    ) -> TensorRtRequest {
        self.tensorrt_request_for(&fixture.benchmark(), fixture, element, batch, streams)
    }

    /// As [`tensorrt_request`](Self::tensorrt_request), for a benchmark with the fixture's files.
    fn tensorrt_request_for(
        &self,
        benchmark: &Benchmark,
        fixture: &Fixture,
        element: &str,
        batch: usize,
        streams: usize,
    ) -> TensorRtRequest {
        self.tensorrt_request_at(benchmark, fixture, element, batch, streams, &[])
    }

    /// As [`tensorrt_request_for`](Self::tensorrt_request_for), with an answer for each token at `lengths`.
    fn tensorrt_request_at(
        &self,
        benchmark: &Benchmark,
        fixture: &Fixture,
        element: &str,
        batch: usize,
        streams: usize,
        lengths: &[usize],
    ) -> TensorRtRequest {
        if self.kind == EngineKind::Tensorrt {
            let plan = FakePlan {
                benchmark,
                element,
                lengths,
            };
            build(
                &plan,
                &self.engine_form(batch, streams),
                fixture,
                &fixture.path("engines"),
            );
        }
        self.request(fixture, batch, streams)
    }

    /// Returns the form of this subject's engines.
    fn engine_form(&self, batch: usize, streams: usize) -> EngineForm {
        EngineForm {
            batch: batch.div_ceil(self.way.loops()),
            profiles: streams,
            has_fixed_batch: matches!(self.way, DeviceUse::FixedBatch | DeviceUse::LoopedDla),
            is_for_dla: self.way == DeviceUse::LoopedDla,
            precision: Precision::AsInNetwork,
        }
    }

    /// Returns the request to TensorRT for engines in the fixture's cache.
    fn request(&self, fixture: &Fixture, batch: usize, streams: usize) -> TensorRtRequest {
        let way = self.way;
        let shares_a_stream = matches!(way, DeviceUse::Copies | DeviceUse::TwoGpus);
        let unit = UnitRequest {
            engine: None,
            batch: Some(batch.div_ceil(way.loops())),
            streams,
            inference_streams: usize::from(shares_a_stream),
        };
        let (gpu, dla, dla_cores) = match way {
            DeviceUse::LoopedDla => (UnitRequest::default(), unit, vec![0, 1]),
            _ => (unit, UnitRequest::default(), Vec::new()),
        };
        let direct = matches!(way, DeviceUse::HostMemory | DeviceUse::LoopedDla);
        TensorRtRequest {
            installation: installation(),
            scratch: fixture.scratch().to_owned(),
            cache: fixture.path("engines"),
            builds_missing: false,
            plugins: Vec::new(),
            calibration: None,
            precision: None,
            build: BuildOptions::default(),
            exact_batch: false,
            input_dtype: None,
            input_format: None,
            gpus: match way {
                DeviceUse::TwoGpus => GpuSelection::Named(vec![0, 1]),
                _ => GpuSelection::All.first(),
            },
            gpu,
            dla,
            dla_cores,
            unused_dla: None,
            dla_loops: way.loops(),
            graphs: match way {
                DeviceUse::HostMemory | DeviceUse::FixedBatch => Graphs::Requested,
                DeviceUse::Copies | DeviceUse::LoopedDla | DeviceUse::TwoGpus => Graphs::Never,
            },
            direct_host_access: Some(direct),
            wait: if direct { WaitMode::Spin } else { WaitMode::Block },
        }
    }

    /// Returns the number of live allocations on the device.
    pub fn live_on_device(&self) -> i64 {
        self.query_driver(b"fake_cuda_live")
    }

    /// Returns the number of all allocations on the device so far.
    pub fn allocations_on_device(&self) -> i64 {
        self.query_driver(b"fake_cuda_allocations")
    }

    fn query_driver(&self, question: &[u8]) -> i64 {
        if self.kind != EngineKind::Tensorrt {
            return 0;
        }
        let driver = &fake_device().driver;
        // SAFETY: the fake of CUDA's driver exports these functions with this type.
        unsafe { driver.get::<extern "C" fn() -> i64>(question).unwrap()() }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if self.kind == EngineKind::Tensorrt {
            write!(f, " ({:?})", self.way)?;
        }
        Ok(())
    }
}

/// Returns the request for samples that need no further description.
pub fn load_request<'a>(
    benchmark: &'a Benchmark,
    fixture: &Fixture,
    batch_sizes: &'a [usize],
    streams: usize,
) -> LoadRequest<'a> {
    LoadRequest {
        benchmark,
        model_file: fixture.path(&benchmark.model.file),
        image_sizes: Arc::default(),
        volumes: Arc::default(),
        sequences: Arc::default(),
        batch_sizes,
        takes_any_batch: false,
        streams,
    }
}

/// Returns the directory of the ONNX Runtime that tests use. Without it, or without networks for it, its tests are skipped.
pub fn onnxruntime_library() -> Option<&'static str> {
    static DIRECTORY: OnceLock<Option<String>> = OnceLock::new();
    if !cfg!(all(feature = "onnxruntime", feature = "tract")) {
        return None;
    }
    let find = || Some(oracle::onnxruntime()?.with_file_name("lib").display().to_string());
    DIRECTORY.get_or_init(find).as_deref()
}
