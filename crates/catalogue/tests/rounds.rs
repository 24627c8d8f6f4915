//! Tests of the round files' rules for submissions: they are complete, consistent, and agree with known figures.

#![expect(clippy::unwrap_used, reason = "a test may say what it expects")]

use std::collections::BTreeMap;

use regatta_catalogue::{
    known,
    round::{AccuracyBound, Round, SubmittedScenario},
};
use regatta_types::{
    Scenario,
    benchmark::{Benchmark, BoundSide},
};
use sha2::{Digest as _, Sha256};

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
        for checker in &round.submission.checkers {
            let known = round.submission.as_known_to(checker);
            assert!(known.is_ok(), "{name} {}: {known:?}", checker.revision);
        }
        for scenario in Scenario::ALL {
            assert!(
                round.submission.result_keys.contains_key(&scenario),
                "{name} {scenario}"
            );
        }
        for (model, rules) in &round.submission.benchmarks {
            let kinds = ["edge", "datacenter", "edge,datacenter"];
            let required: Vec<_> = kinds.iter().filter_map(|kind| rules.required(kind)).collect();
            assert!(
                !required.is_empty() && !rules.accuracy.is_empty(),
                "{name} {model}"
            );
            let offline = required.concat().contains(&Scenario::Offline);
            assert!(
                !offline || rules.offline_samples_per_query.is_some(),
                "{name} {model}"
            );
            assert!(
                rules.token_limits.is_empty() || rules.token_latencies,
                "{name} {model}"
            );
            for test in &rules.tests {
                // The others verify responses of language and recommendation models, by their own scripts.
                let others = ["TEST06", "TEST07", "TEST08", "TEST09"];
                let judged = round.audits.contains_key(test) || others.contains(&test.as_str());
                assert!(judged, "{name} {model}: no procedure for {test}");
            }
        }
    }
}

#[test]
fn accepted_loadgens_are_distinct_commits_in_the_form_that_loadgen_logs() {
    let mut seen = BTreeMap::new();
    for round in known::rounds().unwrap() {
        for revision in &round.accepted_loadgens {
            let is_hexadecimal = revision.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(
                revision.len() == 10 && is_hexadecimal,
                "{} {revision}",
                round.name
            );
            // The seeds are part of LoadGen since v5.0, so that no commit is of two rounds.
            let other = seen.insert(revision.clone(), round.name.clone());
            assert_eq!(other, None, "{} {revision}", round.name);
        }
        assert!(!round.accepted_loadgens.is_empty(), "{}", round.name);
    }
}

/// The revisions in `loadgen_version` of published results.
#[test]
fn rounds_accept_the_loadgens_of_published_results_and_no_others() {
    for (name, published) in [
        ("v2.0", ["701847516c", "c7ba22c1b2"].as_slice()),
        ("v2.1", &["165e536364", "67eb6a0d0e", "8d83d61b5b"]),
        ("v5.1", &["24767db549", "50de99161e", "6ad8e26f92", "b9ed3c7fec"]),
        ("v6.0", &["9142ef0e74"]),
    ] {
        for revision in published {
            for round in known::rounds().unwrap() {
                assert_eq!(
                    round.accepts_loadgen(revision),
                    round.name == name,
                    "{} {revision}",
                    round.name
                );
            }
        }
    }
    let newest = round("v6.1");
    for other in ["NA", "6.0.17-NA", "", "b66003", "deadbeef00"] {
        assert!(!newest.accepts_loadgen(other), "{other}");
    }
    assert!(newest.accepts_loadgen("b66003e1") && newest.accepts_loadgen("b66003e10e2db4b8c36a"));
}

