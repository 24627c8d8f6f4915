//! The engines that are put to the test, and how each is loaded.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use libloading::Library;
use regatta_cuda::{Driver, Wait};
use regatta_rules::{benchmark::Dtype, documents::EngineKind};
use regatta_tensorrt::{
    BuildSettings, Cache, Entry, Installed, Io, Manifest, Precision, Shims, TensorRt, sha256_of,
};

use crate::{
    engine_command::chip,
    engines::{
        EngineError, LoadRequest, Loaded, load,
        sim::SimModel,
        tensorrt::{Gpus, Graphs, Installation, UnitWish, Wish},
    },
    fixture::Fixture,
    twins::Twins,
};

/// An engine, in one of the ways in which it works.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) kind: EngineKind,
    /// `tensorrt`: whether the device works in host memory, by graphs.
    direct: bool,
}

/// All of this build.
pub(crate) fn subjects() -> Vec<Subject> {
    let mut subjects = vec![Subject::of(EngineKind::Null), Subject::of(EngineKind::Sim)];
    if cfg!(feature = "tract") {
        subjects.push(Subject::of(EngineKind::Tract));
    }
    subjects.push(Subject::of(EngineKind::Tensorrt));
    subjects.push(Subject {
        kind: EngineKind::Tensorrt,
        direct: true,
    });
    subjects
}

impl Subject {
    pub(crate) const fn of(kind: EngineKind) -> Self {
        Self { kind, direct: false }
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
        self.load_with(fixture, Dtype::Float32, "fp32", batch_sizes, streams)
    }

    /// With samples of a type and an engine that takes another; `None` where the engine has no such.
    pub(crate) fn load_typed(&self, fixture: &Fixture, dtype: Dtype, element: &str) -> Option<Loaded> {
        let has_types = self.kind == EngineKind::Tensorrt;
        has_types.then(|| self.load_with(fixture, dtype, element, &[4], 1).unwrap())
    }

    /// Over the fixture's benchmark of three inputs; `None` where the engine looks at none.
    pub(crate) fn load_three_inputs(
        &self,
        fixture: &Fixture,
        batch: usize,
        streams: usize,
    ) -> Option<Loaded> {
        let computes = self.kind.computes();
        computes.then(|| {
            self.load_with(fixture, Dtype::Int32, "int32", &[1, batch], streams)
                .unwrap()
        })
    }

    fn load_with(
        &self,
        fixture: &Fixture,
        dtype: Dtype,
        element: &str,
        batch_sizes: &[usize],
        streams: usize,
    ) -> Result<Loaded, EngineError> {
        let mut benchmark = fixture.benchmark();
        benchmark.model.input_dtype = dtype;
        let largest = batch_sizes.iter().copied().max().unwrap();
        let wish = self.wish(fixture, element, largest, streams);
        load(&LoadRequest {
            kind: self.kind,
            benchmark: &benchmark,
            model_file: model(fixture),
            batch_sizes,
            batch_size_is_wish: true,
            takes_any_batch: false,
            streams,
            sim: &quick_sim(),
            tensorrt: &wish,
        })
    }

    /// What is asked of TensorRT, with an engine for it in the fixture's cache.
    pub(crate) fn wish(&self, fixture: &Fixture, element: &str, batch: usize, streams: usize) -> Wish {
        let cache = fixture.path("engines");
        if self.kind == EngineKind::Tensorrt {
            build(fixture, &cache, element, batch, streams);
        }
        let unit = |streams| UnitWish {
            engine: None,
            batch: Some(batch),
            streams,
            inference_streams: if self.direct { 0 } else { 1 },
        };
        Wish {
            installation: installation(),
            cache,
            precision: None,
            input_dtype: None,
            input_format: None,
            gpus: Gpus::All.first(),
            gpu: unit(streams),
            dla: unit(0),
            dla_cores: Vec::new(),
            dla_loops: 1,
            graphs: if self.direct {
                Graphs::Wanted
            } else {
                Graphs::Never
            },
            direct_host_access: Some(self.direct),
            wait: if self.direct { Wait::Spin } else { Wait::Block },
        }
    }

