//! Tests of engine settings on the command line. Settings that the device would refuse are refused before anything is queued,
//! with the exit code of wrong use. `settings list` shows the known ones.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{fs, process::Output};

use regatta_types::documents::EngineKind;
use regatta_types::engine_settings::SETTINGS;
use support::coordinator::Coordinator;

fn refusal(output: &Output) -> (Option<i32>, String) {
    (
        output.status.code(),
        String::from_utf8(output.stderr.clone()).unwrap(),
    )
}

const RUN: [&str; 6] = [
    "run",
    "--benchmark",
    "digits",
    "--scenario",
    "Offline",
    "--engine",
];

#[test]
fn a_setting_that_cannot_be_is_refused_before_anything_is_queued() {
    let coordinator = Coordinator::embedded();
    let plan = coordinator.path("plan.toml");
    for (engine, name, value, reported) in [
        ("tract", "batch_sise", "8", "hint: did you mean `batch_size`?"),
        ("tract", "nonsense", "8", "known are batch_size, "),
        ("tract", "gpu_batch_size", "8", "it is one of tensorrt and sim"),
        ("sim", "use_graphs", "yes", "must be `true` or `false`"),
        (
            "tensorrt",
            "gpu_copy_streams",
            "65",
            "must be an integer from 1 to 64",
        ),
    ] {
        let setting = format!("{name}={value}");
        let by_flag = coordinator.output(&[&RUN[..], &[engine, "--set", &setting]].concat());
        let value = if value == "yes" { "'yes'" } else { value };
        let text = format!(
            "schema = 1\n[[run]]\nbenchmark = 'digits'\nscenario = ['Offline']\nengine = '{engine}'\nset = {{ {name} = {value} }}\n"
        );
        fs::write(&plan, text).unwrap();
        let by_plan = coordinator.output(&["run", plan.to_str().unwrap()]);
        let list = format!("regatta settings list --engine {engine}");
        // A plan's values are read before its engine is known, and errors have their line.
        for (output, hints) in [(by_flag, vec![list.as_str()]), (by_plan, vec!["line 6", &list])] {
            let (code, printed) = refusal(&output);
            assert_eq!(code, Some(2), "{setting}: {printed}");
            assert!(
                printed.contains(name) && printed.contains(reported),
                "{setting}: {printed}"
            );
            assert!(hints.iter().any(|hint| printed.contains(hint)), "{printed}");
        }
    }
    let valid = coordinator.output(&[&RUN[..], &["tract", "--set", "batch_size=8"]].concat());
    let (_, printed) = refusal(&valid);
    assert!(
        printed.contains("no device has connected"),
        "a valid setting comes further: {printed}"
    );
    let queued = coordinator.json(&["runs", "list"]);
    assert_eq!(
        queued["runs"].as_array().map(Vec::len),
        Some(0),
        "nothing was queued"
    );
}

#[test]
fn a_systems_file_with_a_setting_that_cannot_be_is_refused_with_its_place() {
    let coordinator = Coordinator::embedded();
    let own = coordinator.path("configs/systems");
    fs::create_dir_all(&own).unwrap();
    let head = "schema = 1\nname = 'boat'\ntitle = 'Boat'\n[[run]]\nbenchmark = 'digits'\nscenario = 'Offline'\n\
                source = { measured = 'today' }\n";
    for (engine, line, reported) in [
        (
            "tract",
            "batch_sise = 8",
            &["line 10", "did you mean `batch_size`?"][..],
        ),
        ("tract", "batch_size = 0", &["line 10", "from 1 to 1048576"]),
        ("tract", "batch_size = '8'", &["line 10", "integer"]),
        (
            "tract",
            "gpu_batch_size = 8",
            &["line 4", "it is one of tensorrt and sim"],
        ),
    ] {
        let text = format!("{head}engine = '{engine}'\n[run.settings]\n{line}\n");
        fs::write(own.join("boat.toml"), text).unwrap();
        let (code, printed) = refusal(&coordinator.output(&[&RUN[..], &["tract"]].concat()));
        assert_eq!(code, Some(2), "{line}: {printed}");
        assert!(printed.contains("boat.toml"), "{line}: {printed}");
        assert!(
            reported.iter().all(|reported| printed.contains(reported)),
            "{line}: {printed}"
        );
    }
}

#[test]
fn the_list_shows_every_setting_and_what_is_accepted() {
    let coordinator = Coordinator::embedded();
    let names = |flags: &[&str]| -> Vec<String> {
        let listed = coordinator.json(&[&["settings", "list"], flags].concat());
        let settings = listed["settings"].as_array().unwrap();
        for setting in settings {
            for field in ["name", "type", "default", "source", "doc"] {
                assert!(
                    setting[field].as_str().is_some_and(|text| !text.is_empty()),
                    "{setting}"
                );
            }
            for field in ["engines", "scenarios"] {
                assert!(
                    setting[field].as_array().is_some_and(|list| !list.is_empty()),
                    "{setting}"
                );
            }
            assert!(
                setting["range"].is_object() && setting["ignored_by"].is_array(),
                "{setting}"
            );
        }
        settings
            .iter()
            .map(|setting| setting["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = names(&[]);
    assert!(
        all.iter()
            .map(String::as_str)
            .eq(SETTINGS.iter().map(|setting| setting.name))
    );
    for engine in EngineKind::ALL {
        let accepted = SETTINGS
            .iter()
            .filter(|setting| setting.is_accepted_by(engine))
            .map(|setting| setting.name);
        assert!(
            names(&["--engine", engine.as_str()])
                .iter()
                .map(String::as_str)
                .eq(accepted)
        );
    }
    let server = names(&["--engine", "null", "--scenario", "Server"]);
    assert!(server.contains(&"deque_timeout_usec".to_owned()) && !server.contains(&"sharing".to_owned()));
    assert!(!names(&["--scenario", "Offline"]).contains(&"deque_timeout_usec".to_owned()));

    let text = coordinator.output(&["settings", "list"]);
    let text = String::from_utf8(text.stdout).unwrap();
    for setting in SETTINGS {
        assert!(text.contains(setting.name), "{text}");
    }
    assert!(
        text.contains("an integer from 1 to 1048576") && text.contains("meaning"),
        "{text}"
    );
    let (code, printed) = refusal(&coordinator.output(&["settings", "list", "--engine", "cuda"]));
    assert_eq!(code, Some(2), "{printed}");
}
