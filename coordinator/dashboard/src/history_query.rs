//! The histories that the page of histories shows: the query of its URL.

use form_urlencoded::Serializer;
use regatta_text::quote_for_shell_if_needed;

use super::{
    condition_query::{ConditionQuery, selection},
    query_words::InvalidQuery,
};
use regatta_lab_store::lab_error::LabError;
use regatta_lab_views::comparisons::{HistoryReport, Runs, histories};

/// The query of the page of histories. The default shows every history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct HistoryQuery {
    /// The selection of runs; nothing selects all.
    pub(super) runs: String,
    /// The conditions on them.
    pub(super) conditions: ConditionQuery,
}

impl HistoryQuery {
    /// Parses a URL's query.
    ///
    /// # Errors
    /// Returns [`InvalidQuery`] for a known name with an unknown value.
    pub(super) fn parse(query: &str) -> Result<Self, InvalidQuery> {
        let mut runs = String::new();
        let conditions = ConditionQuery::parse(query, |name, value| {
            if name == "runs" {
                runs = value;
            }
        })?;
        Ok(Self { runs, conditions })
    }

    /// Returns the query's text without default values.
    pub(super) fn to_query(&self) -> String {
        let mut query = Serializer::new(String::new());
        if !self.runs.is_empty() {
            query.append_pair("runs", &self.runs);
        }
        self.conditions.append_to(&mut query);
        query.finish()
    }

    /// Computes the histories. The result is the one of `regatta history`.
    ///
    /// # Errors
    /// Returns an error when the selection is unknown, or no run counts.
    pub(super) fn report(&self, all: &Runs<'_>) -> Result<HistoryReport, LabError> {
        let words = selection(&self.runs)?;
        let words = Some(words.as_str()).filter(|words| !words.is_empty());
        histories(words, &self.conditions.conditions()?, all)
    }

    /// Returns the command that prints the same.
    pub(super) fn command(&self) -> String {
        let mut words = vec!["regatta".to_owned(), "history".to_owned()];
        words.extend(Some(self.runs.trim().to_owned()).filter(|runs| !runs.is_empty()));
        words.extend(self.conditions.flags());
        let words: Vec<_> = words.iter().map(|word| quote_for_shell_if_needed(word)).collect();
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_reads_and_prints_and_is_a_command() {
        let text = "runs=device%3Aorin-1&benchmark=resnet50&scenario=Server";
        let query = HistoryQuery::parse(text).unwrap();
        assert_eq!(query.to_query(), text);
        assert_eq!(
            query.command(),
            "regatta history device:orin-1 --benchmark resnet50 --scenario Server"
        );
        assert_eq!(HistoryQuery::default().command(), "regatta history");
    }
}
