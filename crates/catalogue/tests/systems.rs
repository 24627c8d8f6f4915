//! Tests of the systems' files: they agree with published configurations and results, and errors have golden texts.

#![expect(clippy::unwrap_used, reason = "a test says what it expects")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use regatta_catalogue::{
    known,
    system::{BoardFacts, System, SystemRequest, SystemRun, generic},
};
use regatta_test_requirements::{Requirement, skip};
use regatta_types::{
    Scenario,
    benchmark::Benchmark,
    documents::{EngineKind, PowerSetting},
    engine_settings::{EnginePrecision, EngineSettings},
};
use serde_json::Value;

/// The published data, where this machine has it.
fn published(file: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/facts/jetson-data")
        .join(file);
    let text = fs::read_to_string(&path).ok();
    if text.is_none() {
        let reason = format!("no published settings: {} is missing", path.display());
        skip(Requirement::OfficialAnswers, reason);
    }
    text
}

/// The runs of every file whose source is a file of a round, with the round, the configuration's directory and its class.
fn runs_of_a_published_file(systems: &[System]) -> Vec<(&SystemRun, &str, &str, &str)> {
    let runs = systems.iter().flat_map(|system| &system.runs);
    runs.filter_map(|run| {
        let (file, class) = run.source.file.as_deref()?.split_once('#')?;
        let benchmark = file.strip_prefix("closed/NVIDIA/configs/")?.split('/').next()?;
        Some((run, run.source.round.as_deref()?, benchmark, class))
    })
    .collect()
}

#[test]
fn published_settings_are_those_of_the_published_classes() {
    let Some(text) = published("jetson_configs.json") else {
        return;
    };
    let classes: Value = serde_json::from_str(&text).unwrap();
    let systems = known::systems().unwrap();
    let runs = runs_of_a_published_file(&systems);
    let mut compared = 0;
    for (run, round, benchmark, class) in runs.iter().filter(|(run, ..)| !run.derived) {
        let fields = &classes[round][benchmark][run.scenario.as_str()][class]["all"];
        assert!(fields.is_object(), "{round} {benchmark} {} {class}", run.scenario);
        for (setting, value) in run.settings.iter() {
            let name = setting.name;
            // NVIDIA's builders have these in their code: for the Orin NX of v3.0, and for 3D-UNet.
            match name {
                "dla_sram_size" => assert!(class.starts_with("Orin_NX"), "{class}"),
                "calibration_method" => {
                    assert_eq!((*benchmark, value.to_string().as_str()), ("3d-unet", "min-max"))
                }
                _ => {}
            }
            if matches!(name, "dla_sram_size" | "calibration_method") {
                continue;
            }
            // Its values are NVIDIA's, and its meaning is not that of the pair of engines.
            let field = if name == "dla_enqueue_count" {
                "dla_loop_count"
            } else {
                name
            };
            let expected = match &fields[field] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let what = format!("{round} {benchmark} {} {class}: {name}", run.scenario);
            if name == "workspace_size" {
                // Boards with less memory have a smaller workspace.
                let number = |text: String| text.parse::<u64>().unwrap();
                assert!(number(value.to_string()) <= number(expected), "{what}");
            } else {
                assert_eq!(value.to_string(), expected, "{what}");
            }
            compared += 1;
        }
        for known in [
            "gpu_batch_size",
            "dla_batch_size",
            "gpu_copy_streams",
            "use_graphs",
            "dla_loop_count",
        ] {
            let is_set = !matches!(&fields[known], Value::Null) && fields[known] != "None";
            let setting = if known == "dla_loop_count" {
                "dla_enqueue_count"
            } else {
                known
            };
            assert_eq!(
                run.settings.value(setting).is_some(),
                is_set,
                "{round} {benchmark} {class}: {known} is left out"
            );
        }
        assert_eq!(
            run.settings.dla_core, None,
            "there it means to build for DLA, here to use that core alone"
        );
        let rate = match run.scenario {
            Scenario::Offline => (run.expected.offline_expected_qps, "offline_expected_qps"),
            Scenario::SingleStream => {
                let ns = run.expected.single_stream_expected_latency_ns;
                (ns.map(|ns| ns as f64), "single_stream_expected_latency_ns")
            }
            Scenario::MultiStream => {
                let ns = run.expected.multi_stream_expected_latency_ns;
                (ns.map(|ns| ns as f64), "multi_stream_expected_latency_ns")
            }
            Scenario::Server => (None, "server_target_qps"),
        };
        assert_eq!(
            rate.0,
            fields[rate.1].as_f64(),
            "{round} {benchmark} {class}: {}",
            rate.1
        );
    }
    assert!(
        runs.len() > 150 && compared > 700,
        "{} runs, {compared} values",
        runs.len()
    );
}

