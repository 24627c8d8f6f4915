//! Images by a small Stable Diffusion XL with random weights, whose networks `tools/export-sdxl` writes, beside the pipeline of diffusers on the same
//! weights. Its images were recorded, because PyTorch is large. With `REGATTA_DIFFUSERS` set to a Python that has PyTorch and the reference's
//! diffusers, they are computed again.

use std::{collections::BTreeMap, env, ffi::OsStr, fs, path::PathBuf};

use regatta_tensorrt::Precision;
use regatta_test_support::{counting_allocator::allocations, fixture::Fixture, oracle};
use regatta_types::{
    benchmark::{Benchmark, Diffusion},
    documents::EngineKind,
};
use serde_json::Value;

use super::speech::array;
use crate::{
    Answers, Batch, Engine, EngineError, Input,
    subjects::{Subject, subjects},
};

type Change = fn(&mut Diffusion);

/// The largest difference of a level from 0 to 255.
const BOUND: u8 = 1;
/// The largest share of levels that differ. Values within rounding errors of a half may be rounded either way.
const MAX_DIFFERING: f64 = 0.005;
/// The tokens of a caption.
const TOKENS: usize = 12;

/// The small networks and their captions.
struct SmallDiffusion {
    fixture: Fixture,
    benchmark: Benchmark,
    python: PathBuf,
    /// The tokens of all captions for each text encoder.
    captions: [Vec<i32>; 2],
}

impl SmallDiffusion {
    /// Makes the networks, for images of `steps` steps.
    fn make(steps: usize) -> Option<Self> {
        let python = oracle::onnx()?;
        let text = include_str!("../../../../configs/benchmarks/stable-diffusion-xl.toml");
        let mut benchmark = Benchmark::from_toml(text).unwrap();
        let model = &mut benchmark.model;
        model.input_shape = vec![TOKENS];
        model.further_inputs[0].shape = vec![TOKENS];
        let shipped = model.diffusion.take().unwrap();
        model.diffusion = Some(Diffusion {
            weights: Vec::new(),
            latent_shape: [4, 8, 8],
            image_size: [32, 32],
            text_width: 16 + 24,
            pooled_width: 20,
            time_features: 16,
            vocabulary: 516,
            paddings: [515, 0],
            // "low res"
            negative_prompt: vec![514, 75, 78, 342, 81, 68, 338, 515],
            steps,
            ..shipped
        });
        let mut small = Self {
            fixture: Fixture::new(),
            benchmark,
            python,
            captions: Default::default(),
        };
        let (networks, pipeline) = (small.networks(), small.pipeline());
        fs::create_dir_all(&networks).unwrap();
        small.run("small.py", &["pipeline".as_ref(), pipeline.as_ref()]);
        small.run("small.py", &["samples".as_ref(), networks.as_ref()]);
        small.run(
            "../../../tools/export-sdxl",
            &["--one-file".as_ref(), pipeline.as_ref(), networks.as_ref()],
        );
        small.captions = ["input_ids.npy", "input_ids_2.npy"].map(|name| array(&networks.join(name)));
        Some(small)
    }

    fn run(&self, script: &str, words: &[&OsStr]) -> String {
        oracle::run(&self.python, "diffusion", script, words)
    }

    fn pipeline(&self) -> PathBuf {
        self.fixture.path("pipeline")
    }

    /// Returns the directory of the networks.
    fn networks(&self) -> PathBuf {
        let texts = self.fixture.path(&self.benchmark.model.file);
        texts.parent().unwrap().to_owned()
    }

    fn network_files(&self) -> Vec<PathBuf> {
        let files = self.benchmark.model.networks();
        files.iter().map(|file| self.fixture.path(file)).collect()
    }

    fn load(&self, subject: &Subject, batch: usize) -> Result<Vec<Box<dyn Engine>>, EngineError> {
        let files = self.network_files();
        let loaded = subject.load_networks(&self.benchmark, &self.fixture, &files, batch, 1);
        loaded.map(|loaded| loaded.engines)
    }

    /// Returns samples as a batch has them: the tokens for both encoders, one after the other.
    fn arena(&self, indices: &[usize]) -> Vec<u8> {
        let tokens = indices.iter().flat_map(|index| {
            let of_encoder = |captions: &Vec<i32>| captions[index * TOKENS..][..TOKENS].to_vec();
            self.captions.iter().flat_map(of_encoder).collect::<Vec<i32>>()
        });
        tokens.flat_map(i32::to_le_bytes).collect()
    }

