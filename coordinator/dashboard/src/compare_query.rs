//! The sides of a comparison on the page, parsed from the query of its URL.

use form_urlencoded::Serializer;
use regatta_text::quote_for_shell_if_needed;

use super::{
    condition_query::{ConditionQuery, selection},
    query_words::{InvalidQuery, short},
};
use regatta_lab_store::lab_error::LabError;
use regatta_lab_views::comparisons::{ComparisonReport, Runs, least_floor, report, select};

/// The query of the page of comparisons. The default compares nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CompareQuery {
    /// The selection of the base.
    pub(super) a: String,
    /// The selection that is compared with it.
    pub(super) b: String,
    /// The conditions on both.
    pub(super) conditions: ConditionQuery,
    /// The least A/A floor in percent, or nothing.
    pub(super) floor: String,
    /// Whether only rows with a difference are shown.
    pub(super) is_different_only: bool,
}

impl CompareQuery {
    /// Parses a URL's query.
    ///
    /// # Errors
    /// Returns [`InvalidQuery`] for a known name with an unknown value.
    pub(super) fn parse(query: &str) -> Result<Self, InvalidQuery> {
        let mut parsed = Self::default();
        parsed.conditions = ConditionQuery::parse(query, |name, value| match name {
            "a" => parsed.a = value,
            "b" => parsed.b = value,
            "floor" => short(&value).clone_into(&mut parsed.floor),
            "different" => parsed.is_different_only = !value.is_empty(),
            _ => {}
        })?;
        Ok(parsed)
    }

    /// Returns the query's text without default values.
    pub(super) fn to_query(&self) -> String {
        let mut query = Serializer::new(String::new());
        let different = if self.is_different_only { "1" } else { "" };
        for (name, value) in [
            ("a", self.a.as_str()),
            ("b", &self.b),
            ("floor", &self.floor),
            ("different", different),
        ] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        self.conditions.append_to(&mut query);
        query.finish()
    }

    /// Returns whether nothing is requested yet.
    pub(super) fn is_empty(&self) -> bool {
        self.a.trim().is_empty() && self.b.trim().is_empty()
    }

    /// Compares. The result is the one of `regatta compare`.
    ///
    /// # Errors
    /// Returns an error when a selection is unknown, or there is nothing to compare.
    pub(super) fn report(&self, all: &Runs<'_>) -> Result<ComparisonReport, LabError> {
        let sides = [selection(&self.a)?, selection(&self.b)?];
        if sides.iter().any(String::is_empty) {
            return Err(LabError::misuse("compare needs at least two selections")
                .hint("name the base in A, and the runs to compare with it in B"));
        }
        let floor = match self.floor.as_str() {
            "" => None,
            text => Some(least_floor(text).map_err(|what| LabError::misuse(format!("Floor: {what}")))?),
        };
        let selected = select(&sides, &self.conditions.conditions()?, None, all)?;
        report(selected, all, floor)
    }

    /// Returns the command that compares the same.
    pub(super) fn command(&self) -> String {
        let mut words = vec!["regatta".to_owned(), "compare".to_owned()];
        words.extend([&self.a, &self.b].map(|side| side.trim().to_owned()));
        words.extend(self.conditions.flags());
        if !self.floor.is_empty() {
            words.extend(["--floor".to_owned(), self.floor.clone()]);
        }
        let words: Vec<_> = words.iter().map(|word| quote_for_shell_if_needed(word)).collect();
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_reads_and_prints_and_is_a_command() {
        let text = "a=set%3Abatch%3D1&b=label%3Aedge%2Bset%3Ax%3Da%27b&floor=2&different=1&benchmark=bert-99&\
                    scenario=Offline&since=7d&short=1&simulated=1";
        let query = CompareQuery::parse(text).unwrap();
        assert_eq!(query.to_query(), text);
        assert_eq!(
            query.command(),
            r"regatta compare set:batch=1 'label:edge+set:x=a'\''b' --benchmark bert-99 --scenario Offline --since 7d --include short,simulated --floor 2"
        );
        let refused = CompareQuery::parse("scenario=Nothing").unwrap_err().to_string();
        assert!(
            refused.starts_with("`scenario` is one of: SingleStream"),
            "{refused}"
        );
        assert!(CompareQuery::parse("a=+&other=1").unwrap().is_empty());
    }
}
