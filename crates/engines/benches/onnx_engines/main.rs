//! Measures the processor time that `tract` and `onnxruntime` take for a trained network on one thread, in turns.
//!
//! `cargo bench -p regatta-engines --features tract,onnxruntime --bench onnx_engines`. The network is EfficientNet-Lite0 with ResNet50's samples,
//! and comes from PyPI, as ONNX Runtime does (`REGATTA_ORACLES` names where both are kept). The samples are noise.
//! `REGATTA_BENCH_ROUNDS` (10) sets how often.

#[cfg(not(all(feature = "tract", feature = "onnxruntime")))]
fn main() {}

#[cfg(all(feature = "tract", feature = "onnxruntime"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo bench` says so; test runners that look into every target do not.
    if std::env::args().any(|argument| argument == "--bench") {
        measured::measure()?;
    }
    Ok(())
}

#[cfg(all(feature = "tract", feature = "onnxruntime"))]
mod measured {
    use std::{
        env,
        error::Error,
        path::{Path, PathBuf},
        sync::Arc,
    };

    use regatta_engines::{
        Answers, Batch, Engine, EngineRequest, Input, LoadRequest, SequenceBuckets, configure, load,
    };
    use regatta_test_support::oracle;
    use regatta_types::{
        Scenario, benchmark::Benchmark, documents::EngineKind, engine_settings::EngineSettings,
    };
    use rustix::time::{ClockId, clock_gettime};

    type AnyError = Box<dyn Error>;

    const KINDS: [EngineKind; 2] = [EngineKind::Tract, EngineKind::Onnxruntime];
    const BATCHES: [usize; 2] = [1, 8];

    pub(super) fn measure() -> Result<(), AnyError> {
        let (Some(network), Some(runtime)) = (oracle::efficientnet(), oracle::onnxruntime()) else {
            return Ok(());
        };
        let rounds = env::var("REGATTA_BENCH_ROUNDS").ok();
        let rounds: usize = rounds.and_then(|value| value.parse().ok()).unwrap_or(10);
        let place = tempfile::tempdir()?;
        let file = place.path().join("model.onnx");
        oracle::run(&network, "efficientnet", "network.py", &[file.as_os_str()]);
        let text = include_str!("../../../../configs/benchmarks/resnet50.toml");
        let mut benchmark = Benchmark::from_toml(text)?;
        benchmark.model.sha256 = None;
        let library = runtime.with_file_name("lib").display().to_string();
        let bytes = benchmark.model.sample_bytes().unwrap_or(0);
        for size in BATCHES {
            let mut engines = Vec::new();
            for kind in KINDS {
                engines.push(engine(kind, &benchmark, &file, &library, size)?);
            }
            let samples = noise(bytes * size);
            let (mut times, mut classes) = ([const { Vec::new() }; 2], [const { Vec::new() }; 2]);
            for round in 0..=rounds {
                for (number, engine) in engines.iter_mut().enumerate() {
                    let (milliseconds, answers) = time(engine.as_mut(), size, &samples)?;
                    // The first round allocates.
                    if round > 0 {
                        times[number].push(milliseconds);
                    }
                    classes[number] = answers;
                }
            }
            let same = if classes[0] == classes[1] {
                "the same"
            } else {
                "other"
            };
            let [tract, onnxruntime] = times.map(median);
            println!(
                "batches of {size}: tract {tract:.1} ms, onnxruntime {onnxruntime:.1} ms, ratio {:.2}; {same} classes",
                tract / onnxruntime
            );
        }
        Ok(())
    }

    fn engine(
        kind: EngineKind,
        benchmark: &Benchmark,
        file: &Path,
        library: &str,
        size: usize,
    ) -> Result<Box<dyn Engine>, AnyError> {
        let named = (kind == EngineKind::Onnxruntime).then_some(("onnxruntime_library", library));
        let settings = EngineSettings::parse(kind, named)?;
        let backend = configure(
            kind,
            &EngineRequest {
                settings: &settings,
                scenario: Scenario::Offline,
                model: &benchmark.model,
                scratch: None,
                sends_first_tokens: false,
                files: Path::new("."),
            },
        )?;
        let request = LoadRequest {
            benchmark,
            model_file: PathBuf::from(file),
            image_sizes: Arc::default(),
            volumes: Arc::default(),
            sequences: Arc::new(SequenceBuckets::default()),
            batch_sizes: &[size],
            takes_any_batch: false,
            streams: 1,
        };
        let loaded = load(backend.as_ref(), &request, None)?;
        println!("{}", loaded.description);
        Ok(loaded.engines.into_iter().next().ok_or("no engine")?)
    }

    /// Returns floats from -127 to 127.
    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let value = move |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from((state >> 24) as u8) - 127.5
        };
        (0..bytes / 4).map(value).flat_map(f32::to_le_bytes).collect()
    }

    /// Returns the milliseconds for a batch, and its answers.
    fn time(engine: &mut dyn Engine, size: usize, samples: &[u8]) -> Result<(f64, Vec<u8>), AnyError> {
        let indices: Vec<usize> = (0..size).collect();
        let batch = Batch {
            samples: &indices,
            input: Input::Contiguous(samples),
        };
        let mut answers = Answers::default();
        let begin = thread_milliseconds();
        engine.infer(&batch, &mut answers)?;
        let milliseconds = thread_milliseconds() - begin;
        Ok((milliseconds, answers.iter().flatten().copied().collect()))
    }

    /// Returns the processor time of this thread, on which both engines compute.
    fn thread_milliseconds() -> f64 {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    }

    fn median(mut values: Vec<f64>) -> f64 {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    }
}