/// TensorRT's builder, the weights and the system need the rest.
#[test]
fn a_workspace_takes_at_most_half_of_the_boards_memory() {
    for system in known::systems().unwrap() {
        let half = u64::from(system.board.memory_gib.unwrap()) << 29;
        for run in &system.runs {
            let workspace = run.settings.workspace_size.unwrap_or(0);
            assert!(workspace <= half, "{} {} {workspace}", system.name, run.benchmark);
        }
    }
}

#[test]
fn results_and_rates_are_those_of_the_published_tables() {
    let mut tables = Vec::new();
    for (file, benchmark, scenario, result) in [
        ("results_v0.5-v3.0.csv", "bench", "scen", "metric"),
        ("results_v3.1-v4.1.csv", "bench", "scenario", "metric"),
    ] {
        let Some(text) = published(file) else { return };
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap().split(',').collect();
        let column = |name: &str| header.iter().position(|known| *known == name).unwrap();
        let open = header.iter().position(|known| *known == "div");
        for line in lines.map(|line| line.split(',').collect::<Vec<_>>()) {
            if open.is_none_or(|div| line[div] == "closed") {
                let key = ["round", "system"].map(|name| line[column(name)]).join(" ");
                let key = format!("{key} {} {}", line[column(benchmark)], line[column(scenario)]);
                tables.push((
                    key,
                    line[column(result)].to_owned(),
                    line[column("target_qps")].to_owned(),
                ));
            }
        }
    }
    let tables: BTreeMap<String, (String, String)> = tables
        .into_iter()
        .map(|(key, result, rate)| (key, (result, rate)))
        .collect();
    let mut compared = 0;
    let systems = known::systems().unwrap();
    for run in systems.iter().flat_map(|system| &system.runs) {
        let (Some(round), Some(system), Some(result)) = (&run.source.round, &run.source.system, run.result)
        else {
            assert_eq!(run.result, None, "a result needs its system");
            continue;
        };
        let key = format!("{round} {system} {} {}", run.benchmark, run.scenario);
        // The tables end with v4.1.
        if !tables.keys().any(|known| known.starts_with(&format!("{round} "))) {
            continue;
        }
        let (published, rate) = &tables[&key];
        assert_eq!(result, published.parse::<f64>().unwrap(), "{key}");
        compared += 1;
        // A derived run expects the rate that the published run was set to.
        if run.derived {
            let rate: f64 = rate.parse().unwrap();
            let conf = run.expected.conf(run.scenario);
            let expected = match run.scenario {
                Scenario::Offline | Scenario::Server => conf["target_qps"].parse::<f64>().unwrap(),
                Scenario::SingleStream | Scenario::MultiStream => {
                    1e3 / conf["target_latency"].parse::<f64>().unwrap()
                }
            };
            assert!(
                (expected / rate - 1.0).abs() < 1e-5,
                "{key}: {expected} for {rate}"
            );
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn every_jetson_of_the_three_generations_has_exactly_one_file() {
    let modules = include_str!("../../../crates/board/src/modules.csv");
    let systems = known::systems().unwrap();
    let parts = modules.lines().filter_map(|line| line.split_once(','));
    for (part, name) in parts.filter(|(part, _)| !part.starts_with('#') && !part.ends_with('*')) {
        let files: Vec<&str> = systems
            .iter()
            .filter(|system| system.is_for(part))
            .map(|system| system.name.as_str())
            .collect();
        let has_one = [
            "AGX Thor",
            "AGX Orin",
            "Orin NX",
            "Orin Nano",
            "AGX Xavier",
            "Xavier NX",
        ]
        .iter()
        .any(|family| name.starts_with(family));
        assert_eq!(files.len(), usize::from(has_one), "{part} {name}: {files:?}");
    }
}

/// A board in its other state gets the values for that state.
#[test]
fn every_file_has_both_states_of_the_board_for_all_that_it_has() {
    // Of Thor, one result was published.
    let systems = known::systems().unwrap().into_iter();
    for system in systems.filter(|system| system.name != "agx-thor") {
        let of = |power: PowerSetting| -> BTreeSet<(String, &str)> {
            let runs = system.runs.iter().filter(move |run| run.power == power);
            runs.map(|run| (run.benchmark.clone(), run.scenario.as_str()))
                .collect()
        };
        let (most, least) = (of(PowerSetting::MaxP), of(PowerSetting::MaxQ));
        assert!(most.len() >= 14, "{}: {most:?}", system.name);
        assert_eq!(most, least, "{}", system.name);
    }
}

const MIN: &str = "schema = 1\nname = 'x'\ntitle = 'X'\n";

#[test]
fn invalid_systems_files_are_refused_with_line() {
    let run = "[[run]]\nbenchmark = 'resnet50'\nscenario = 'Offline'\nsource = { round = 'v3.0', submitter = 'NVIDIA' }\n";
    for (text, expected) in [
        ("schema = 9\nname = 'x'\ntitle = 'X'\n".to_owned(), "schema 9"),
        (
            format!("{MIN}{run}[run.settings]\ngpu_batch = 4"),
            "line 9, column 1",
        ),
        (
            format!("{MIN}{run}[run.settings]\ngpu_batch_size = 'many'"),
            "line 9, column 18",
        ),
        (
            format!("{MIN}{run}[run.settings]\ngpu_batch_size = 0"),
            "line 9, column 18",
        ),
        (
            format!("{MIN}{run}[run.expected]\nserver_target_qps = 1.0"),
            "`server_target_qps` does not belong to Offline",
        ),
        (
            format!("{MIN}{run}[run.expected]\noffline_expected_qps = nan"),
            "must be a positive number",
        ),
        (
            format!("{MIN}{run}{run}"),
            "line 8: resnet50 Offline MaxP: duplicate entry",
        ),
        (format!("{MIN}{run}clocks = true"), "line 8, column 1"),
        (
            format!("{MIN}{}", run.replace("source", "derived = true\nsource")),
            "need the rule",
        ),
        (
            format!("{MIN}{}", run.replace("round = 'v3.0', ", "")),
            "`source.round`",
        ),
    ] {
        let error = System::from_toml(&text).unwrap_err();
        let message = format!(
            "{error}: {}",
            std::error::Error::source(&error).map_or_else(String::new, ToString::to_string)
        );
        assert!(message.contains(expected), "{text}\n{message}");
    }
}

fn resnet50() -> Benchmark {
    let mut benchmark = known::benchmarks().unwrap().remove(0);
    benchmark.name = "resnet50".to_owned();
    benchmark.aliases.clear();
    benchmark.model.input_shape = vec![3, 224, 224];
    benchmark
}

fn request(benchmark: &Benchmark, power: PowerSetting, engine: EngineKind) -> SystemRequest<'_> {
    SystemRequest {
        benchmark,
        scenario: Scenario::Offline,
        power,
        engine,
    }
}

#[test]
fn a_run_takes_the_settings_that_the_user_did_not_set_and_records_them() {
    let systems = known::systems().unwrap();
    let orin = systems.iter().find(|system| system.is_for("p3701-0000")).unwrap();
    let benchmark = resnet50();
    let mut chosen = orin
        .choose(
            &request(&benchmark, PowerSetting::MaxP, EngineKind::Tensorrt),
            "agx-orin-devkit-32gb",
            None,
        )
        .unwrap();
    let user = EngineSettings {
        gpu_batch_size: Some(64),
        ..EngineSettings::default()
    };
    let settings = chosen.settings_under(user);
    assert_eq!(
        (settings.gpu_batch_size, settings.dla_batch_size),
        (Some(64), Some(2))
    );
    assert!(!chosen.from.settings.contains(&"gpu_batch_size".to_owned()));
    assert!(chosen.from.settings.contains(&"dla_batch_size".to_owned()));
    assert_eq!(chosen.conf["target_qps"], "6100");
    assert_eq!(
        chosen.from.source,
        "NVIDIA, v3.0, closed/NVIDIA/configs/resnet50/Offline/__init__.py#Orin, Orin_TRT"
    );
    assert!(!chosen.from.derived);

    let tract = orin.choose(
        &request(&benchmark, PowerSetting::MaxP, EngineKind::Tract),
        "f",
        None,
    );
    assert_eq!(tract, None, "another engine's settings are not for it");
    let sim = orin.choose(
        &request(&benchmark, PowerSetting::MaxP, EngineKind::Sim),
        "f",
        None,
    );
    assert!(sim.is_some(), "sim stands in for tensorrt");
}

#[test]
fn the_other_state_of_the_board_lends_its_settings_but_not_its_rate() {
    let mut systems = known::systems().unwrap();
    let nano = systems
        .iter_mut()
        .find(|system| system.name == "orin-nano-8gb")
        .unwrap();
    nano.runs.retain(|run| run.power == PowerSetting::MaxP);
    let benchmark = resnet50();
    let chosen = nano
        .choose(
            &request(&benchmark, PowerSetting::MaxQ, EngineKind::Tensorrt),
            "f",
            None,
        )
        .unwrap();
    assert_eq!(chosen.from.power, PowerSetting::MaxP);
    assert!(chosen.conf.is_empty() && chosen.from.derived);
    assert_eq!(chosen.settings.gpu_batch_size, Some(128));
}

#[test]
fn the_generic_rule_is_near_what_was_published() {
    let benchmark = resnet50();
    let facts = BoardFacts {
        sms: Some(16),
        dla_cores: 2,
        memory_bytes: 32 << 30,
        integrated: true,
    };
    let of = |facts: BoardFacts, scenario| generic(&facts, &benchmark, scenario).runs.remove(0).settings;
    let orin = of(facts, Scenario::Offline);
    assert_eq!(
        (orin.gpu_batch_size, orin.dla_batch_size, orin.max_dlas),
        (Some(256), Some(8), Some(2))
    );
    let small = BoardFacts {
        sms: None,
        dla_cores: 0,
        memory_bytes: 2 << 30,
        ..facts
    };
    assert_eq!(of(small, Scenario::Offline).gpu_batch_size, Some(32));
    assert_eq!(of(small, Scenario::SingleStream).gpu_batch_size, Some(1));
    let card = BoardFacts {
        sms: Some(132),
        dla_cores: 0,
        memory_bytes: 80 << 30,
        integrated: false,
    };
    let server = of(card, Scenario::Server);
    assert_eq!(
        (server.gpu_batch_size, server.use_direct_host_access),
        (Some(512), Some(false))
    );
    for scenario in [
        Scenario::SingleStream,
        Scenario::MultiStream,
        Scenario::Server,
        Scenario::Offline,
    ] {
        assert!(
            generic(&card, &benchmark, scenario).runs[0]
                .describe_source()
                .contains("132 SMs")
        );
    }
}

#[test]
fn the_generic_rule_runs_models_of_several_networks_on_gpus_and_images_one_by_one() {
    let orin = BoardFacts {
        sms: Some(16),
        dla_cores: 2,
        memory_bytes: 32 << 30,
        integrated: true,
    };
    let named = |name: &str| {
        let mut found = known::benchmarks().unwrap().into_iter();
        found.find(|benchmark| benchmark.is_called(name)).unwrap()
    };
    let of = |name: &str, scenario| generic(&orin, &named(name), scenario).runs.remove(0).settings;
    for (name, batch) in [("sdxl", 1), ("whisper", 64)] {
        let settings = of(name, Scenario::Offline);
        assert_eq!(
            (
                settings.gpu_batch_size,
                settings.dla_batch_size,
                settings.max_dlas
            ),
            (Some(batch), None, None),
            "{name}"
        );
    }
    assert_eq!(of("resnet50", Scenario::Offline).max_dlas, Some(2));
    let single = of("sdxl", Scenario::SingleStream);
    assert_eq!(
        (single.gpu_copy_streams, single.precision),
        (Some(1), Some(EnginePrecision::Fp16))
    );
    assert_eq!(of("whisper", Scenario::SingleStream).precision, None);
}
