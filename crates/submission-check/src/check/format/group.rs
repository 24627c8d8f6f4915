//! Groups findings by severity, rule and fix, then by message.

use std::collections::BTreeMap;

use crate::check::finding::{Finding, Severity};

/// A group of findings.
pub(super) struct Group<'a> {
    pub(super) severity: Severity,
    /// The name and the source of the rule.
    pub(super) rule: &'a str,
    pub(super) fix: &'a str,
    /// The messages and their findings, in path order.
    pub(super) messages: Vec<(&'a str, Vec<&'a Finding>)>,
}

impl Group<'_> {
    /// Returns the number of findings as text.
    pub(super) fn places(&self) -> String {
        match self
            .messages
            .iter()
            .map(|(_, places)| places.len())
            .sum::<usize>()
        {
            1 => "1 place".to_owned(),
            count => format!("{count} places"),
        }
    }
}

/// Groups findings, ordered by severity and then by rule.
pub(super) fn by_rule(findings: &[Finding]) -> Vec<Group<'_>> {
    let mut groups: BTreeMap<(Severity, &str, &str), BTreeMap<&str, Vec<&Finding>>> = BTreeMap::new();
    for finding in findings {
        let key = (finding.severity, finding.rule.as_str(), finding.fix.as_str());
        let messages = groups.entry(key).or_default();
        messages.entry(&finding.message).or_default().push(finding);
    }
    let group = |((severity, rule, fix), messages): ((_, _, _), BTreeMap<_, _>)| Group {
        severity,
        rule,
        fix,
        messages: messages.into_iter().collect(),
    };
    groups.into_iter().map(group).collect()
}

pub(super) fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// Returns the number of checks that found it as text, if it is more than one.
pub(super) fn times(finding: &Finding) -> String {
    match finding.count {
        1 => String::new(),
        count => format!(" ({count} times)"),
    }
}

/// Returns the words before a fix. A note needs no fix.
pub(super) fn advice(severity: Severity) -> &'static str {
    match severity {
        Severity::Error | Severity::Warning => "To fix it: ",
        Severity::Note => "",
    }
}

/// Splits a rule into its name and its source.
pub(super) fn name_and_source(rule: &str) -> (&str, &str) {
    rule.split_once(": ").unwrap_or((rule, ""))
}