#[test]
fn the_newest_accepted_loadgen_of_a_device_is_of_the_round() {
    let installed = ["6.0.17-NA", "6ad8e26f92", "2b5f63eb56", "b66003e1", "24767db549"].map(str::to_owned);
    for (name, expected) in [
        ("v6.1", Some("b66003e1")),
        ("v5.1", Some("6ad8e26f92")),
        ("v6.0", None),
    ] {
        assert_eq!(
            round(name).newest_accepted_loadgen(&installed),
            expected,
            "{name}"
        );
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
    assert_eq!(resnet.required("datacenter"), None);
    assert_eq!(resnet.required("Edge"), None);
    let llama = &round.submission.benchmarks["llama3.1-8b"];
    let scenarios = llama.scenarios("datacenter").unwrap();
    assert_eq!(scenarios.required, [Scenario::Offline]);
    assert!(scenarios.has(SubmittedScenario::Interactive) && scenarios.server_or_interactive());
    assert_eq!(llama.required("edge"), None);
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

/// The SHA-256 of the official files, as `git show TAG:compliance/.../audit.config | sha256sum` prints them.
#[test]
fn audit_configs_are_the_official_files_to_the_byte() {
    for (name, test, model, official) in [
        (
            "v2.0",
            "TEST01",
            "ssd-mobilenet",
            "5de395153fbd4a7ec2e2ba96bdd1df8fce6c6571058ffd0712cc599d7a9978ee",
        ),
        (
            "v2.0",
            "TEST01",
            "ssd-resnet34",
            "cf35b7cc9d64724910c711e59e568317ddbb88cdfab5d00baa03473879665eae",
        ),
        (
            "v2.1",
            "TEST01",
            "resnet50",
            "c7ac62a3695dc6e42dc3c9721fde44566f56504a428abce0a224af88bca0adc0",
        ),
        (
            "v2.1",
            "TEST01",
            "3d-unet",
            "16b7e065f0a550d7bf4558640e58ef7c1f1fecf7190f7bf6e1149b522226675f",
        ),
        (
            "v2.1",
            "TEST04",
            "resnet50",
            "bdd1ad3a9cf7252c0db75259e0526259bb7a6167bbeb1f6ab2cbf2ea11f031d9",
        ),
        (
            "v2.1",
            "TEST05",
            "bert",
            "0ccc1e392778f9498197b9953ee061041604fea698971633765c7699cc32e5fa",
        ),
        (
            "v3.1",
            "TEST05",
            "bert",
            "b7fb875bbfd7e956284ca4bbc8871535f8b0b943814eba7746a084cc2270db52",
        ),
        (
            "v4.1",
            "TEST01",
            "stable-diffusion-xl",
            "f1908f1d2865807700f969b3727816cd45816a9650a787c956f0ed3590636053",
        ),
        (
            "v4.1",
            "TEST04",
            "resnet50",
            "1ecfc1fdecc2d45fb0ad78dbfbb45e2e8ca2f0f88f72d47f9bdae157466ab65c",
        ),
        (
            "v5.1",
            "TEST01",
            "whisper",
            "c7ac62a3695dc6e42dc3c9721fde44566f56504a428abce0a224af88bca0adc0",
        ),
        (
            "v5.1",
            "TEST01",
            "pointpainting",
            "cf35b7cc9d64724910c711e59e568317ddbb88cdfab5d00baa03473879665eae",
        ),
        (
            "v6.1",
            "TEST01",
            "bert",
            "c7ac62a3695dc6e42dc3c9721fde44566f56504a428abce0a224af88bca0adc0",
        ),
        (
            "v6.1",
            "TEST01",
            "yolo",
            "16b7e065f0a550d7bf4558640e58ef7c1f1fecf7190f7bf6e1149b522226675f",
        ),
        (
            "v6.1",
            "TEST04",
            "stable-diffusion-xl",
            "44dc627f1a3436503935ec7cd662bb0313dfdea58bd48d54bf5132d49af78327",
        ),
    ] {
        let text = round(name).audits[test].config_for(model);
        let sha256 = Sha256::digest(&text);
        let digits: String = sha256.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digits, official, "{name} {test} {model}:\n{text}");
    }
}

#[test]
fn a_benchmark_needs_its_rounds_audits_and_one_outside_every_round_rehearses_all() {
    let digits = known::benchmarks().unwrap().remove(0);
    let mut resnet = digits.clone();
    resnet.name = "resnet50".to_owned();
    for (name, of_resnet, of_digits) in [
        (
            "v4.1",
            vec!["TEST01", "TEST04", "TEST05"],
            vec!["TEST01", "TEST04", "TEST05"],
        ),
        ("v6.1", vec!["TEST01", "TEST04"], vec!["TEST01", "TEST04"]),
    ] {
        let round = round(name);
        assert_eq!(round.audits_of(&resnet), of_resnet);
        assert_eq!(round.audits_of(&digits), of_digits);
        assert_eq!(round.rules_of(&resnet).unwrap().0, "resnet");
        assert!(round.rules_of(&digits).is_none());
    }
}

#[test]
fn a_shipped_benchmark_is_in_the_rounds_that_have_it() {
    let rounds_of = |name: &str| {
        let benchmarks = known::benchmarks().unwrap();
        let benchmark = benchmarks.into_iter().find(|one| one.name == name).unwrap();
        let rounds = known::rounds().unwrap().into_iter();
        let official = |round: Round| Some((round.name.clone(), round.rules_of(&benchmark)?.0.to_owned()));
        rounds.filter_map(official).collect::<Vec<_>>()
    };
    let only = |round: &str, official: &str| vec![(round.to_owned(), official.to_owned())];
    assert_eq!(rounds_of("ssd-mobilenet"), only("v2.0", "ssd-small"));
    assert_eq!(rounds_of("ssd-resnet34"), only("v2.0", "ssd-large"));
    assert_eq!(rounds_of("resnet50").len(), 10);
    assert_eq!(rounds_of("yolo-95").len(), 2, "v6.0 and v6.1");
    assert_eq!(rounds_of("retinanet").first().unwrap().0, "v2.1");
    assert_eq!(rounds_of("digits"), []);
}

/// A figure, whether the bound is an upper one, and its value.
type Bound = (String, bool, f64);

#[test]
fn the_bounds_of_a_benchmark_with_several_figures_are_its_rounds() {
    let several = |benchmark: &Benchmark| !benchmark.accuracy.further.is_empty();
    let mut compared = 0;
    for benchmark in known::benchmarks().unwrap().into_iter().filter(several) {
        let accuracy = &benchmark.accuracy;
        let first = (
            accuracy.metric.official_name().to_owned(),
            false,
            accuracy.target(),
        );
        let further = accuracy.further.iter();
        let further = further.map(|bound| {
            (
                bound.figure.clone(),
                bound.side == BoundSide::AtMost,
                bound.value(),
            )
        });
        let mut own: Vec<Bound> = std::iter::once(first).chain(further).collect();
        own.sort_by(|one, other| one.partial_cmp(other).unwrap());
        for round in known::rounds().unwrap() {
            let Some((_, rules)) = round.rules_of(&benchmark) else {
                continue;
            };
            let bounds = |bounds: &[AccuracyBound], is_upper| {
                let bound = |bound: &AccuracyBound| (bound.metric.clone(), is_upper, bound.value());
                bounds.iter().map(bound).collect::<Vec<Bound>>()
            };
            let mut official = bounds(&rules.accuracy, false);
            official.extend(bounds(&rules.accuracy_at_most, true));
            official.sort_by(|one, other| one.partial_cmp(other).unwrap());
            assert_eq!(own, official, "{} in {}", benchmark.name, round.name);
            compared += 1;
        }
    }
    assert_eq!(
        compared, 17,
        "gptj twice in 4 rounds, llama in 3, stable-diffusion-xl in 6"
    );
}