    fn images(&self, engine: &mut dyn Engine, indices: &[usize]) -> Vec<Vec<u8>> {
        let (arena, mut answers) = (self.arena(indices), Answers::default());
        infer(engine, indices, &arena, &mut answers).unwrap();
        answers.iter().map(<[u8]>::to_vec).collect()
    }

    /// Checks that a changed benchmark is refused, with `expected` in the error.
    fn check_refused(&mut self, kind: EngineKind, change: impl FnOnce(&mut Benchmark), expected: &str) {
        let shipped = self.benchmark.clone();
        change(&mut self.benchmark);
        let error = chain(self.load(&Subject::of(kind), 1).err().unwrap());
        assert!(error.contains(expected), "{error}");
        self.benchmark = shipped;
    }
}

fn infer(
    engine: &mut dyn Engine,
    indices: &[usize],
    arena: &[u8],
    answers: &mut Answers,
) -> Result<(), EngineError> {
    let batch = Batch {
        samples: indices,
        input: Input::Contiguous(arena),
    };
    engine.infer(&batch, answers)
}

fn chain(error: EngineError) -> String {
    format!("{:#}", anyhow::Error::from(error))
}

type Images = BTreeMap<usize, Vec<Vec<u8>>>;

/// Returns the images in the output of `images.py`, by their number of steps.
fn parse(text: &str) -> Images {
    let mut recorded: Value = serde_json::from_str(text).unwrap();
    let images: BTreeMap<usize, Vec<String>> = serde_json::from_value(recorded["images"].take()).unwrap();
    let decode = |image: &String| {
        let digits = image.as_bytes().as_chunks::<2>().0.iter();
        let bytes = digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
        bytes.collect::<Vec<u8>>()
    };
    let decoded = images
        .iter()
        .map(|(steps, images)| (*steps, images.iter().map(decode).collect()));
    decoded.collect()
}

fn recorded() -> Images {
    let images = parse(include_str!("../../../../tests/oracles/diffusion/images.json"));
    // Otherwise the tests would show little.
    for image in images.values().flatten() {
        let (least, most) = (image.iter().min().unwrap(), image.iter().max().unwrap());
        let ends = image.iter().filter(|level| [0, 255].contains(*level)).count();
        assert!(
            most - least > 100 && ends < image.len() / 5,
            "{least} to {most}, {ends} at an end"
        );
    }
    assert!(differing(&images[&6][0], &images[&6][1]) > 0.5);
    images
}

/// Returns the share of levels that differ.
fn differing(one: &[u8], other: &[u8]) -> f64 {
    assert_eq!(one.len(), other.len());
    let count = one.iter().zip(other).filter(|(one, other)| one != other).count();
    count as f64 / one.len() as f64
}

fn assert_near(ours: &[u8], theirs: &[u8], what: &str) {
    let share = differing(ours, theirs);
    let pairs = ours.iter().zip(theirs);
    let largest = pairs.map(|(one, other)| one.abs_diff(*other)).max().unwrap();
    println!("{what}: {share:.4} of the levels differ, by {largest} at most");
    assert!(largest <= BOUND && share <= MAX_DIFFERING, "{what}");
}

/// Compares images with those of diffusers, on engines of this kind.
fn compare_on(kind: EngineKind) {
    let theirs = recorded();
    let Some(small) = SmallDiffusion::make(6) else {
        return;
    };
    let of_kind = |subject: &Subject| subject.kind == kind && subject.has_networks();
    for subject in subjects().into_iter().filter(of_kind) {
        for &batch in subject.network_batches() {
            let engines = small.load(&subject, batch).map_err(anyhow::Error::from);
            let mut engines = engines.unwrap_or_else(|error| panic!("{subject}: {error:#}"));
            let engine = engines[0].as_mut();
            assert_eq!((engine.max_batch(), engine.answer_bytes()), (batch, 32 * 32 * 3));
            // A complete batch, and then a smaller one with other captions.
            let first: Vec<usize> = (0..4).cycle().take(batch).collect();
            for indices in [&first[..], &[3]] {
                for (index, ours) in indices.iter().zip(small.images(engine, indices)) {
                    let what = format!("{subject}, caption {index}, batches of {batch}");
                    assert_near(&ours, &theirs[&6][*index], &what);
                }
            }
            if batch == 3 {
                check_allocations(&small, &subject, engine);
            }
            drop(engines);
            assert_eq!(subject.live_on_device(), 0, "{subject}");
        }
    }
}

