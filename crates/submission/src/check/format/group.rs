//! Groups of findings with the same rule, severity and fix, then with the same words.

use std::collections::BTreeMap;

use crate::check::finding::{Finding, Severity};

/// A group.
pub(super) struct Group<'a> {
    pub(super) severity: Severity,
    /// Name and source of the rule.
    pub(super) rule: &'a str,
    pub(super) fix: &'a str,
    /// What was found, and where, in the order of paths.
    pub(super) messages: Vec<(&'a str, Vec<&'a Finding>)>,
}

impl Group<'_> {
    /// How many findings it has, in words.
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

/// Groups in the order of severity, then of rules.
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

/// How a severity is called.
pub(super) fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// How many checks found it, where that is more than one.
pub(super) fn times(finding: &Finding) -> String {
    match finding.count {
        1 => String::new(),
        count => format!(" ({count} times)"),
    }
}

/// The words before a fix; a note needs no fix.
pub(super) fn advice(severity: Severity) -> &'static str {
    match severity {
        Severity::Error | Severity::Warning => "To fix it: ",
        Severity::Note => "",
    }
}

/// A rule's two parts.
pub(super) fn name_and_source(rule: &str) -> (&str, &str) {
    rule.split_once(": ").unwrap_or((rule, ""))
}
