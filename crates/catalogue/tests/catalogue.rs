//! Tests of the names of benchmarks and rounds: built-in files, the user's own, and the errors for unknown ones.

use std::{error::Error as _, fs};

use regatta_catalogue::catalogue::{BenchmarkCatalogue, Catalogue, CatalogueError, RoundCatalogue};

const DIGITS: &str = include_str!("../../../configs/benchmarks/digits.toml");
const NEWEST: &str = include_str!("../../../configs/rounds/v6.1.toml");

#[test]
fn an_unknown_name_is_refused_with_the_known_names() {
    let catalogue = Catalogue::read(None).unwrap();
    let error = catalogue.benchmark("digitz").unwrap_err().to_string();
    assert_eq!(
        error,
        "unknown benchmark `digitz`; known are 3d-unet-99, 3d-unet-99.9, bert-99, bert-99.9, digits, gptj-99, gptj-99.9, llama3.1-8b-edge, resnet50, retinanet, rnnt, ssd-mobilenet, ssd-resnet34, stable-diffusion-xl, whisper, yolo-95, yolo-99"
    );
    let error = catalogue.round(Some("v0.1")).unwrap_err().to_string();
    assert!(
        error.starts_with("unknown round `v0.1`; known are v2.0, "),
        "{error}"
    );

    let own = tempfile::tempdir().unwrap();
    let error = BenchmarkCatalogue::read(Some(own.path()))
        .unwrap()
        .named("digitz")
        .unwrap_err();
    let directory = own.path().join("benchmarks");
    let hint = format!(
        "known are 3d-unet-99, 3d-unet-99.9, bert-99, bert-99.9, digits, gptj-99, gptj-99.9, llama3.1-8b-edge, resnet50, retinanet, rnnt, ssd-mobilenet, ssd-resnet34, stable-diffusion-xl, whisper, yolo-95, yolo-99, and files in {} add to them",
        directory.display()
    );
    assert!(error.to_string().ends_with(&hint), "{error}");
}

#[test]
fn without_a_name_the_newest_round_applies_and_case_does_not_matter() {
    let rounds = RoundCatalogue::read(None).unwrap();
    assert_eq!(rounds.named(None).unwrap().name, "v6.1");
    assert_eq!(rounds.named(Some("V6.0")).unwrap().name, "v6.0");
}

#[test]
fn the_users_own_files_override_built_in_ones() {
    let own = tempfile::tempdir().unwrap();
    for (directory, file, text) in [
        (
            "benchmarks",
            "a.toml",
            DIGITS.replace("total_samples = 597", "total_samples = 7"),
        ),
        (
            "rounds",
            "a.toml",
            NEWEST.replace("name = \"v6.1\"", "name = \"ours\""),
        ),
    ] {
        fs::create_dir_all(own.path().join(directory)).unwrap();
        fs::write(own.path().join(directory).join(file), text).unwrap();
    }
    let catalogue = Catalogue::read(Some(own.path())).unwrap();
    assert_eq!(catalogue.benchmark("digits").unwrap().dataset.total_samples, 7);
    assert_eq!(catalogue.round(Some("OURS")).unwrap().name, "ours");
    assert_eq!(catalogue.round(None).unwrap().name, "v6.1");
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_the_position() {
    let own = tempfile::tempdir().unwrap();
    let path = own.path().join("benchmarks/broken.toml");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "schema = 1\nname = ").unwrap();
    let error = Catalogue::read(Some(own.path())).unwrap_err();
    let sentence = format!("{} is not a valid benchmark file", path.display());
    assert_eq!(error.to_string(), sentence);
    assert!(
        error.source().unwrap().to_string().contains("line 2"),
        "{error:?}"
    );

    let missing = BenchmarkCatalogue::read_file(&own.path().join("missing.toml")).unwrap_err();
    assert!(matches!(missing, CatalogueError::Io { .. }), "{missing:?}");
}
