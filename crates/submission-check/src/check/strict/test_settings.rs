//! Checks the settings by which a run is a submission's or that of one compliance test.

use regatta_loadgen_conf::{Conf, ConfKind, TestSettings};
use regatta_mllog::read::Value;
use regatta_types::{Mode, Scenario};

use super::{
    figures,
    logged_run::{LoggedRun, Purpose},
};
use crate::check::{finding::Findings, rules};

/// Checks how samples are issued, which responses are logged, and the name of a network SUT.
pub(super) fn check(run: &LoggedRun<'_>, purpose: Purpose<'_>, findings: &mut Findings) {
    equal_issue(run, findings);
    issue_order(run, purpose, findings);
    sampling(run, purpose, findings);
    network(run, findings);
}

/// Checks that only TEST04 issues one sample again and again.
fn issue_order(run: &LoggedRun<'_>, purpose: Purpose<'_>, findings: &mut Findings) {
    for key in [
        "effective_performance_issue_unique",
        "effective_performance_issue_same",
    ] {
        let test04 = purpose == Purpose::Test("TEST04");
        let expected = test04 && key.ends_with("same");
        if run.log.flag(key).is_some_and(|found| found != expected) {
            let text = format!("{key} is {}", run.found(key));
            let fix = if test04 {
                "run with TEST04's audit.config"
            } else {
                "run without audit.config"
            };
            run.error_with_fix(findings, rules::TEST_SETTING, key, text, fix);
        }
    }
}

/// Checks that every sample is issued equally often.
///
/// LoadGen before v5.0 may not log the setting. Then the queries must be whole sets of samples.
fn equal_issue(run: &LoggedRun<'_>, findings: &mut Findings) {
    const KEY: &str = "effective_sample_concatenate_permutation";
    const FIX: &str = "set sample_concatenate_permutation to 1";
    if !run.case.rules.equal_issue {
        return;
    }
    match run.log.value(KEY) {
        Some(_) if run.log.flag(KEY) == Some(true) => {}
        Some(_) => {
            let text = format!("{KEY} is {}", run.found(KEY));
            run.error_with_fix(findings, rules::EQUAL_ISSUE, KEY, text, FIX);
        }
        None if figures::issues_whole_sets(run) => {}
        None => {
            let text = format!("{KEY} is not logged, and the queries are not complete sets of samples");
            run.error_with_fix(findings, rules::EQUAL_ISSUE, "generated_query_count", text, FIX);
        }
    }
}

/// Checks that TEST01 logs the responses that its `audit.config` samples, and that other runs log none.
fn sampling(run: &LoggedRun<'_>, purpose: Purpose<'_>, findings: &mut Findings) {
    const SEED: &str = "effective_accuracy_log_rng_seed";
    let test01 = purpose == Purpose::Test("TEST01");
    let keys = [
        "effective_accuracy_log_sampling_target",
        "effective_accuracy_log_probability",
    ];
    let Some(key) = keys.into_iter().find(|key| run.log.value(key).is_some()) else {
        return;
    };
    let logs = keys
        .iter()
        .any(|key| run.log.number(key).is_some_and(|share| share > 0.0));
    if logs != test01 {
        let (text, fix) = match logs {
            true => ("responses were logged", "run without TEST01's audit.config"),
            false => ("no responses were logged", "run with TEST01's audit.config"),
        };
        return run.error_with_fix(
            findings,
            rules::TEST_SETTING,
            key,
            format!("{text}: {key} is {}", run.found(key)),
            fix,
        );
    }
    let Some(expected) = test01.then(|| sampling_seed(run)).flatten() else {
        return;
    };
    if run.log.value(SEED).and_then(Value::as_u64) != Some(expected) {
        let text = format!("{SEED} is {}, TEST01 has {expected}", run.found(SEED));
        run.error_with_fix(
            findings,
            rules::TEST_SETTING,
            SEED,
            text,
            "run with TEST01's audit.config",
        );
    }
}

/// Returns the seed with which the round's TEST01 samples the logged responses.
fn sampling_seed(run: &LoggedRun<'_>) -> Option<u64> {
    let audit = run.case.context.round.audits.get("TEST01")?;
    let conf = Conf::parse("audit.config", &audit.config).ok()?;
    let mut settings = TestSettings::new(Scenario::Offline, Mode::PerformanceOnly);
    settings.apply(&conf, ConfKind::Audit, "*").ok()?;
    Some(settings.accuracy_log_rng_seed)
}

/// Checks that the SUT of a network system says that it is one.
fn network(run: &LoggedRun<'_>, findings: &mut Findings) {
    let named = run
        .log
        .text("sut_name")
        .is_some_and(|name| name.contains("Network SUT"));
    if run.case.job.description.network && !named {
        let text = format!("sut_name is {}", run.found("sut_name"));
        run.error_with_fix(
            findings,
            rules::NETWORK,
            "sut_name",
            text,
            "a network SUT's name says `Network SUT`",
        );
    }
}
