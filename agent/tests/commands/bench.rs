//! Tests of `bench` through the binary: complete runs, and the error for every bad input.

use std::{fs, os::unix::fs::symlink, path::Path};

use regatta_test_support::fixture::{self, Fixture};
use regatta_types::response_units::ResponseUnits;
use regatta_unit_sharing::board_model::BoardModel;

use crate::support::{Ended, FEW_QUERIES, LEFT_OUT, MLPERF_CONF, USER_CONF, agent, bench_arguments};

/// Runs `bench` on the fixture's files. `more` replaces or follows the usual flags.
fn bench(fixture: &Fixture, more: &[(&str, &str)]) -> Ended {
    for (name, text) in [("mlperf.conf", MLPERF_CONF), ("user.conf", USER_CONF)] {
        if !fixture.path(name).exists() {
            fs::write(fixture.path(name), text).unwrap();
        }
    }
    let mut arguments = bench_arguments(more);
    if more.iter().all(|(flag, _)| *flag != "--duration") {
        arguments.extend(["--duration", "200ms"]);
    }
    agent(fixture.scratch(), &arguments)
}

#[cfg(feature = "tract")]
#[test]
fn every_scenario_runs_for_accuracy_and_performance_on_tract() {
    for scenario in ["SingleStream", "MultiStream", "Server", "Offline"] {
        let fixture = Fixture::new();
        let (tract, scenario_flag) = (("--engine", "tract"), ("--scenario", scenario));
        let accuracy = bench(
            &fixture,
            &[
                tract,
                scenario_flag,
                ("--mode", "AccuracyOnly"),
                ("--duration", LEFT_OUT),
            ],
        );
        assert_eq!(accuracy.code, 0, "{scenario}: {accuracy:?}");
        assert_eq!(
            answers(&fixture),
            (0..fixture::TOTAL).map(fixture::class).collect::<Vec<_>>()
        );

        let performance = bench(&fixture, &[tract, scenario_flag, ("--format", "json")]);
        let report: serde_json::Value = serde_json::from_str(&performance.stdout).unwrap();
        assert_eq!(report["verdict"], "VALID", "{scenario}: {report:#}");
        assert_eq!(performance.code, 0, "{scenario}");
        assert_eq!(report["duration"], "200ms");
        assert!(report["metric"]["value"].as_f64().unwrap() > 0.0, "{report:#}");
        assert_eq!(
            report["not_a_measurement"],
            serde_json::json!(["LoadGen is Regatta's own", "pixels is a test's own benchmark"])
        );
        let summary = fs::read_to_string(fixture.path("logs/mlperf_log_summary.txt")).unwrap();
        assert!(summary.contains("Result is : VALID"), "{summary}");
    }
}

#[cfg(all(feature = "tract", feature = "onnxruntime"))]
#[test]
fn every_scenario_runs_on_onnx_runtime_and_the_report_names_its_version() {
    let Some(python) = regatta_test_support::oracle::onnxruntime() else {
        return;
    };
    let library = format!("onnxruntime_library={}", python.with_file_name("lib").display());
    for scenario in ["SingleStream", "MultiStream", "Server", "Offline"] {
        let fixture = Fixture::new();
        let engine = [
            ("--engine", "onnxruntime"),
            ("--set", library.as_str()),
            ("--scenario", scenario),
        ];
        let accuracy = [("--mode", "AccuracyOnly"), ("--duration", LEFT_OUT)];
        let ended = bench(&fixture, &[&engine[..], &accuracy].concat());
        assert_eq!(ended.code, 0, "{scenario}: {ended:?}");
        assert_eq!(
            answers(&fixture),
            (0..fixture::TOTAL).map(fixture::class).collect::<Vec<_>>()
        );
        let ended = bench(&fixture, &[&engine[..], &[("--format", "json")]].concat());
        let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(report["verdict"], "VALID", "{scenario}: {report:#}");
        let engine = report["engine"].as_str().unwrap_or_default();
        assert!(
            engine.starts_with("onnxruntime 1.") && engine.contains("on the CPU"),
            "{report:#}"
        );
    }
}