/// Checks that later batches allocate nothing. tract allocates within its library.
fn check_allocations(small: &SmallDiffusion, subject: &Subject, engine: &mut dyn Engine) {
    if subject.kind == EngineKind::Tract {
        return;
    }
    let (indices, mut answers) = ([0, 1, 2], Answers::default());
    let arena = small.arena(&indices);
    answers.reserve(indices.len(), engine.answer_bytes());
    // Asking the device allocates memory.
    let on_device = subject.allocations_on_device();
    let on_host = allocations();
    for _ in 0..2 {
        answers.clear();
        infer(engine, &indices, &arena, &mut answers).unwrap();
    }
    assert_eq!(allocations(), on_host, "{subject}");
    assert_eq!(subject.allocations_on_device(), on_device, "{subject}");
}

#[cfg(feature = "tract")]
#[test]
fn images_on_the_cpu_are_those_of_diffusers_in_every_batch() {
    compare_on(EngineKind::Tract);
}

#[cfg(all(feature = "tract", feature = "onnxruntime"))]
#[test]
fn images_on_onnx_runtime_are_those_of_diffusers_in_every_batch() {
    compare_on(EngineKind::Onnxruntime);
}

#[test]
fn images_on_tensorrt_are_those_of_diffusers_in_every_batch() {
    compare_on(EngineKind::Tensorrt);
}

#[cfg(feature = "tract")]
#[test]
fn images_of_the_official_number_of_steps_are_those_of_diffusers() {
    let theirs = recorded();
    let Some(small) = SmallDiffusion::make(20) else {
        return;
    };
    let mut engines = small.load(&Subject::of(EngineKind::Tract), 1).unwrap();
    let ours = small.images(engines[0].as_mut(), &[0]);
    assert_near(&ours[0], &theirs[&20][0], "20 steps");
}

#[test]
fn recorded_images_are_those_that_diffusers_computes() {
    let Some(python) = env::var_os("REGATTA_DIFFUSERS").map(PathBuf::from) else {
        return;
    };
    let Some(small) = SmallDiffusion::make(6) else {
        return;
    };
    let (pipeline, networks) = (small.pipeline(), small.networks());
    let printed = oracle::run(
        &python,
        "diffusion",
        "images.py",
        &[pipeline.as_ref(), networks.as_ref()],
    );
    let computed = parse(&printed);
    let recorded = recorded();
    assert_eq!(
        computed.keys().collect::<Vec<_>>(),
        recorded.keys().collect::<Vec<_>>()
    );
    for (steps, images) in &recorded {
        for (one, other) in computed[steps].iter().zip(images) {
            assert_near(one, other, &format!("{steps} steps"));
        }
    }
}

#[cfg(feature = "tract")]
#[test]
fn weights_in_files_beside_the_networks_make_the_same_images() {
    let Some(mut small) = SmallDiffusion::make(6) else {
        return;
    };
    let subject = Subject::of(EngineKind::Tract);
    let before = small.images(small.load(&subject, 1).unwrap()[0].as_mut(), &[2]);
    let sizes = |small: &SmallDiffusion| {
        let files = small.network_files().into_iter();
        files
            .map(|file| fs::metadata(file).unwrap().len())
            .collect::<Vec<u64>>()
    };
    let complete = sizes(&small);
    let (pipeline, networks) = (small.pipeline(), small.networks());
    small.run(
        "../../../tools/export-sdxl",
        &[pipeline.as_ref(), networks.as_ref()],
    );
    let apart = sizes(&small);
    assert!(
        complete
            .iter()
            .zip(&apart)
            .all(|(complete, apart)| apart < complete),
        "{apart:?}"
    );
    assert_eq!(
        small.images(small.load(&subject, 1).unwrap()[0].as_mut(), &[2]),
        before
    );
    let names = [
        "text_encoders.weights",
        "denoiser.weights",
        "image_decoder.weights",
    ];
    let diffusion = small.benchmark.model.diffusion.as_mut().unwrap();
    diffusion.weights = names.map(str::to_owned).to_vec();
    let files = small.benchmark.model.files();
    assert!(
        files.iter().all(|file| small.fixture.path(file).is_file()),
        "{files:?}"
    );
}

