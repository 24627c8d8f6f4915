//! Tests of the engine beside the conformance tests: libraries and networks that cannot be used, settings, and answers beside tract's.

use std::{fs, path::Path, process::Command};

use regatta_test_requirements::program;
use regatta_types::{Scenario, documents::EngineKind, engine_settings::EngineSettings};

use crate::{EngineError, EngineRequest, configure};

/// Returns the error of a configuration with these settings, with its causes.
fn refused(settings: &[(&str, &str)]) -> String {
    let settings = EngineSettings::parse(EngineKind::Onnxruntime, settings.iter().copied()).unwrap();
    let fixture = regatta_test_support::fixture::Fixture::new();
    let request = EngineRequest {
        settings: &settings,
        scenario: Scenario::Offline,
        model: &fixture.benchmark().model,
        scratch: None,
        sends_first_tokens: false,
        files: Path::new("."),
    };
    let error: EngineError = configure(EngineKind::Onnxruntime, &request).err().unwrap();
    format!("{:#}", anyhow::Error::from(error))
}

#[test]
fn a_file_that_is_missing_or_not_a_library_is_refused_with_the_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("libonnxruntime.so.1.23.2");
    fs::write(&text, "not a library").unwrap();
    for (path, expected) in [
        (
            "/nowhere",
            "/nowhere neither is nor contains a file libonnxruntime.so",
        ),
        (
            directory.path().to_str().unwrap(),
            "libonnxruntime.so.1.23.2 is not ONNX Runtime's library",
        ),
        (
            text.to_str().unwrap(),
            "libonnxruntime.so.1.23.2 is not ONNX Runtime's library",
        ),
    ] {
        let error = refused(&[("onnxruntime_library", path)]);
        assert!(error.contains(expected), "{error}");
        assert!(
            error.contains("pip install onnxruntime") && !error.contains('\n'),
            "{error}"
        );
    }
}

/// A library that answers as ONNX Runtime 1.16 does, and one without the function.
#[test]
fn another_library_and_an_old_one_are_refused() {
    let Some(compiler) = program("cc", "gcc") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let compile = |name: &str, code: &str| {
        let (source, library) = (directory.path().join("source.c"), directory.path().join(name));
        fs::write(&source, code).unwrap();
        let mut command = Command::new(&compiler);
        command
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(&source);
        assert!(command.status().unwrap().success());
        library.to_str().unwrap().to_owned()
    };
    let other = compile("libother.so", "int nothing(void) { return 0; }");
    let error = refused(&[("onnxruntime_library", &other)]);
    assert!(
        error.contains("libother.so is not ONNX Runtime's library for this machine"),
        "{error}"
    );
    assert!(error.contains("OrtGetApiBase"), "{error}");
    let code = "struct base { const void *(*api)(unsigned); const char *(*version)(void); };\n\
        static const void *api(unsigned number) { return 0; }\n\
        static const char *version(void) { return VERSION; }\n\
        static struct base base = {api, version};\n\
        const struct base *OrtGetApiBase(void) { return &base; }\n";
    for version in ["1.16.3", "0.5.0"] {
        let library = compile(
            &format!("libold-{version}.so"),
            &code.replace("VERSION", &format!("\"{version}\"")),
        );
        let error = refused(&[("onnxruntime_library", &library)]);
        let expected = format!("is ONNX Runtime {version}, but 1.17 or later is needed");
        assert!(
            error.contains(&expected) && error.contains("pip install onnxruntime"),
            "{error}"
        );
    }
}

#[cfg(feature = "tract")]
mod with_library {
    use regatta_test_support::{
        fixture::{
            self, Fixture,
            onnx::{self, Shape},
        },
        small_resnet50,
    };
    use regatta_types::benchmark::Benchmark;

    use super::*;
    use crate::onnxruntime::InstalledOnnxRuntime;
    use crate::{
        Answers, Batch, Input, Loaded, load,
        subjects::{Subject, load_request, onnxruntime_library},
    };