#[cfg(feature = "onnxruntime")]
#[test]
fn a_missing_onnx_runtime_is_one_sentence_with_the_remedy() {
    let fixture = Fixture::new();
    let ended = bench(
        &fixture,
        &[
            ("--engine", "onnxruntime"),
            ("--set", "onnxruntime_library=/nowhere"),
        ],
    );
    assert_eq!(ended.code, 3, "{ended:?}");
    let line = ended.stderr.lines().last().unwrap_or_default();
    for part in ["/nowhere neither is nor contains", "pip install onnxruntime"] {
        assert!(line.contains(part), "{ended:?}");
    }
}

#[cfg(feature = "tract")]
#[test]
fn a_network_with_a_fixed_batch_computes_batches_of_it() {
    let fixture = Fixture::new();
    let shape = fixture::onnx::Shape {
        batch: Some(1),
        ..fixture::onnx::Shape::default()
    };
    fs::write(fixture.path("model.onnx"), fixture::onnx::classifier(&shape)).unwrap();
    let run = |batch| {
        let flags = [
            ("--engine", "tract"),
            ("--scenario", "Offline"),
            ("--mode", "AccuracyOnly"),
            ("--duration", LEFT_OUT),
            ("--set", batch),
        ];
        let ended = bench(&fixture, &flags);
        assert_eq!(ended.code, 0, "{ended:?}");
        assert_eq!(
            answers(&fixture),
            (0..fixture::TOTAL).map(fixture::class).collect::<Vec<_>>()
        );
        ended.stderr
    };
    let warning = "the batch of ./model.onnx is fixed at 1, so batches of 1 are computed instead of 8; \
                   hint: export it with a free batch";
    assert_eq!(run("batch_size=8").matches(warning).count(), 1);
    let quiet = run("batch_size=1");
    assert!(!quiet.contains("fixed"), "{quiet}");
}

/// The answers in the accuracy log, by sample.
#[cfg(feature = "tract")]
fn answers(fixture: &Fixture) -> Vec<i32> {
    let log = fs::read(fixture.path("logs/mlperf_log_accuracy.json")).unwrap();
    let log: Vec<serde_json::Value> = serde_json::from_slice(&log).unwrap();
    let mut answers = vec![-1; log.len()];
    for entry in log {
        let bytes = u32::from_str_radix(entry["data"].as_str().unwrap(), 16)
            .unwrap()
            .to_be_bytes();
        answers[usize::try_from(entry["qsl_idx"].as_u64().unwrap()).unwrap()] = i32::from_le_bytes(bytes);
    }
    answers
}

/// LoadGen counts the tokens of these responses, and needs the first token except in Offline.
#[test]
fn benchmarks_with_token_latencies_get_token_counts_without_a_model() {
    for engine in ["null", "sim"] {
        for (model, scenario) in [
            ("llama3.1-8b-edge", "SingleStream"),
            ("llama3.1-8b-edge", "Offline"),
            ("whisper", "Offline"),
            ("whisper", "Server"),
            ("gptj-99", "SingleStream"),
        ] {
            let fixture = Fixture::new();
            let token_latencies =
                "*.*.use_token_latencies = 1\n*.Server.ttft_latency = 1000\n*.Server.tpot_latency = 1000\n";
            fs::write(
                fixture.path("mlperf.conf"),
                format!("{MLPERF_CONF}{token_latencies}"),
            )
            .unwrap();
            // As many queries as early stopping needs.
            let rate = if engine == "null" { 2_000_000 } else { 6_000 };
            let conf = format!(
                "*.SingleStream.target_latency = 0.01\n*.Server.target_qps = 4000\n*.Offline.target_qps = {rate}\n\
                 *.Offline.min_query_count = 100\n"
            );
            fs::write(fixture.path("user.conf"), conf).unwrap();
            for mode in ["PerformanceOnly", "AccuracyOnly"] {
                let duration = if mode == "AccuracyOnly" { LEFT_OUT } else { "200ms" };
                let flags = [
                    ("--engine", engine),
                    ("--benchmark", model),
                    ("--benchmark-file", LEFT_OUT),
                    ("--scenario", scenario),
                    ("--mode", mode),
                    ("--duration", duration),
                    ("--format", "json"),
                ];
                let ended = bench(&fixture, &flags);
                let what = format!("{engine} {model} {scenario} {mode}");
                // Whether a run is long enough for its rate depends on the machine.
                assert!(matches!(ended.code, 0 | 1), "{what}: {ended:?}");
                let detail = fs::read_to_string(fixture.path("logs/mlperf_log_detail.txt")).unwrap();
                let errors = detail.lines().filter(|line| line.contains("\"is_error\": true"));
                let of_tokens: Vec<&str> = errors
                    .filter(|line| line.to_lowercase().contains("token"))
                    .collect();
                assert!(of_tokens.is_empty(), "{what}: {of_tokens:?}");
            }
        }
    }
}

