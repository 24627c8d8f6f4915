//! Checks the audits that the endpoints harness ran, and the checks that replace audits which it cannot run.

use serde_json::Value;

use super::EndpointsJudge;
use crate::check::{finding::Findings, official::truthy, rules, run_log::shown, strict::system};

impl EndpointsJudge<'_> {
    /// Checks that the audits of the round passed.
    pub(super) fn tests(&self, findings: &mut Findings) {
        if !self.case.bound() {
            return;
        }
        for test in &self.case.rules.tests {
            self.output_tokens(test, findings);
            let Some(name) = self.endpoints.audits.get(test) else {
                continue;
            };
            let path = format!("{}/audit/audit_{name}.json", self.case.results);
            if !self.case.context.tree.exists(&path) {
                if self.endpoints.required_audits.contains(test) {
                    let fix = format!("run {test} and add its document");
                    findings.error(rules::TESTS, &path, "is missing", fix);
                }
                continue;
            }
            let Some(audit) = system::object(self.case.context, &path, rules::TESTS, findings) else {
                continue;
            };
            let passed = audit.get("passed").is_some_and(truthy);
            if audit.get("test").and_then(Value::as_str) != Some(name) || !passed {
                let text = format!("does not say that {name} passed");
                findings.error(rules::TESTS, &path, text, format!("repeat {test}"));
            }
        }
    }

    /// Checks a test that limits the mean number of output tokens, which is in the run's own summary.
    fn output_tokens(&self, test: &str, findings: &mut Findings) {
        let Some(&(low, high)) = self.endpoints.mean_output_tokens.get(test) else {
            return;
        };
        let log = &self.logs.performance;
        let mean = log.value("mean_output_tokens");
        if !mean
            .and_then(regatta_mllog::read::Value::as_f64)
            .is_some_and(|mean| (low..=high).contains(&mean))
        {
            let found = mean.map_or_else(|| "missing".to_owned(), shown);
            let text =
                format!("{test}: the mean of output tokens is {found}, but must be from {low} to {high}");
            let fix = "see that answers are neither cut nor padded";
            findings.error(rules::TESTS, &self.documents.summary.path, text, fix);
        }
    }
}
