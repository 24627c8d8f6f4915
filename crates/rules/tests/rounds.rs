//! What the round files say about submissions: complete, and in agreement with itself and with known figures.

#![expect(clippy::unwrap_used, reason = "a test may say what it expects")]

use std::collections::BTreeMap;

use regatta_rules::{Scenario, known, round::Round};

fn round(name: &str) -> Round {
    known::rounds()
        .unwrap()
        .into_iter()
        .find(|round| round.name == name)
        .unwrap()
}

#[test]
fn every_round_has_what_a_check_needs() {
    for round in known::rounds().unwrap() {
        let name = &round.name;
        assert!(round.seeds().is_some(), "{name}");
        let uses_test05 = round
            .submission
            .benchmarks
            .values()
            .any(|rules| rules.tests.iter().any(|test| test == "TEST05"));
        assert!(!uses_test05 || round.test05_seeds().is_some(), "{name}");
        assert!(!round.submission.checkers.is_empty(), "{name}");
        for scenario in Scenario::ALL {
            assert!(
                round.submission.result_keys.contains_key(&scenario),
                "{name} {scenario}"
            );
        }
        for (model, rules) in &round.submission.benchmarks {
            assert!(
                !rules.edge.is_empty() && !rules.accuracy.is_empty(),
                "{name} {model}"
            );
            assert!(
                !rules.edge.contains(&Scenario::Offline) || rules.offline_samples_per_query.is_some(),
                "{name} {model}"
            );
            for test in &rules.tests {
                let judged = round.audits.contains_key(test) || test == "TEST06";
                assert!(judged, "{name} {model}: no procedure for {test}");
            }
        }
    }
}

#[test]
fn targets_are_the_official_doubles() {
    let resnet = &round("v6.0").submission.benchmarks["resnet"];
    assert_eq!(resnet.accuracy[0].value(), 75.69539999999999);
    let llama = &round("v6.1").submission.benchmarks["llama3.1-8b-edge"];
    assert_eq!(llama.accuracy_at_most[0].value(), 3356224.3000000003);
    let unet = &round("v2.1").submission.benchmarks["3d-unet-99.9"];
    assert_eq!(unet.accuracy[0].value(), 0.8608383000000001);
    assert_eq!(unet.delta_percent("3d-unet-99.9", "DICE"), 0.1);
    let images = &round("v5.1").submission.benchmarks["stable-diffusion-xl"];
    assert_eq!(images.delta_percent("stable-diffusion-xl", "FID_SCORE"), 2.0);
}

#[test]
fn scenarios_depend_on_the_category() {
    let round = round("v6.0");
    let resnet = &round.submission.benchmarks["resnet"];
    assert_eq!(resnet.required("edge").unwrap().len(), 3);
    assert_eq!(resnet.required("edge,datacenter").unwrap().len(), 4);
    assert_eq!(resnet.required("Edge"), None);
}

#[test]
fn directory_names_become_benchmarks_in_the_official_order() {
    let round = round("v2.1");
    let none = BTreeMap::new();
    let own = BTreeMap::from([("my-net".to_owned(), "bert-99".to_owned())]);
    for (directory, own, expected) in [
        ("resnet", &none, "resnet"),
        ("resnet50", &none, "resnet"),
        ("my-net", &own, "bert-99"),
        ("mobilenet_v3_large", &none, "resnet"),
        ("bert-99.9-int8", &none, "bert-99.9"),
        ("my-net", &none, "my-net"),
    ] {
        assert_eq!(round.submission.model_of(directory, own), expected, "{directory}");
    }
}

#[test]
fn a_round_has_a_default_checker_and_may_have_others() {
    let round = round("v5.1");
    assert_eq!(round.submission.checker(None).unwrap().revision, "v5.1.1");
    assert!(round.submission.checker(Some("head-b66003e1")).is_some());
    assert!(round.submission.checker(Some("v2.1")).is_none());
}