#[test]
fn an_audit_config_in_the_working_directory_is_reported_and_not_used() {
    let fixture = Fixture::new();
    fs::write(
        fixture.path("audit.config"),
        "*.*.mode = 2\n*.*.performance_issue_same = 1\n",
    )
    .unwrap();
    let ended = bench(&fixture, &[("--mode", "AccuracyOnly"), ("--duration", LEFT_OUT)]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(
        ended
            .stdout
            .contains("The audit.config in the working directory is not used"),
        "{}",
        ended.stdout
    );
    let detail = fs::read_to_string(fixture.path("logs/mlperf_log_detail.txt")).unwrap();
    assert!(
        detail.contains("\"effective_performance_issue_same\", \"value\": false"),
        "{detail}"
    );
}

#[test]
fn null_takes_any_model_with_counts_and_keeps_what_was_issued() {
    let fixture = Fixture::new();
    let ended = bench(
        &fixture,
        &[
            ("--benchmark", "resnet50"),
            ("--benchmark-file", LEFT_OUT),
            ("--scratch", LEFT_OUT),
            ("--scenario", "MultiStream"),
            ("--total-samples", "1000"),
            ("--performance-samples", "100"),
            ("--issue-log", "issued"),
            ("--format", "json"),
        ],
    );
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let issued = fs::read(fixture.path("issued")).unwrap();
    let issued: Vec<u64> = issued
        .chunks_exact(8)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
        .collect();
    let queries: Vec<&[u64]> = issued.split(|&entry| entry == u64::MAX).collect();
    let (last, queries) = queries.split_last().unwrap();
    assert!(last.is_empty(), "the list ends behind a query");
    assert!(
        queries
            .iter()
            .all(|query| query.len() == 8 && query.iter().all(|&index| index < 1000))
    );
    assert_eq!(report["performance"]["queries"], queries.len());
    assert_eq!(ended.code, 0, "{report:#}");
}

#[test]
fn a_run_that_misses_its_latency_bound_is_invalid_and_its_logs_stay() {
    let fixture = Fixture::new();
    fs::write(fixture.path("user.conf"), FEW_QUERIES).unwrap();
    let slow = [
        ("--engine", "sim"),
        ("--scenario", "Server"),
        ("--set", "sim_units=gpu=150000+0"),
    ];
    let ended = bench(&fixture, &slow);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(
        ended.stdout.starts_with("pixels Server PerformanceOnly: INVALID"),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stdout.contains("a modelled accelerator, not a measurement"),
        "{}",
        ended.stdout
    );
    let summary = fs::read_to_string(fixture.path("logs/mlperf_log_summary.txt")).unwrap();
    assert!(summary.contains("Result is : INVALID"), "{summary}");
}

#[test]
fn response_units_are_written_beside_the_logs_of_several_units() {
    let fixture = Fixture::new();
    let sim = |units| {
        let accuracy = [
            ("--engine", "sim"),
            ("--scenario", "Offline"),
            ("--mode", "AccuracyOnly"),
            ("--duration", LEFT_OUT),
            ("--set", units),
            ("--set", "batch_size=2"),
            ("--set", "sharing=first-free"),
        ];
        let ended = bench(&fixture, &accuracy);
        assert_eq!(ended.code, 0, "{ended:?}");
    };
    sim("sim_units=gpu=2000+100,dla0=3000+100");
    let file = fs::read(fixture.path("logs/response_units.bin")).unwrap();
    let units = ResponseUnits::read(&file[..]).unwrap();
    let log = fs::read(fixture.path("logs/mlperf_log_accuracy.json")).unwrap();
    let log: Vec<serde_json::Value> = serde_json::from_slice(&log).unwrap();
    assert_eq!(log.len(), fixture::TOTAL);
    for entry in &log {
        let unit = units.unit(entry["seq_id"].as_u64().unwrap()).unwrap();
        assert!(unit == "gpu" || unit == "dla0", "{unit}");
    }
    let counts: Vec<_> = units.counts().collect();
    assert_eq!(
        counts.iter().map(|(_, count)| count).sum::<u64>(),
        log.len() as u64
    );
    assert_eq!(units.unit(log.len() as u64), None);

    fs::remove_file(fixture.path("logs/response_units.bin")).unwrap();
    sim("sim_units=gpu=20+10");
    assert!(!fixture.path("logs/response_units.bin").exists());
}

#[test]
fn times_that_were_measured_are_a_board_that_takes_their_place() {
    let fixture = Fixture::new();
    let own = "[[units]]\nname = 'gpu'\ntimes = [[1, 0.001], [2, 0.0015]]\nbatch = 2\n\n\
               [[units]]\nname = 'dla0'\ntimes = [[2, 0.003]]\nbatch = 2\nslows_others = 0.5\n";
    fs::write(fixture.path("own.toml"), own).unwrap();
    let measured = |setting: &str, scenario: &str, file: &str| {
        let setting = setting.to_owned();
        let flags = [
            ("--engine", "sim"),
            ("--scenario", scenario),
            ("--mode", "AccuracyOnly"),
            ("--duration", LEFT_OUT),
            ("--set", &*setting),
            ("--write-board", file),
        ];
        let ended = bench(&fixture, &flags);
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(
            ended.stdout.contains(&format!("  board         {file}")),
            "{ended:?}"
        );
        let text = fs::read_to_string(fixture.path(file)).unwrap();
        assert!(text.starts_with("# A model, not a measurement: "), "{text}");
        BoardModel::parse(&text).unwrap()
    };
    let mut before = BoardModel::parse(own).unwrap();
    // A run on a model of the measured times takes no less: a busy machine adds to it each time.
    for (from, to) in [("own.toml", "first.toml"), ("first.toml", "second.toml")] {
        let found = measured(&format!("sim_board={from}"), "Offline", to);
        for (found, unit) in found.units.iter().zip(&before.units) {
            assert_eq!((&found.name, found.batch, found.streams), (&unit.name, 2, 1));
            for size in [1, 2] {
                let (took, least) = (found.times.seconds(size), unit.times.seconds(size));
                assert!(took >= least, "{to}: {took} {least}");
            }
        }
        before = found;
    }
    // A single unit, whose times no policy needs.
    let found = measured("sim_units=gpu=500+500", "SingleStream", "one.toml");
    assert!(
        found.units.len() == 1 && found.units[0].times.seconds(1) >= 0.001,
        "{found:?}"
    );
}

#[test]
fn a_systems_file_lends_its_values_and_the_report_says_whose_they_are() {
    let fixture = Fixture::new();
    let file = "schema = 1\nname = 'boat'\ntitle = 'Boat'\n[[run]]\nbenchmark = 'pixels'\nscenario = 'Offline'\n\
                source = { measured = 'today' }\n[run.settings]\ngpu_batch_size = 3\nmax_dlas = 0\n\
                [run.expected]\noffline_expected_qps = 1234.5\n";
    fs::write(fixture.path("boat.toml"), file).unwrap();
    fs::write(fixture.path("user.conf"), "").unwrap();
    let flags = [
        ("--engine", "sim"),
        ("--scenario", "Offline"),
        ("--system", "boat.toml"),
        ("--set", "sim_units=gpu=50+1,dla0=50+1"),
        ("--set", "max_dlas=1"),
        ("--format", "json"),
    ];
    let ended = bench(&fixture, &flags);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        report["system"]["settings"],
        serde_json::json!(["gpu_batch_size"])
    );
    assert_eq!(report["system"]["source"], "today");
    let engine = report["engine"].as_str().unwrap();
    assert!(engine.contains("gpu 53 us for 3, dla0"), "{engine}");
    let detail = fs::read_to_string(fixture.path("logs/mlperf_log_detail.txt")).unwrap();
    assert!(
        detail.contains("\"requested_offline_expected_qps\", \"value\": 1234.5"),
        "{detail}"
    );

    fs::write(fixture.path("user.conf"), "*.Offline.target_qps = 99\n").unwrap();
    bench(&fixture, &flags);
    let detail = fs::read_to_string(fixture.path("logs/mlperf_log_detail.txt")).unwrap();
    assert!(
        detail.contains("\"requested_offline_expected_qps\", \"value\": 99"),
        "{detail}"
    );
}

