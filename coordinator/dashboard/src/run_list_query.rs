//! The runs that the page of runs shows: the query of its URL. It does not look at runs.

use clap::ValueEnum as _;
use form_urlencoded::Serializer;
use regatta_types::RunId;

use super::query_words::{InvalidQuery, one_of, short};
use regatta_lab_runs::RunVerdict;

/// The query of the page of runs. The default shows the newest runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct RunListQuery {
    /// A text that the device's name has, or the beginning of its id, in lower case.
    pub(super) device: String,
    /// The only benchmark.
    pub(super) benchmark: String,
    /// The only verdict or state: one of [`verdicts`].
    pub(super) verdict: Option<&'static str>,
    /// Only runs that were requested before this one.
    pub(super) before: Option<RunId>,
}

/// Returns the words of verdicts and states.
pub(super) fn verdicts() -> Vec<&'static str> {
    const WORDS: [&str; 7] = ["valid", "invalid", "pass", "fail", "failed", "aborted", "open"];
    let is_known = |word: &&str| RunVerdict::from_str(word, false).is_ok();
    WORDS.into_iter().filter(is_known).collect()
}

impl RunListQuery {
    /// Parses a URL's query. Unknown names are ignored, because browsers and proxies add some.
    ///
    /// # Errors
    /// Returns [`InvalidQuery`] for a known name with an unknown value.
    pub(super) fn parse(query: &str) -> Result<Self, InvalidQuery> {
        let mut parsed = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "device" => parsed.device = short(&value).to_lowercase(),
                "benchmark" => parsed.benchmark = short(&value).to_owned(),
                "verdict" => parsed.verdict = one_of("verdict", &value, &verdicts(), |word| word)?,
                // A run that was removed, or no id, is no reason to show nothing.
                "before" => parsed.before = value.parse().ok(),
                _ => {}
            }
        }
        Ok(parsed)
    }

    /// Returns the query's text without default values.
    pub(super) fn to_query(&self) -> String {
        let mut query = Serializer::new(String::new());
        let before = self.before.map(|run| run.to_string());
        for (name, value) in [
            ("device", Some(self.device.as_str())),
            ("benchmark", Some(self.benchmark.as_str())),
            ("verdict", self.verdict),
            ("before", before.as_deref()),
        ] {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                query.append_pair(name, value);
            }
        }
        query.finish()
    }

    /// Returns the query of the runs that were requested before another one.
    pub(super) fn before(&self, run: RunId) -> Self {
        Self {
            before: Some(run),
            ..self.clone()
        }
    }

    /// Returns the verdict by which runs are selected.
    pub(super) fn run_verdict(&self) -> Option<RunVerdict> {
        RunVerdict::from_str(self.verdict?, false).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_reads_and_prints() {
        let text =
            "device=boat-1&benchmark=bert-99&verdict=invalid&before=01a208a0-4341-749c-bbff-050b592c6cf9";
        let query = RunListQuery::parse(text).unwrap();
        assert_eq!(query.to_query(), text);
        assert_eq!(query.run_verdict(), Some(RunVerdict::Invalid));
        assert_eq!(
            RunListQuery::parse("verdict=&before=x").unwrap(),
            RunListQuery::default()
        );
        let refused = RunListQuery::parse("verdict=good").unwrap_err().to_string();
        assert!(
            refused.starts_with("`verdict` is one of: valid, invalid"),
            "{refused}"
        );
    }

    #[test]
    fn every_verdict_of_the_command_line_is_there() {
        let all: Vec<String> = RunVerdict::value_variants()
            .iter()
            .filter_map(|verdict| Some(verdict.to_possible_value()?.get_name().to_owned()))
            .collect();
        assert_eq!(verdicts(), all);
    }
}
