//! The sequence of queries, their samples and their times, as generated and before any clock is read.

use std::path::Path;

use regatta_loadgen::{
    effective::{EffectiveSettings, LibraryCounts},
    generate::{Pass, PlanError, QueryPlan, loadable_sets},
    rng::RngAbi,
};
use regatta_rules::{Mode, Scenario};

use crate::{
    cases::{Case, Draw},
    draws, official, optional,
    oracle::{Oracle, words},
    tally::Tally,
};

/// What both LoadGens generate: samples with a mark after each query, and when each query is due.
#[derive(Debug, PartialEq)]
struct Generated {
    issued: Vec<u64>,
    schedule: Vec<u64>,
}

/// What a build of the official LoadGen does otherwise than 6.0.17 with libstdc++ 11.
#[derive(Debug, Clone, Copy, Default)]
struct Build {
    abi: RngAbi,
    /// Loadable sets are cut out of the whole library, however many samples are wanted.
    cuts_whole_library: bool,
    /// `sample_concatenate_permutation` does not count in `user.conf`, and makes many queries of Offline's one.
    concatenates_otherwise: bool,
}

impl Build {
    /// The case as ours must read it to do the same; `None` where it cannot.
    fn as_read(self, mut case: Case) -> Option<Case> {
        if self.concatenates_otherwise {
            let counts = |line: &&str| !line.contains("sample_concatenate_permutation");
            case.user_conf = case
                .user_conf
                .lines()
                .filter(counts)
                .fold(String::new(), |text, line| text + line + "\n");
            if case.scenario == Scenario::Offline && effective(&case).sample_concatenate_permutation {
                return None;
            }
        }
        Some(case)
    }
}

/// Generates the settings before `audit.config`, which the driver applies to whole runs only.
fn ours(case: &Case, build: Build) -> Result<Generated, PlanError> {
    let effective = effective(case);
    let mut generated = Generated {
        issued: Vec::new(),
        schedule: Vec::new(),
    };
    let (pass, mut wanted) = if effective.mode == Mode::AccuracyOnly {
        (Pass::Accuracy, effective.accuracy_sample_count)
    } else {
        (Pass::Performance, effective.performance_sample_count)
    };
    if build.cuts_whole_library {
        wanted = case.total;
    }
    let mut sets = loadable_sets(&effective, case.total, wanted, build.abi)?;
    if pass == Pass::Performance {
        sets.truncate(1);
    }
    for set in &sets {
        let plan = QueryPlan::new(&effective, set, pass, build.abi)?;
        generate(&plan, effective.scenario, &mut generated);
    }
    Ok(generated)
}

fn effective(case: &Case) -> EffectiveSettings {
    let mut request = case.request(Path::new("."));
    request.audit_config = None;
    let library = LibraryCounts {
        total: case.total,
        performance: case.performance,
    };
    EffectiveSettings::new(&request.resolve().unwrap().settings, library).0
}

fn generate(plan: &QueryPlan<'_>, scenario: Scenario, generated: &mut Generated) {
    let issued = &mut generated.issued;
    if scenario == Scenario::Offline {
        let samples = plan.offline_samples();
        issued.extend((0..samples.len()).map(|position| samples.index(position) as u64));
        issued.push(u64::MAX);
        generated.schedule.push(0);
        return;
    }
    let mut source = plan.source();
    let before = generated.schedule.len();
    while let Some((samples, due_ns)) = source.next_query() {
        issued.extend(samples.iter().map(|&index| index as u64));
        issued.push(u64::MAX);
        generated.schedule.push(due_ns.cast_unsigned());
    }
    let made = (generated.schedule.len() - before) as u64;
    assert_eq!(made, plan.queries, "the plan counts what is made");
}

fn compare(oracle: &Oracle, build: Build) -> Tally {
    let (count, seed) = draws();
    let mut draw = Draw::new(seed);
    let mut tally = Tally::default();
    while tally.compared() < count {
        let case = draw.case(3000);
        let Some(read) = build.as_read(case.clone()) else {
            continue;
        };
        let Ok(ours) = ours(&read, build) else {
            tally.refused();
            continue;
        };
        let dir = tempfile::tempdir().unwrap();
        oracle.run("generate", &case, dir.path(), &[]);
        let theirs = Generated {
            issued: words(&dir.path().join("issue.bin")),
            schedule: words(&dir.path().join("schedule.bin")),
        };
        assert!(ours.issued == theirs.issued, "other samples: {case:#?}");
        assert!(ours.schedule == theirs.schedule, "other times: {case:#?}");
        tally.equal(&case);
    }
    tally
}

#[test]
fn every_query_and_its_time_equal_the_official_ones() {
    let Some(oracle) = official() else { return };
    println!(
        "Generated queries and times:\n{}",
        compare(&oracle, Build::default())
    );
}

#[test]
fn the_older_random_numbers_equal_those_of_an_older_compiler() {
    let Some(oracle) = optional("6.0.17-libstdc++-10", "build.sh --debian11") else {
        return;
    };
    let build = Build {
        abi: RngAbi::Libstdcxx10,
        ..Build::default()
    };
    println!("By libstdc++ 10:\n{}", compare(&oracle, build));
}

#[test]
fn older_versions_differ_as_documented_and_in_nothing_else() {
    for (version, concatenates_otherwise) in [("5.1.2", false), ("4.1.30", true)] {
        let Some(oracle) = optional(version, &format!("build.sh {version}")) else {
            continue;
        };
        let build = Build {
            cuts_whole_library: true,
            concatenates_otherwise,
            ..Build::default()
        };
        println!("LoadGen {version}:\n{}", compare(&oracle, build));
    }
}