/// A bad input: its name, its preparation, and the flags.
type Case = (
    &'static str,
    fn(&Fixture),
    &'static [(&'static str, &'static str)],
);

const NOTHING: fn(&Fixture) = |_| {};

const BAD_INPUT: &[Case] = &[
    ("unknown scenario", NOTHING, &[("--scenario", "Interactive")]),
    ("unknown mode", NOTHING, &[("--mode", "Speed")]),
    ("unknown engine", NOTHING, &[("--engine", "openvino")]),
    ("unknown LoadGen", NOTHING, &[("--loadgen", "mine")]),
    ("unknown benchmark", NOTHING, &[("--benchmark-file", LEFT_OUT)]),
    ("unknown setting", NOTHING, &[("--set", "gpu_batch_size=4")]),
    ("setting without a value", NOTHING, &[("--set", "batch_size")]),
    ("length without a unit", NOTHING, &[("--duration", "3")]),
    ("unknown system", NOTHING, &[("--system", "agx-orin")]),
    (
        "system without the benchmark",
        NOTHING,
        &[("--system", "xavier-nx")],
    ),
    (
        "system that does not read",
        |fixture| fs::write(fixture.path("s.toml"), "schema = 1\nnam = 'x'\n").unwrap(),
        &[("--system", "s.toml")],
    ),
    ("one count of two", NOTHING, &[("--total-samples", "10")]),
    (
        "counts upside down",
        NOTHING,
        &[("--total-samples", "10"), ("--performance-samples", "11")],
    ),
    (
        "issue log of an engine that is not null",
        NOTHING,
        &[("--engine", "sim"), ("--issue-log", "issued")],
    ),
    (
        "board of an engine without units",
        NOTHING,
        &[("--write-board", "board.toml")],
    ),
    (
        "streams on one thread",
        NOTHING,
        &[
            ("--scenario", "Offline"),
            ("--set", "dispatch=direct"),
            ("--set", "inference_streams=2"),
        ],
    ),
    (
        "conf line without =",
        |f| fs::write(f.path("user.conf"), "*.*.target_qps = 5\npixels.Server 7\n").unwrap(),
        &[],
    ),
    ("conf that is not there", NOTHING, &[("--mlperf-conf", "no.conf")]),
    (
        "benchmark file that is not there",
        NOTHING,
        &[("--benchmark-file", "no.toml")],
    ),
    (
        "benchmark file of another benchmark",
        NOTHING,
        &[("--benchmark", "digits")],
    ),
    (
        "benchmark file that is not a description",
        NOTHING,
        &[("--benchmark-file", "map.txt")],
    ),
    (
        "LoadGen that is not there",
        NOTHING,
        &[("--loadgen", "official:abc123")],
    ),
    (
        "log directory that cannot be",
        NOTHING,
        &[("--log-dir", "map.txt/logs")],
    ),
    (
        "full disk",
        |f| {
            fs::create_dir(f.path("logs")).unwrap();
            symlink("/dev/full", f.path("logs/mlperf_log_summary.txt")).unwrap();
        },
        &[],
    ),
];

