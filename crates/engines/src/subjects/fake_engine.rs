//! The fakes of CUDA's driver and of TensorRT in this process, and engines for them in a cache. The fakes compute what their plan says.

use std::{
    ffi::c_char,
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use libloading::Library;
use regatta_cuda::Driver;
use regatta_fsutil::hash::sha256_hex;
use regatta_tensorrt::{
    BuildOutput, BuildSettings, CacheEntry, CalibrationMethod, DlaSettings, EngineCache, EngineManifest,
    InputShape, InstalledTensorRt, IoFormat, Precision, ShimDirectories, TensorRt,
};
use regatta_test_support::{fake_tensorrt::FakeTensorrt, fixture::Fixture};
use regatta_types::benchmark::Benchmark;

use crate::{chip::chip, tensorrt::Installation};

fn model(fixture: &Fixture) -> PathBuf {
    let model = fixture.path("model.onnx");
    if !model.exists() {
        fs::write(&model, "the fake reads no model").unwrap();
    }
    model
}

/// The fakes and their driver. The driver stays open, because closing it would lose its configuration.
pub(super) struct FakeDevice {
    fakes: FakeTensorrt,
    pub(super) driver: Library,
}

/// Returns the fakes, created once per process, with two GPUs.
pub(super) fn fake_device() -> &'static FakeDevice {
    static FAKE: OnceLock<FakeDevice> = OnceLock::new();
    FAKE.get_or_init(|| {
        let fakes = FakeTensorrt::new();
        fakes.remove_at_exit();
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

/// Returns the fakes of CUDA's driver and of TensorRT, compiled once per process.
pub fn installation() -> Installation {
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

/// The network of a fake plan.
pub(super) struct FakePlan<'a> {
    pub(super) benchmark: &'a Benchmark,
    /// The type of the inputs.
    pub(super) element: &'a str,
    /// The lengths of sequences. Empty for a network that has no answer for each token.
    pub(super) lengths: &'a [usize],
}

pub(super) struct EngineForm {
    /// The largest batch.
    pub(super) batch: usize,
    pub(super) profiles: usize,
    pub(super) has_fixed_batch: bool,
    pub(super) is_for_dla: bool,
    pub(super) precision: Precision,
}

/// Stores one engine in the cache, and removes others.
pub(super) fn build(plan: &FakePlan<'_>, form: &EngineForm, fixture: &Fixture, cache: &Path) {
    let _ = fs::remove_dir_all(cache);
    let settings = settings(&model(fixture), form);
    let tensorrt = tensorrt();
    let mut built = tensorrt.build(&settings, &mut |_| true, None).unwrap();
    built.plan = plan_for(&built.plan, plan);
    let settings = BuildSettings {
        input_shapes: plan.input_shapes(),
        ..settings
    };
    store(&tensorrt, &settings, &built, cache);
}

/// Stores an engine that computes a network, beside others.
pub(super) fn build_network(onnx: &Path, form: &EngineForm, fixture: &Fixture, cache: &Path) {
    let settings = settings(onnx, form);
    let tensorrt = tensorrt();
    let of_pixels = BuildSettings {
        onnx: model(fixture),
        ..settings.clone()
    };
    let mut built = tensorrt.build(&of_pixels, &mut |_| true, None).unwrap();
    // As the fake does with FAKE_TRT_COMPUTES.
    let head = format!(
        "a fake's plan of a network: batch {} to {} profiles {} dla -1 input -1 format -1 scale 0\n",
        settings.min_batch, settings.batch, settings.profiles
    );
    built.plan = [head.into_bytes(), fs::read(onnx).unwrap()].concat();
    store(&tensorrt, &settings, &built, cache);
}

fn settings(onnx: &Path, form: &EngineForm) -> BuildSettings {
    let batch = u32::try_from(form.batch).unwrap();
    BuildSettings {
        onnx: onnx.to_owned(),
        precision: form.precision,
        batch,
        min_batch: if form.has_fixed_batch { batch } else { 1 },
        profiles: u32::try_from(form.profiles).unwrap(),
        workspace_bytes: 0,
        optimization_level: None,
        dla: form.is_for_dla.then_some(DlaSettings {
            core: 0,
            gpu_fallback: true,
            sram_bytes: 0,
        }),
        input_shapes: Vec::new(),
        input: IoFormat::default(),
        output: IoFormat::default(),
        timing_cache: Vec::new(),
        calibration_cache: Vec::new(),
        calibration_method: CalibrationMethod::default(),
    }
}

fn store(tensorrt: &TensorRt, settings: &BuildSettings, built: &BuildOutput, cache: &Path) {
    let onnx = fs::read(&settings.onnx).unwrap();
    let driver = Driver::open_file(&installation().cuda.unwrap()).unwrap();
    let devices = driver.devices().unwrap();
    let entry = CacheEntry {
        manifest: EngineManifest::new(
            settings,
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
    EngineCache::new(cache.to_owned()).store(&entry, built).unwrap();
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
