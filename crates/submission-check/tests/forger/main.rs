//! Tests the strict check with random forgeries, from a seed, by a forger who knows LoadGen and the check. Each class of
//! forgeries changes a kind of statement in published, staged or synthetic trees, so that they contradict themselves. The strict
//! check finds at least 95 % of them by the rules of the class, and nothing of the kind in the unchanged trees.
//!
//! Undetectable changes are excluded: a consistently rewritten log, times moved by quarters of an hour as by a time zone, an
//! accuracy that no other figure determines.

#![expect(clippy::unwrap_used, reason = "test code")]

mod classes;
mod logs;
mod random;
mod specimen;

use std::{collections::BTreeSet, env, fmt::Write as _};

use regatta_submission_check::check::{Finding, Severity};

use classes::{CLASSES, Class};
use random::Random;
use specimen::{Specimen, specimens};

/// Forgeries of each class; `.ci/long` makes more.
const CASES: u32 = 4;
/// The percentage that must be found.
const FOUND: usize = 95;

fn rule(finding: &Finding) -> &str {
    finding.rule.split(": ").next().unwrap()
}

/// Returns the system, benchmark and scenario of a path.
fn scenario(path: &str) -> Vec<&str> {
    path.split('/').skip(3).take(3).collect()
}

/// Makes a forgery. Returns what was changed and whether it was found; `None` where the specimen has nothing to forge.
fn forge(class: &Class, specimen: &Specimen, random: &mut Random) -> Option<(String, bool)> {
    let forgery = (class.forge)(specimen, random)?;
    let found = specimen.new_findings(&forgery.edits);
    let by_class = found.iter().any(|finding| {
        let place = forgery
            .edits
            .iter()
            .any(|(path, _)| scenario(path) == scenario(&finding.path));
        place && finding.severity <= class.severity && class.rules.contains(&rule(finding))
    });
    let mut what = format!("{}: {}", specimen.name, forgery.what);
    if !by_class {
        for finding in &found {
            write!(
                what,
                "\n    {}: {} {}",
                rule(finding),
                finding.path,
                finding.message
            )
            .unwrap();
        }
    }
    Some((what, by_class))
}

#[test]
fn forgeries_of_every_class_are_found() {
    let cases = env::var("REGATTA_FORGER_CASES").map_or(CASES, |text| text.parse().unwrap());
    let specimens = specimens();
    let (mut all, mut found, mut missed) = (0, 0, String::new());
    let mut forged = BTreeSet::new();
    for (number, class) in (1..).zip(CLASSES) {
        let mut random = Random::new(number);
        let (mut made, mut of_class) = (0, 0);
        // Not every specimen has what a class forges.
        for _ in 0..cases * 40 {
            if made == cases {
                break;
            }
            let specimen = random.pick(&specimens);
            let Some((what, by_class)) = forge(class, specimen, &mut random) else {
                continue;
            };
            made += 1;
            of_class += u32::from(by_class);
            forged.insert(class.name);
            if !by_class {
                writeln!(missed, "{}: {what}", class.name).unwrap();
            }
        }
        println!("{:3} of {made:3} {}", of_class, class.name);
        all += made as usize;
        found += of_class as usize;
    }
    println!("{found} of {all} forgeries found\n{missed}");
    // Without the published results, only generated trees are forged.
    let needed = if specimens.len() > 3 {
        CLASSES.len()
    } else {
        CLASSES.len() / 2
    };
    assert!(forged.len() >= needed, "forged: {forged:?}");
    assert!(
        found * 100 >= all * FOUND,
        "{found} of {all} are too few\n{missed}"
    );
}

#[test]
fn published_trees_have_no_such_findings() {
    for specimen in specimens() {
        let kinds: BTreeSet<_> = CLASSES.iter().flat_map(|class| class.rules).collect();
        let found: Vec<_> = specimen
            .untouched
            .iter()
            .filter(|finding| finding.severity == Severity::Error && kinds.contains(&rule(finding)))
            .filter(|finding| !specimen.known.iter().any(|known| finding.message.contains(known)))
            .collect();
        assert!(found.is_empty(), "{}: {found:#?}", specimen.name);
    }
}