#[cfg(feature = "tract")]
mod with_data {
    use regatta_test_support::fixture::{SHAPE, npy, onnx, pixels};

    use super::*;

    const TRACT: (&str, &str) = ("--engine", "tract");

    fn model(fixture: &Fixture, shape: &onnx::Shape) {
        fs::write(fixture.path("model.onnx"), onnx::classifier(shape)).unwrap();
    }

    pub(super) const BAD_INPUT: &[Case] = &[
        ("no scratch directory", NOTHING, &[TRACT, ("--scratch", LEFT_OUT)]),
        (
            "counts for an engine with a dataset",
            NOTHING,
            &[TRACT, ("--total-samples", "10"), ("--performance-samples", "10")],
        ),
        (
            "missing map",
            |f| fs::remove_file(f.path("map.txt")).unwrap(),
            &[TRACT],
        ),
        (
            "map line without a label",
            |f| fs::write(f.path("map.txt"), "sample0 0\nsample1\n").unwrap(),
            &[TRACT],
        ),
        (
            "missing .npy",
            |f| fs::remove_file(f.sample_file(7)).unwrap(),
            &[TRACT],
        ),
        (
            "short .npy",
            |f| f.write_sample(7, &npy("<f4", &SHAPE, &pixels(7)[..128])),
            &[TRACT],
        ),
        (
            ".npy short by a byte",
            |f| f.write_sample(7, &npy("<f4", &SHAPE, &pixels(7)[..255])),
            &[TRACT, ("--mode", "AccuracyOnly")],
        ),
        (
            ".npy of another shape",
            |f| f.write_sample(7, &npy("<f4", &[8, 8, 1], &pixels(7))),
            &[TRACT, ("--mode", "AccuracyOnly")],
        ),
        (
            "missing model",
            |f| fs::remove_file(f.path("model.onnx")).unwrap(),
            &[TRACT],
        ),
        (
            "model that is not an ONNX",
            |f| fs::write(f.path("model.onnx"), "not a model").unwrap(),
            &[TRACT],
        ),
        (
            "model for other samples",
            |f| {
                model(
                    f,
                    &onnx::Shape {
                        sample: vec![3, 224, 224],
                        ..onnx::Shape::default()
                    },
                );
            },
            &[TRACT],
        ),
        (
            "model for another type",
            |f| {
                model(
                    f,
                    &onnx::Shape {
                        dtype: onnx::INT8,
                        ..onnx::Shape::default()
                    },
                );
            },
            &[TRACT],
        ),
        (
            "model with nothing to choose from",
            |f| {
                model(
                    f,
                    &onnx::Shape {
                        classes: 1,
                        ..onnx::Shape::default()
                    },
                );
            },
            &[TRACT],
        ),
        (
            "another model than the benchmark's",
            |f| {
                let text = fs::read_to_string(f.path("benchmark.toml")).unwrap();
                let hash = format!("file = \"model.onnx\"\nsha256 = \"{}\"", "0".repeat(64));
                fs::write(
                    f.path("benchmark.toml"),
                    text.replace("file = \"model.onnx\"", &hash),
                )
                .unwrap();
            },
            &[TRACT],
        ),
    ];
}

