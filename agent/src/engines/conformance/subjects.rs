//! The engines under test, and how each is loaded.

use std::{
    ffi::c_char,
    fmt, fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use libloading::Library;
use regatta_config::engine_settings::GpuSelection;
use regatta_cuda::{Driver, WaitMode};
use regatta_fsutil::hash::sha256_hex;
use regatta_tensorrt::{
    BuildSettings, CacheEntry, DlaSettings, EngineCache, EngineManifest, InputShape, InstalledTensorRt,
    IoFormat, Precision, ShimDirectories, TensorRt,
};
use regatta_test_support::{fake_tensorrt::FakeTensorrt, fixture::Fixture};
use regatta_types::{
    benchmark::{Benchmark, Dtype},
    documents::EngineKind,
};

use crate::{
    chip::chip,
    engines::{
        EngineError, LoadRequest, Loaded, SequenceBuckets, load,
        sim::SimModel,
        tensorrt::{EngineRequest, Graphs, Installation, UnitRequest},
    },
};

/// An engine with one kind of device use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) kind: EngineKind,
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
pub(crate) fn subjects() -> Vec<Subject> {
    let mut subjects = vec![Subject::of(EngineKind::Null), Subject::of(EngineKind::Sim)];
    if cfg!(feature = "tract") {
        subjects.push(Subject::of(EngineKind::Tract));
    }
    subjects.extend(DeviceUse::ALL.map(|way| Subject {
        kind: EngineKind::Tensorrt,
        way,
    }));
    subjects
}

impl Subject {
    pub(crate) const fn of(kind: EngineKind) -> Self {
        Self {
            kind,
            way: DeviceUse::Copies,
        }
    }

    /// Returns the number of units. Each has the requested number of streams.
    pub(crate) const fn units(&self) -> usize {
        match self.way {
            DeviceUse::LoopedDla | DeviceUse::TwoGpus => 2,
            DeviceUse::Copies | DeviceUse::HostMemory | DeviceUse::FixedBatch => 1,
        }
    }

    /// Returns the largest batch for a requested size, rounded up to whole loops.
    pub(crate) const fn most(&self, requested: usize) -> usize {
        requested.next_multiple_of(self.way.loops())
    }

    /// Returns whether networks with several input types exist for the engine. Other computing engines only have fp32
    /// networks.
    pub(crate) const fn has_types(&self) -> bool {
        matches!(self.kind, EngineKind::Tensorrt)
    }

    pub(crate) fn load(&self, fixture: &Fixture, batch_sizes: &[usize], streams: usize) -> Loaded {
        self.try_load(fixture, batch_sizes, streams).unwrap()
    }

    pub(crate) fn try_load(
        &self,
        fixture: &Fixture,
        batch_sizes: &[usize],
        streams: usize,
    ) -> Result<Loaded, EngineError> {
        self.load_for(&fixture.benchmark(), fixture, "fp32", batch_sizes, streams)
    }

    /// Loads the engine for samples of type `dtype` and, where the engine has types, a network with input type
    /// `element`.
    pub(crate) fn load_typed(
        &self,
        fixture: &Fixture,
        dtype: Dtype,
        element: &str,
    ) -> Result<Loaded, EngineError> {
        let mut benchmark = fixture.benchmark();
        benchmark.model.input_dtype = dtype;
        self.load_for(&benchmark, fixture, element, &[4], 1)
    }

    /// Loads the engine for a benchmark with the fixture's files. `element` is the type of the network's input.
    pub(crate) fn load_for(
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
    pub(crate) fn load_of_images(
        &self,
        benchmark: &Benchmark,
        fixture: &Fixture,
        element: &str,
        batch_sizes: &[usize],
        streams: usize,
        image_sizes: Arc<[[u32; 2]]>,
    ) -> Result<Loaded, EngineError> {
        let largest = batch_sizes.iter().copied().max().unwrap();
        let engine_request = self.engine_request(fixture, element, largest, streams);
        load(&LoadRequest {
            kind: self.kind,
            benchmark,
            model_file: fixture.path(&benchmark.model.file),
            image_sizes,
            volumes: Arc::default(),
            sequences: Arc::default(),
            batch_sizes,
            batch_size_is_request: true,
            takes_any_batch: false,
            streams,
            sim: &quick_sim(),
            tensorrt: &engine_request,
        })
    }

    /// Returns whether sequences can have several lengths.
    pub(crate) const fn has_lengths(&self) -> bool {
        self.kind.computes() && !matches!(self.way, DeviceUse::LoopedDla)
    }

    /// Loads the engine for the fixture's sequences.
    pub(crate) fn load_of_sequences(
        &self,
        fixture: &Fixture,
        batch_sizes: &[usize],
        streams: usize,
        sequences: Arc<SequenceBuckets>,
    ) -> Result<Loaded, EngineError> {
        let benchmark = fixture.benchmark();
        let largest = batch_sizes.iter().copied().max().unwrap();
        let engine_request = self.request_of_sequences(fixture, largest, streams, &sequences);
        load(&LoadRequest {
            kind: self.kind,
            benchmark: &benchmark,
            model_file: fixture.path(&benchmark.model.file),
            image_sizes: Arc::default(),
            volumes: Arc::default(),
            sequences,
            batch_sizes,
            batch_size_is_request: true,
            takes_any_batch: false,
            streams,
            sim: &quick_sim(),
            tensorrt: &engine_request,
        })
    }

    /// As [`engine_request`](Self::engine_request), for the fixture's sequences.
    pub(crate) fn request_of_sequences(
        &self,
        fixture: &Fixture,
        batch: usize,
        streams: usize,
        sequences: &SequenceBuckets,
    ) -> EngineRequest {
        let lengths = match sequences.lengths() {
            [] => &[64],
            lengths => lengths,
        };
        self.engine_request_at(&fixture.benchmark(), fixture, "int32", batch, streams, lengths)
    }

    /// Loads the engine for a benchmark with sliding windows and samples of these sizes. `batch_sizes` are of windows.
    pub(crate) fn load_of_volumes(
        &self,
        benchmark: &Benchmark,
        fixture: &Fixture,
        element: &str,
        batch_sizes: &[usize],
        volumes: Arc<[[usize; 3]]>,
    ) -> Result<Loaded, EngineError> {
        let engine_request = self.engine_request_for(benchmark, fixture, element, batch_sizes[0], 1);
        load(&LoadRequest {
            kind: self.kind,
            benchmark,
            model_file: fixture.path(&benchmark.model.file),
            image_sizes: Arc::default(),
            volumes,
            sequences: Arc::default(),
            batch_sizes,
            batch_size_is_request: true,
            takes_any_batch: false,
            streams: 1,
            sim: &quick_sim(),
            tensorrt: &engine_request,
        })
    }

    /// Returns the request to TensorRT, after an engine for it was stored in the fixture's cache.
    pub(crate) fn engine_request(
        &self,
        fixture: &Fixture,
        element: &str,
        batch: usize,
        streams: usize,
    ) -> EngineRequest {
        self.engine_request_for(&fixture.benchmark(), fixture, element, batch, streams)
    }

    /// As [`engine_request`](Self::engine_request), for a benchmark with the fixture's files.
    fn engine_request_for(
        &self,
        benchmark: &Benchmark,
        fixture: &Fixture,
        element: &str,
        batch: usize,
        streams: usize,
    ) -> EngineRequest {
        self.engine_request_at(benchmark, fixture, element, batch, streams, &[])
    }

    /// As [`engine_request_for`](Self::engine_request_for), with an answer for each token at `lengths`.
    fn engine_request_at(
        &self,
        benchmark: &Benchmark,
        fixture: &Fixture,
        element: &str,
        batch: usize,
        streams: usize,
        lengths: &[usize],
    ) -> EngineRequest {
        let (way, cache) = (self.way, fixture.path("engines"));
        let part = batch.div_ceil(way.loops());
        if self.kind == EngineKind::Tensorrt {
            let plan = FakePlan {
                benchmark,
                element,
                lengths,
            };
            build(&plan, fixture, &cache, part, streams, way);
        }
        let shares_a_stream = matches!(way, DeviceUse::Copies | DeviceUse::TwoGpus);
        let unit = UnitRequest {
            engine: None,
            batch: Some(part),
            streams,
            inference_streams: usize::from(shares_a_stream),
        };
        let (gpu, dla, dla_cores) = match way {
            DeviceUse::LoopedDla => (UnitRequest::default(), unit, vec![0, 1]),
            _ => (unit, UnitRequest::default(), Vec::new()),
        };
        let direct = matches!(way, DeviceUse::HostMemory | DeviceUse::LoopedDla);
        EngineRequest {
            installation: installation(),
            cache,
            plugins: Vec::new(),
            calibration: None,
            precision: None,
            workspace_bytes: None,
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
    pub(crate) fn live_on_device(&self) -> i64 {
        self.query_driver(b"fake_cuda_live")
    }

    /// Returns the number of all allocations on the device so far.
    pub(crate) fn allocations_on_device(&self) -> i64 {
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

/// Returns a modelled accelerator that does not slow down the tests.
fn quick_sim() -> SimModel {
    let mut model = SimModel::default();
    model.board.units = SimModel::units_of("gpu=5+1,dla=7+2");
    model.board.jitter = 0.1;
    model.seed = 7;
    model
}

fn model(fixture: &Fixture) -> PathBuf {
    let model = fixture.path("model.onnx");
    if !model.exists() {
        fs::write(&model, "the fake reads no model").unwrap();
    }
    model
}

/// The fakes and their driver. The driver stays open, because closing it would lose its configuration.
struct FakeDevice {
    fakes: FakeTensorrt,
    driver: Library,
}

/// Returns the fakes, created once per process, with two GPUs.
fn fake_device() -> &'static FakeDevice {
    static STAND_IN: OnceLock<FakeDevice> = OnceLock::new();
    STAND_IN.get_or_init(|| {
        let fakes = FakeTensorrt::new();
        // SAFETY: this is the fake of CUDA's driver, which exports this function with this type.
        let driver = unsafe {
            let driver = Library::new(fakes.cuda().join("libcuda.so.1")).unwrap();
            let has = driver.get::<extern "C" fn(*const c_char)>(b"fake_cuda_faults");
            has.unwrap()(c"devices=2".as_ptr());
            driver
        };
        FakeDevice { fakes, driver }
    })
}

pub(crate) fn installation() -> Installation {
    let fakes = &fake_device().fakes;
    Installation {
        cuda: Some(fakes.cuda().join("libcuda.so.1")),
        tensorrt: Some(fakes.libraries()),
        shims: ShimDirectories::new(vec![fakes.shims()]),
    }
}

/// Returns the fake of TensorRT.
fn tensorrt() -> TensorRt {
    let here = installation();
    let installed = InstalledTensorRt::find(here.tensorrt.as_deref()).unwrap();
    TensorRt::open(&installed, &here.shims).unwrap()
}

/// What the fake's plan is for.
struct FakePlan<'a> {
    benchmark: &'a Benchmark,
    /// The type of the inputs.
    element: &'a str,
    /// The lengths of sequences. Empty for a network that has no answer for each token.
    lengths: &'a [usize],
}

/// Stores one engine in the cache: for batches up to `batch` and `profiles` contexts.
fn build(
    plan: &FakePlan<'_>,
    fixture: &Fixture,
    cache: &Path,
    batch: usize,
    profiles: usize,
    way: DeviceUse,
) {
    let _ = fs::remove_dir_all(cache);
    let is_fixed = matches!(way, DeviceUse::FixedBatch | DeviceUse::LoopedDla);
    let batch = u32::try_from(batch).unwrap();
    let settings = BuildSettings {
        onnx: model(fixture),
        precision: Precision::AsInNetwork,
        batch,
        min_batch: if is_fixed { batch } else { 1 },
        profiles: u32::try_from(profiles).unwrap(),
        workspace_bytes: 0,
        optimization_level: None,
        dla: (way == DeviceUse::LoopedDla).then_some(DlaSettings {
            core: 0,
            gpu_fallback: true,
            sram_bytes: 0,
        }),
        input_shapes: Vec::new(),
        input: IoFormat::default(),
        output: IoFormat::default(),
        timing_cache: Vec::new(),
        calibration_cache: Vec::new(),
    };
    let tensorrt = tensorrt();
    let mut built = tensorrt.build(&settings, &mut |_| true, None).unwrap();
    built.plan = plan_for(&built.plan, plan);
    let settings = BuildSettings {
        input_shapes: plan.input_shapes(),
        ..settings
    };
    let onnx = fs::read(model(fixture)).unwrap();
    let driver = Driver::open_file(&installation().cuda.unwrap()).unwrap();
    let devices = driver.devices().unwrap();
    let entry = CacheEntry {
        manifest: EngineManifest::new(
            &settings,
            sha256_hex(&onnx),
            tensorrt.version(),
            chip(devices.first()),
        ),
        plan_sha256: sha256_hex(&built.plan),
        plan_bytes: built.plan.len() as u64,
        build_seconds: 0.0,
        tensors: Vec::new(),
        placement: built.placement.clone(),
    };
    EngineCache::new(cache.to_owned()).store(&entry, &built).unwrap();
}

impl FakePlan<'_> {
    /// Returns the shapes of all inputs at each length.
    fn input_shapes(&self) -> Vec<InputShape> {
        let lengths = self.lengths.iter();
        let of_length = |&length: &usize| {
            let model = &self.benchmark.model;
            model.inputs().map(move |input| InputShape {
                name: input.name.map(str::to_owned),
                dims: vec![u32::try_from(length).unwrap()],
            })
        };
        lengths.flat_map(of_length).collect()
    }
}

/// Returns the fake's text of a plan, changed to one for a network with the benchmark's inputs.
fn plan_for(text: &[u8], plan: &FakePlan<'_>) -> Vec<u8> {
    let types = ["fp32", "fp16", "int8", "int32"];
    let number = types.iter().position(|name| *name == plan.element).unwrap();
    let model = &plan.benchmark.model;
    let mut lengths = [0; 4];
    lengths[..plan.lengths.len()].copy_from_slice(plan.lengths);
    let [a, b, c, d] = lengths;
    let plan = String::from_utf8(text.to_vec())
        .unwrap()
        .replace("lengths 0 0 0 0", &format!("lengths {a} {b} {c} {d}"))
        .replace("input 0", &format!("input {number}"))
        .replace("inputs 1", &format!("inputs {}", model.inputs().count()));
    let plan = match model.input_shape[..] {
        [channels, height, width] => {
            plan.replace("image 1x8x8", &format!("image {channels}x{height}x{width}"))
        }
        // A window of a volume.
        [_, depth, height, width] => plan.replace("image 1x8x8", &format!("image -{depth}x{height}x{width}")),
        _ => plan,
    };
    plan.into_bytes()
}
