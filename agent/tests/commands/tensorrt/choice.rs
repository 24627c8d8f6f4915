//! Tests of the choice of a run's engine, and of every refusal.

use std::fs;

use crate::support::place::{Place, expected};

#[test]
fn an_engine_that_does_not_fit_is_refused_with_the_command_that_builds_one() {
    let place = Place::new();
    let message = place.fault(&[], &[]);
    assert!(
        message.contains("there is none for this model on the GPU; hint: regatta-agent engine build --onnx ./model.onnx --batch 1 --cache "),
        "{message}"
    );
    let engine = place.build(&["--batch", "4"], &[]);
    let key = engine.file_name().unwrap().to_str().unwrap().to_owned();
    let offline = |settings: &[&str]| {
        let ended = place.bench("Offline", "AccuracyOnly", settings, &[]);
        assert_eq!(ended.code, 3, "{ended:?}");
        ended.stderr
    };
    let manifest = engine.join("engine.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, "{").unwrap();
    let message = offline(&[]);
    assert!(
        message.contains("engine.json is not the manifest of an engine: EOF while parsing")
            && message.contains("; hint: "),
        "{message}"
    );
    fs::write(&manifest, &text).unwrap();
    let message = offline(&["gpu_batch_size=8"]);
    assert!(
        message.contains("none of 1 has a batch of 8; hint: "),
        "{message}"
    );
    let message = offline(&["gpu_copy_streams=3"]);
    assert!(
        message.contains("has 1 optimisation profile(s), but 3 contexts must run at the same time")
            && message.contains("--batch 4 --profiles 3"),
        "{message}"
    );
    let message = offline(&["precision=int8"]);
    assert!(
        message.contains(
            "1 engine of this model is in the network's own precision, but int8 was requested; hint: "
        ) && message.contains("--precision int8"),
        "{message}"
    );
    let message = offline(&["precision=int8", &format!("gpu_engine={key}")]);
    assert!(
        message.contains("is in the network's own precision, but int8 was requested"),
        "{message}"
    );
    let message = offline(&["max_dlas=1"]);
    assert!(
        message.contains("1 engine of this model is for the GPU, but DLA was requested; hint: ")
            && message.contains("--batch 16 --precision fp16 --dla-core 0"),
        "{message}"
    );
    let message = offline(&["max_dlas=1", &format!("dla_engine={key}")]);
    assert!(message.contains("was built for the GPU"), "{message}");
    // Two engines that match equally well are ambiguous.
    place.build(&["--batch", "4", "--precision", "fp16"], &[]);
    let message = offline(&[]);
    assert!(
        message.contains("match; hint: name one of them with the setting gpu_engine"),
        "{message}"
    );
    let named = format!("gpu_engine={key}");
    let ended = place.bench("Offline", "AccuracyOnly", &[&named], &[]);
    assert_eq!((ended.code, place.answers()), (0, expected()), "{ended:?}");
    // The error has every cause, not only the last one.
    place.build(&["--batch", "4", "--precision", "fp16", "--dla-core", "0"], &[]);
    fs::write(&manifest, text.replace("\"8.5.2\"", "\"8.6.1\"")).unwrap();
    let message = offline(&["precision=as-in-network"]);
    assert!(
        message.contains("1 engine of this model is for DLA, but the GPU was requested; 1 engine of this model is in fp16, but the network's own precision was requested; the engine was built for another TensorRT version: 8.6.1, but here it is 8.5.2"),
        "{message}"
    );
    fs::write(&manifest, &text).unwrap();

    // Engines of another board, version and model, and a file that is not an engine.
    let entry: serde_json::Value = serde_json::from_str(&text).unwrap();
    let changed = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut entry = entry.clone();
        change(&mut entry);
        fs::write(&manifest, entry.to_string()).unwrap();
        offline(&[&named])
    };
    let message = changed(&|entry| entry["manifest"]["chip"] = "another board".into());
    assert!(
        message.contains("the engine was built for another chip: another board"),
        "{message}"
    );
    let message = changed(&|entry| entry["manifest"]["tensorrt"] = "8.6.1".into());
    assert!(
        message.contains("another TensorRT version: 8.6.1, but here it is 8.5.2"),
        "{message}"
    );
    let message = changed(&|entry| entry["manifest"]["onnx_sha256"] = "00".into());
    assert!(message.contains("was built from another model"), "{message}");
    let message = changed(&|entry| entry["plan_sha256"] = "00".into());
    assert!(message.contains("was changed after it was built"), "{message}");
    let plan = fs::read(engine.join("engine.plan")).unwrap();
    fs::write(engine.join("engine.plan"), "no plan").unwrap();
    let message = changed(&|entry| {
        // SHA-256 of "no plan".
        entry["plan_sha256"] = NO_PLAN.into();
    });
    assert!(
        message.contains("TensorRT does not load the plan: Serialization assertion"),
        "{message}"
    );
    fs::write(&manifest, &text).unwrap();
    fs::write(engine.join("engine.plan"), &plan).unwrap();
    // TensorRT's error for a plan with a wrong manifest.
    let wrong = "The engine plan file is generated on an incompatible device, expecting compute 8.7 got compute 7.2, please rebuild.";
    let ended = place.bench(
        "Offline",
        "AccuracyOnly",
        &[&named],
        &[("FAKE_TRT_REFUSES", wrong)],
    );
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(
        ended
            .stderr
            .contains(&format!("TensorRT does not load the plan: {wrong}")),
        "{ended:?}"
    );
    fs::remove_dir_all(place.fakes.libraries()).unwrap();
    assert!(offline(&[]).contains("no TensorRT was found"), "{message}");
}

const NO_PLAN: &str = "fc61c3d56ff3a9229b46cec68ecc9f99e90b46003b68c50a9a54012f50c32d76";