    /// Loads the fixture's benchmark with settings, for batches of up to 4.
    fn load_with(fixture: &Fixture, settings: &[(&str, &str)]) -> Option<Result<Loaded, EngineError>> {
        let library = onnxruntime_library()?;
        let named = [("onnxruntime_library", library)];
        let settings = settings.iter().copied().chain(named);
        let settings = EngineSettings::parse(EngineKind::Onnxruntime, settings).unwrap();
        let benchmark = fixture.benchmark();
        let request = EngineRequest {
            settings: &settings,
            scenario: Scenario::Offline,
            model: &benchmark.model,
            scratch: None,
            sends_first_tokens: false,
            files: Path::new("."),
        };
        let backend = configure(EngineKind::Onnxruntime, &request).unwrap();
        Some(load(
            backend.as_ref(),
            &load_request(&benchmark, fixture, &[1, 4], 2),
            None,
        ))
    }

    fn infer(loaded: &mut Loaded, indices: &[usize], data: &dyn Fn(usize) -> Vec<u8>) -> Vec<Vec<u8>> {
        let bytes: Vec<u8> = indices.iter().flat_map(|&index| data(index)).collect();
        let batch = Batch {
            samples: indices,
            input: Input::Contiguous(&bytes),
        };
        let mut answers = Answers::default();
        loaded.engines[0].infer(&batch, &mut answers).unwrap();
        answers.iter().map(<[u8]>::to_vec).collect()
    }

    fn classes(loaded: &mut Loaded, indices: &[usize]) -> Vec<i32> {
        let answers = infer(loaded, indices, &fixture::pixels);
        let class = |answer: &Vec<u8>| i32::from_le_bytes(answer.as_slice().try_into().unwrap());
        answers.iter().map(class).collect()
    }

    #[test]
    fn every_setting_gives_the_same_answers_and_the_description_names_version_and_provider() {
        let fixture = Fixture::new();
        let expected = [3, 9, 1].map(fixture::class);
        for (settings, threads) in [
            (&[][..], "1 thread per stream"),
            (&[("onnxruntime_threads", "3")], "3 threads"),
            (&[("onnxruntime_optimization", "none")], "1 thread per stream"),
            (&[("onnxruntime_optimization", "basic")], "1 thread per stream"),
            (&[("onnxruntime_optimization", "extended")], "1 thread per stream"),
        ] {
            let Some(loaded) = load_with(&fixture, settings) else {
                return;
            };
            let mut loaded = loaded.unwrap();
            assert_eq!(classes(&mut loaded, &[3, 9, 1]), expected, "{settings:?}");
            let library = onnxruntime_library().map(Path::new);
            let version = InstalledOnnxRuntime::find(library).unwrap().version.unwrap();
            let expected = format!(
                "onnxruntime {version} on the CPU ({}, {threads})",
                std::env::consts::ARCH
            );
            assert_eq!(loaded.description.to_string(), expected);
        }
    }

    #[test]
    fn a_provider_that_the_library_does_not_have_is_refused_with_those_that_it_has() {
        let Some(library) = onnxruntime_library() else {
            return;
        };
        for (provider, name) in [("cuda", "cuda"), ("tensorrt", "tensorrt")] {
            let error = refused(&[
                ("onnxruntime_library", library),
                ("onnxruntime_provider", provider),
            ]);
            assert!(error.contains(&format!("has no provider {name}")), "{error}");
            assert!(error.contains("CPUExecutionProvider"), "{error}");
        }
    }

    #[test]
    fn damaged_networks_and_those_with_unknown_operators_are_refused() {
        let fixture = Fixture::new();
        let whole = fs::read(fixture.path("model.onnx")).unwrap();
        let unknown = onnx::classifier(&Shape::default());
        // An operator of the same length that does not exist.
        let at = unknown.windows(7).position(|bytes| bytes == b"Flatten").unwrap();
        let unknown = [&unknown[..at], b"Flattop", &unknown[at + 7..]].concat();
        for (bytes, expected) in [
            (
                whole[..whole.len() / 2].to_vec(),
                "onnxruntime cannot load the model",
            ),
            (b"not a network".to_vec(), "onnxruntime cannot load the model"),
            (Vec::new(), "onnxruntime cannot load the model"),
            (unknown, "Flattop"),
        ] {
            fs::write(fixture.path("model.onnx"), bytes).unwrap();
            let Some(loaded) = load_with(&fixture, &[]) else {
                return;
            };
            let error = format!("{:#}", anyhow::Error::from(loaded.err().unwrap()));
            assert!(
                error.contains("model.onnx") && error.contains(expected),
                "{error}"
            );
        }
        fs::write(fixture.path("model.onnx"), whole).unwrap();
        let mut loaded = load_with(&fixture, &[]).unwrap().unwrap();
        assert_eq!(classes(&mut loaded, &[5]), [fixture::class(5)]);
    }

