//! Tests of engines in the cache. Those of another chip are refused, damaged ones are built again, and an entry is complete or
//! absent.

use std::{
    fs,
    process::{Output, Stdio},
};

use regatta_test_support::small_disk::SmallDisk;

use super::Place;

#[test]
fn an_engine_from_elsewhere_or_tampered_with_is_refused() {
    let place = Place::fake(&[]);
    place.json(&["build", "--onnx", "digits.onnx"], 0);
    let engine = place.only_engine();
    let key = engine.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(place.json(&["inspect", &key], 0)["layers"]["Layers"][0], "conv1");

    let manifest = engine.join("engine.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"8.5.2\"", "\"8.6.2\"")).unwrap();
    let refusal = place.json(&["inspect", &key], 1)["refusal"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        refusal,
        "the engine was built for another TensorRT version: 8.6.2, but here it is 8.5.2; hint: build it again"
    );
    let mut parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
    parsed["manifest"]["chip"] = "another board".into();
    fs::write(&manifest, parsed.to_string()).unwrap();
    let refusal = place.json(&["inspect", &key], 1)["refusal"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        refusal.starts_with("the engine was built for another chip: another board"),
        "{refusal}"
    );

    fs::write(&manifest, &text).unwrap();
    fs::write(engine.join("engine.plan"), "something else").unwrap();
    assert!(
        place
            .refused(&["inspect", &key], 3)
            .contains("was changed after it was built")
    );
    fs::write(&manifest, &text[..text.len() / 2]).unwrap();
    assert!(
        place
            .refused(&["inspect", &key], 3)
            .contains("is not the manifest of an engine")
    );
}

#[test]
fn engines_are_removed_by_their_keys_or_all() {
    let place = Place::fake(&[]);
    for batch in ["1", "2", "4"] {
        place.json(&["build", "--onnx", "digits.onnx", "--batch", batch], 0);
    }
    let keys = || -> Vec<String> {
        let listed = place.json(&["list"], 0);
        let engines = listed.as_array().unwrap().iter();
        engines
            .map(|engine| engine["engine"].as_str().unwrap().to_owned())
            .collect()
    };
    let present = keys();
    assert_eq!(present.len(), 3);
    for unknown in ["0123456789abcdef", "../engines", "."] {
        let refused = place.refused(&["remove", &present[0], unknown], 3);
        assert!(
            refused.contains(&format!("engines has no engine {unknown}")),
            "{refused}"
        );
    }
    assert_eq!(keys(), present, "nothing is removed without all of them");
    assert!(
        place
            .command(&["remove", &present[1]])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(keys(), [present[0].clone(), present[2].clone()]);
    assert!(place.command(&["remove", "--all"]).status().unwrap().success());
    assert!(keys().is_empty());
}

#[test]
fn an_engine_in_the_directory_of_another_one_is_built_again() {
    let place = Place::fake(&[]);
    let build = ["build", "--onnx", "digits.onnx"];
    place.json(&build, 0);
    let directory = place.only_engine();
    let kept = directory.ancestors().nth(2).unwrap().join("kept");
    fs::rename(&directory, &kept).unwrap();
    let other_build = ["build", "--onnx", "digits.onnx", "--workspace", "64"];
    let other = place.json(&other_build, 0);
    let other_directory = place.only_engine();
    assert_ne!(other_directory, directory);
    fs::remove_dir_all(&other_directory).unwrap();
    fs::rename(&kept, &other_directory).unwrap();
    let again = place.engine(&other_build);
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    let output = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(
        output.contains("has an engine with another manifest; building it again"),
        "{output}"
    );
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(other_directory.join("engine.json")).unwrap()).unwrap();
    assert_eq!(manifest["manifest"], other["manifest"]);
}

#[test]
fn an_engine_that_was_damaged_is_built_again() {
    let place = Place::fake(&[]);
    let build = ["build", "--onnx", "digits.onnx"];
    let built = place.json(&build, 0);
    let engine = place.only_engine();
    for (file, words) in [
        ("engine.plan", "was changed after it was built"),
        ("engine.json", "is not the manifest of an engine"),
    ] {
        let whole = fs::read(engine.join(file)).unwrap();
        fs::write(engine.join(file), &whole[..whole.len() / 2]).unwrap();
        let again = place.engine(&build);
        assert_eq!(again.status.code(), Some(0), "{again:?}");
        let output_text = String::from_utf8_lossy(&again.stderr).into_owned();
        assert!(
            output_text.contains(words) && output_text.contains("; building it again"),
            "{output_text}"
        );
        assert_eq!(place.json(&["list"], 0)[0]["plan_sha256"], built["plan_sha256"]);
    }
    // An entry that lost its plan, one that never had a manifest, and the files of a killed build.
    let engines = engine.parent().unwrap();
    fs::create_dir(engines.join("0123456789abcdef")).unwrap();
    fs::create_dir(engines.join(".new-killed")).unwrap();
    place.json(&[&build[..], &["--batch", "2"]].concat(), 0);
    assert!(!engines.join(".new-killed").exists());
    assert_eq!(place.json(&["list"], 0).as_array().unwrap().len(), 2);
    fs::remove_file(engine.join("engine.plan")).unwrap();
    let message = place.refused(&["inspect", engine.to_str().unwrap()], 3);
    assert!(
        message.contains("engine.plan") && message.contains("cannot be used"),
        "{message}"
    );
}

#[test]
fn two_builders_at_once_build_once() {
    let place = Place::fake(&[]);
    let build = ["build", "--onnx", "digits.onnx", "--format", "json"];
    let start = || {
        let mut command = place.command(&build);
        command.env("FAKE_TRT_SLOW", "300");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let builders: Vec<_> = (0..3).map(|_| start()).collect();
    let outputs: Vec<_> = builders
        .into_iter()
        .map(|builder| builder.wait_with_output().unwrap())
        .collect();
    let output_text = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        outputs.iter().all(|output| output.status.success()),
        "{outputs:?}"
    );
    let built = outputs
        .iter()
        .filter(|output| output_text(output).contains("building with"));
    assert_eq!(built.count(), 1, "{outputs:?}");
    let found = outputs
        .iter()
        .filter(|output| output_text(output).contains("found in "));
    assert_eq!(found.count(), 2, "{outputs:?}");
    place.only_engine();
}

#[test]
fn a_disk_that_is_full_keeps_no_half_engine() {
    let Some(disk) = SmallDisk::mount("1m") else {
        return;
    };
    let place = Place::fake(&[]);
    let cache = disk.path.join("engines");
    let build = [
        "build",
        "--onnx",
        "digits.onnx",
        "--cache",
        cache.to_str().unwrap(),
    ];
    place.json(&build, 0);
    disk.fill();
    let message = place.refused(&[&build[..], &["--batch", "2"]].concat(), 3);
    assert!(message.contains("No space left on device"), "{message}");
    let names = || {
        let entries = fs::read_dir(&cache)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        entries
            .filter(|name| name != "lock" && !name.to_string_lossy().starts_with("timing-"))
            .count()
    };
    assert_eq!(names(), 1, "the first is there, and nothing of the second");
    fs::remove_file(disk.path.join("filler")).unwrap();
    place.json(&[&build[..], &["--batch", "2"]].concat(), 0);
    assert_eq!(names(), 2);
}
