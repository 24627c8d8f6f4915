//! Logs of other runs.

use super::{Class, DETAIL, Forgery, SUMMARY, class};
use crate::{logs::Log, random::Random, specimen::Specimen};

const OWN_RUN: &[&str] = &["own-run"];

/// The directory that holds a file.
fn directory(path: &str) -> &str {
    path.rsplit_once('/').unwrap().0
}

/// Copies LoadGen's two files of one directory over another's.
fn copy(specimen: &Specimen, from: &str, to: &str, change: impl Fn(&mut Log)) -> Option<Forgery> {
    let mut log = Log::of(&specimen.text(&format!("{from}/{DETAIL}")));
    change(&mut log);
    let summary = specimen.read(&format!("{from}/{SUMMARY}"));
    let edits = vec![
        (format!("{to}/{DETAIL}"), log.bytes()),
        (format!("{to}/{SUMMARY}"), summary),
    ];
    Some(Forgery {
        what: format!("{from} in the place of {to}"),
        edits,
    })
}

/// Returns two paths with this ending in two systems.
fn two_places(specimen: &Specimen, random: &mut Random, ending: &str) -> Option<(String, String)> {
    let from = specimen.any_file(random, |path| path.ends_with(ending))?;
    let system = |path: &str| path.split('/').nth(3).map(str::to_owned);
    let to = specimen.any_file(random, |path| {
        path.ends_with(ending) && system(path) != system(&from)
    })?;
    Some((directory(&from).to_owned(), directory(&to).to_owned()))
}

pub(super) const OTHER_SYSTEM: Class = class("the run of another system", OWN_RUN, |specimen, random| {
    let (from, to) = two_places(specimen, random, &format!("performance/run_1/{DETAIL}"))?;
    copy(specimen, &from, &to, |_| {})
});

pub(super) const ACCURACY_RUN: Class = class(
    "the accuracy run of another system",
    OWN_RUN,
    |specimen, random| {
        let (from, to) = two_places(specimen, random, &format!("accuracy/{DETAIL}"))?;
        copy(specimen, &from, &to, |_| {})
    },
);

pub(super) const WITH_OTHER_STAMPS: Class = class(
    "the run of another system with other stamps",
    OWN_RUN,
    |specimen, random| {
        let (from, to) = two_places(specimen, random, &format!("performance/run_1/{DETAIL}"))?;
        let ms = 1 + random.below(8);
        copy(specimen, &from, &to, |log| {
            for key in ["power_begin", "power_end"] {
                let stamp = log.get(key).unwrap().trim_matches('"').to_owned();
                let last = stamp.len() - 1;
                let digit = stamp[last..].parse::<usize>().unwrap();
                log.set(key, &format!("\"{}{}\"", &stamp[..last], (digit + ms) % 10));
            }
        })
    },
);

pub(super) const TEST_FROM_RESULT: Class = class(
    "the result's run in the place of a test's",
    OWN_RUN,
    |specimen, random| {
        let test = specimen.any_file(random, |path| {
            path.contains("/TEST0") && path.ends_with(&format!("run_1/{DETAIL}"))
        })?;
        let to = directory(&test).to_owned();
        let (scenario, rest) = to.split_once("/TEST")?;
        let result = scenario.replace("/compliance/", "/results/");
        let test = rest.split('/').next()?.to_owned();
        copy(specimen, &format!("{result}/performance/run_1"), &to, |log| {
            if test == "04" {
                log.set("requested_performance_issue_same", "true");
                log.set("effective_performance_issue_same", "true");
            } else {
                for start in ["requested", "effective"] {
                    log.set(&format!("{start}_accuracy_log_rng_seed"), "720381539243781796");
                    log.set(&format!("{start}_accuracy_log_sampling_target"), "4096");
                }
            }
        })
    },
);