/// Returns exit code and standard error, without what differs between machines.
fn printed(case: &Case) -> String {
    let (name, spoil, flags) = case;
    let fixture = Fixture::new();
    spoil(&fixture);
    let ended = bench(&fixture, flags);
    assert!(!ended.stderr.contains("panicked"), "{name}: {}", ended.stderr);
    let scratch = fixture.scratch().display().to_string();
    let beside = Path::new(env!("CARGO_BIN_EXE_regatta-agent"))
        .parent()
        .unwrap()
        .display()
        .to_string();
    let found = ended
        .stderr
        .split(" its SHA-256 is ")
        .nth(1)
        .and_then(|rest| rest.split(',').next());
    let stderr = ended
        .stderr
        .replace(&scratch, "SCRATCH")
        .replace(&beside, "BESIDE-THE-AGENT")
        .replace(found.unwrap_or("\0"), "FOUND");
    format!("{name}: exit {}\n{}\n", ended.code, stderr.trim_end())
}

#[test]
fn bad_input_gets_one_clear_sentence_and_the_documented_exit_code() {
    insta::assert_snapshot!(BAD_INPUT.iter().map(printed).collect::<Vec<_>>().join("\n"));
}

#[cfg(feature = "tract")]
#[test]
fn bad_models_and_data_get_one_clear_sentence_and_the_documented_exit_code() {
    insta::assert_snapshot!(
        with_data::BAD_INPUT
            .iter()
            .map(printed)
            .collect::<Vec<_>>()
            .join("\n")
    );
}
