//! Tests of the generated sequence of queries, with samples and times, before any clock is read.

use regatta_loadgen::generate::{Pass, PlanError, QueryPlan, loadable_sets};
use regatta_types::{Mode, Scenario};

use crate::{
    builds::Build,
    cases::{Case, Draw, effective},
    draws,
    oracle::{Oracle, words},
    tally::Tally,
};

/// The queries that a LoadGen generates: samples with a mark after each query, and when each query is due.
#[derive(Debug, PartialEq)]
struct Generated {
    issued: Vec<u64>,
    schedule: Vec<u64>,
}

/// Generates the settings before `audit.config`, which the driver applies to whole runs only.
fn ours(case: &Case, build: Build) -> Result<Generated, PlanError> {
    let effective = effective(case);
    let mut generated = Generated {
        issued: Vec::new(),
        schedule: Vec::new(),
    };
    let (pass, mut requested) = if effective.mode == Mode::AccuracyOnly {
        (Pass::Accuracy, effective.accuracy_sample_count)
    } else {
        (Pass::Performance, effective.performance_sample_count)
    };
    if build.cuts_whole_library {
        requested = case.total;
    }
    let mut sets = loadable_sets(&effective, case.total, requested, build.abi)?;
    if pass == Pass::Performance {
        sets.truncate(1);
    }
    for set in &sets {
        let plan = QueryPlan::new(&effective, set, pass, build.abi)?;
        generate(&plan, effective.scenario, &mut generated);
    }
    Ok(generated)
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
    for build in [Build::NEWEST, Build::BY_GCC_10] {
        let Some(oracle) = build.find() else { continue };
        println!(
            "Generated queries and times, {}:\n{}",
            build.name,
            compare(&oracle, build)
        );
    }
}

#[test]
fn older_versions_differ_as_documented_and_in_nothing_else() {
    for build in Build::OLDER {
        let Some(oracle) = build.find() else { continue };
        println!(
            "Generated queries and times, {}:\n{}",
            build.name,
            compare(&oracle, build)
        );
    }
}