    /// What of the device nobody has given back.
    pub(crate) fn live_on_device(&self) -> i64 {
        self.ask_driver(b"twin_cuda_live")
    }

    /// Memories that were ever asked for on the device.
    pub(crate) fn allocations_on_device(&self) -> i64 {
        self.ask_driver(b"twin_cuda_allocations")
    }

    fn ask_driver(&self, question: &[u8]) -> i64 {
        if self.kind != EngineKind::Tensorrt {
            return 0;
        }
        // SAFETY: the twin of CUDA's driver, and functions of its own of this type.
        unsafe {
            let driver = Library::new(twins().cuda().join("libcuda.so.1")).unwrap();
            driver.get::<extern "C" fn() -> i64>(question).unwrap()()
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = if self.direct { " in host memory" } else { "" };
        write!(f, "{}{way}", self.kind)
    }
}

/// A modelled accelerator that does not hold up the tests.
fn quick_sim() -> SimModel {
    let mut model = SimModel::default();
    model.board.units = SimModel::parse_units("gpu=5+1,dla=7+2").unwrap();
    model.board.jitter = 0.1;
    model.seed = 7;
    model
}

fn model(fixture: &Fixture) -> PathBuf {
    let model = fixture.path("model.onnx");
    if !model.exists() {
        fs::write(&model, "the twin reads no model").unwrap();
    }
    model
}

/// Made once per process.
fn twins() -> &'static Twins {
    static TWINS: OnceLock<Twins> = OnceLock::new();
    TWINS.get_or_init(Twins::new)
}

pub(crate) fn installation() -> Installation {
    Installation {
        cuda: Some(twins().cuda().join("libcuda.so.1")),
        tensorrt: Some(twins().libraries()),
        shims: Shims::new(vec![twins().shims()]),
    }
}

/// Leaves one engine in the cache: of batches up to `batch`, for so many contexts, with an input of this type.
fn build(fixture: &Fixture, cache: &Path, element: &str, batch: usize, profiles: usize) {
    let _ = fs::remove_dir_all(cache);
    let settings = BuildSettings {
        onnx: model(fixture),
        precision: Precision::AsInNetwork,
        batch: u32::try_from(batch).unwrap(),
        min_batch: 1,
        profiles: u32::try_from(profiles).unwrap(),
        workspace_bytes: 0,
        optimization_level: None,
        dla: None,
        input_shapes: Vec::new(),
        input: Io::default(),
        output: Io::default(),
        timing_cache: Vec::new(),
        calibration_cache: Vec::new(),
    };
    let installed = Installed::find(Some(&twins().libraries())).unwrap();
    let tensorrt = TensorRt::open(&installed, &Shims::new(vec![twins().shims()])).unwrap();
    let mut built = tensorrt.build(&settings, &mut |_| true, None).unwrap();
    let types = ["fp32", "fp16", "int8", "int32"];
    let number = types.iter().position(|name| *name == element).unwrap();
    let plan = String::from_utf8(built.plan).unwrap();
    let inputs = fixture.benchmark().model.inputs().count();
    built.plan = plan
        .replace("input 0", &format!("input {number}"))
        .replace("inputs 1", &format!("inputs {inputs}"))
        .into_bytes();
    let onnx = fs::read(model(fixture)).unwrap();
    let driver = Driver::open_file(&installation().cuda.unwrap()).unwrap();
    let devices = driver.devices().unwrap();
    let entry = Entry {
        manifest: Manifest::new(
            &settings,
            sha256_of(&onnx),
            tensorrt.version(),
            chip(devices.first()),
        ),
        plan_sha256: sha256_of(&built.plan),
        plan_bytes: built.plan.len() as u64,
        build_seconds: 0.0,
        tensors: Vec::new(),
        placement: built.placement.clone(),
    };
    Cache::new(cache.to_owned()).keep(&entry, &built).unwrap();
}