#[cfg(feature = "tract")]
#[test]
fn invalid_diffusion_models_and_captions_are_refused() {
    let Some(mut small) = SmallDiffusion::make(6) else {
        return;
    };
    let mut engines = small.load(&Subject::of(EngineKind::Tract), 2).unwrap();
    let engine = engines[0].as_mut();
    // The warm-up has blank samples.
    let blank = vec![0; 2 * TOKENS * 4];
    infer(engine, &[0], &blank, &mut Answers::default()).unwrap();
    let mut arena = small.arena(&[0, 1]);
    arena[4..8].copy_from_slice(&516_i32.to_le_bytes());
    let error = chain(infer(engine, &[0, 1], &arena, &mut Answers::default()).unwrap_err());
    assert!(
        error.contains("a caption has the token 516, but there are 516 tokens"),
        "{error}"
    );
    let cases: [(Change, &str); 8] = [
        (|it| it.steps = 0, "[model.diffusion]: `steps` is 0: use 1 to"),
        (
            |it| it.text_width = 41,
            "its network of text encoders has 1000 values, but 1024 are needed",
        ),
        (
            |it| it.image_size = [64, 64],
            "its image decoder has 3072 values, but 12288 are needed",
        ),
        (|it| it.time_features = 18, "it accepts float32 ["),
        (
            |it| it.latent_shape = [4, 4, 16],
            "latents.npy does not fit the benchmark stable-diffusion-xl: it has '<f4' (1, 4, 8, 8), but '<f4' (1, 4, 4, 16) is needed",
        ),
        (
            |it| it.latents = "other.npy".to_owned(),
            "other.npy cannot be read",
        ),
        (
            |it| it.denoiser = "other.onnx".to_owned(),
            "other.onnx cannot be read",
        ),
        (
            |it| it.image_decoder = "denoiser.onnx".to_owned(),
            "denoiser.onnx",
        ),
    ];
    for (change, expected) in cases {
        small.check_refused(
            EngineKind::Tract,
            |benchmark| change(benchmark.model.diffusion.as_mut().unwrap()),
            expected,
        );
    }
    small.check_refused(
        EngineKind::Tract,
        |benchmark| benchmark.model.further_inputs.clear(),
        "needs two inputs: the tokens for each text encoder",
    );
}

#[test]
fn tensorrt_computes_the_image_decoder_in_single_precision() {
    let Some(small) = SmallDiffusion::make(6) else {
        return;
    };
    let subject = Subject::of(EngineKind::Tensorrt);
    let load = |of_decoder: Precision| {
        let files = small.network_files();
        let precisions = [Precision::Fp16, Precision::Fp16, of_decoder];
        let files: Vec<_> = files.into_iter().zip(precisions).collect();
        subject.load_networks_in(Precision::Fp16, &small.benchmark, &small.fixture, &files)
    };
    load(Precision::AsInNetwork).map_err(chain).unwrap();
    let error = chain(load(Precision::Fp16).err().unwrap());
    assert!(
        error.contains("1 engine of this model is in fp16, but the network's own precision was requested"),
        "{error}"
    );
}

#[test]
fn diffusion_models_unsupported_by_tensorrt_are_refused() {
    let Some(mut small) = SmallDiffusion::make(6) else {
        return;
    };
    let cases: [(Change, &str); 2] = [
        (
            |it| it.text_width = 41,
            "its network of text encoders has 1000 values, but 1024 are needed",
        ),
        (
            |it| it.time_features = 18,
            "denoiser.onnx does not fit the benchmark stable-diffusion-xl: its engine takes fp32 [1, 16] time, but a sample is fp32 linear [18] time",
        ),
    ];
    for (change, expected) in cases {
        small.check_refused(
            EngineKind::Tensorrt,
            |benchmark| change(benchmark.model.diffusion.as_mut().unwrap()),
            expected,
        );
    }
}