    #[test]
    fn a_network_of_another_type_rank_or_batch_is_refused_or_computed_with_its_batch() {
        let fixture = Fixture::new();
        let write = |shape: &Shape| fs::write(fixture.path("model.onnx"), onnx::classifier(shape)).unwrap();
        for (shape, expected) in [
            (
                Shape {
                    dtype: onnx::INT8,
                    ..Shape::default()
                },
                "it accepts int8 [?, 1, 8, 8], but its samples are float32 [N, 1, 8, 8]",
            ),
            (
                Shape {
                    sample: vec![64],
                    ..Shape::default()
                },
                "it accepts float32 [?, 64], but its samples are float32 [N, 1, 8, 8]",
            ),
            (
                Shape {
                    classes: 1,
                    ..Shape::default()
                },
                "which has no largest value",
            ),
        ] {
            write(&shape);
            let Some(loaded) = load_with(&fixture, &[]) else {
                return;
            };
            let error = loaded.err().unwrap();
            // ONNX has no product of matrices of int8, which is said first.
            assert!(
                error.to_string().contains(expected) || matches!(error, EngineError::ModelRefused { .. }),
                "{error}"
            );
        }
        write(&Shape {
            batch: Some(3),
            ..Shape::default()
        });
        let mut loaded = load_with(&fixture, &[]).unwrap().unwrap();
        assert_eq!(loaded.engines[0].max_batch(), 3);
        for indices in [&[7][..], &[2, 30], &[1, 2, 3]] {
            let expected: Vec<_> = indices.iter().map(|&index| fixture::class(index)).collect();
            assert_eq!(classes(&mut loaded, indices), expected);
        }
    }

    /// Its input has the dimensions of a sample, `[?, 8, 8]`, and so takes one at a time.
    #[test]
    fn a_network_without_a_batch_computes_one_sample_at_a_time() {
        let fixture = Fixture::new();
        let shape = Shape {
            sample: vec![8, 8],
            ..Shape::default()
        };
        fs::write(fixture.path("model.onnx"), onnx::classifier(&shape)).unwrap();
        let Some(loaded) = load_with(&fixture, &[]) else {
            return;
        };
        let mut loaded = loaded.unwrap();
        assert_eq!(loaded.engines[0].max_batch(), 1);
        for index in [0, 7, 30] {
            assert_eq!(classes(&mut loaded, &[index]), [fixture::class(index)]);
        }
    }

    /// The classes of both engines for noise in ResNet50's shape.
    #[test]
    fn a_small_resnet50_has_tracts_answers() {
        let Some(_) = onnxruntime_library() else {
            return;
        };
        let text = include_str!("../../../../configs/benchmarks/resnet50.toml");
        let mut benchmark = Benchmark::from_toml(text).unwrap();
        benchmark.model.sha256 = None;
        let fixture = Fixture::new();
        let file = fixture.path(&benchmark.model.file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, small_resnet50::model()).unwrap();
        let values = benchmark.model.input_shape.iter().product::<usize>();
        let sample = |index: usize| {
            let value = |place: usize| ((place / 3000 * 37 + index * 977) % 509) as f32 / 2.0 - 127.0;
            (0..values).flat_map(|place| value(place).to_le_bytes()).collect()
        };
        let answers = [EngineKind::Tract, EngineKind::Onnxruntime].map(|kind| {
            let mut loaded = Subject::of(kind)
                .load_for(&benchmark, &fixture, "fp32", &[4], 1)
                .unwrap();
            infer(&mut loaded, &[0, 1, 2, 3], &sample)
        });
        assert_eq!(answers[0], answers[1]);
    }
}
