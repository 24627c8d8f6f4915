//! The conditions that a comparison and a history have in common: the part of a URL's query that `--benchmark --scenario --since --include`
//! are on the command line.

use form_urlencoded::Serializer;
use regatta_types::Scenario;

use super::query_words::{InvalidQuery, one_of, short};
use regatta_lab_store::lab_error::LabError;
use regatta_lab_views::{
    comparisons::{Inclusion, RunConditions},
    lookup::{RunFilter, since},
};

/// The longest selection in characters: about fifty run ids.
pub(super) const MAX_SELECTION: usize = 2_000;

/// Conditions on runs. The default has none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ConditionQuery {
    /// The only benchmark.
    pub(super) benchmark: String,
    /// The only scenario.
    pub(super) scenario: Option<Scenario>,
    /// The time from which runs count by their request: a duration before now, or a date.
    pub(super) since: String,
    /// Whether short runs count.
    pub(super) has_short: bool,
    /// Whether runs of engines that execute no model count.
    pub(super) has_simulated: bool,
}

/// Returns the names of all scenarios.
pub(super) fn scenarios() -> Vec<&'static str> {
    Scenario::ALL.into_iter().map(Scenario::as_str).collect()
}

impl ConditionQuery {
    /// Parses a URL's query. `take_own` gets the names that are not conditions, with their values. Unknown names are ignored, because
    /// browsers and proxies add some.
    ///
    /// # Errors
    /// Returns [`InvalidQuery`] for an unknown scenario.
    pub(super) fn parse(query: &str, mut take_own: impl FnMut(&str, String)) -> Result<Self, InvalidQuery> {
        let mut parsed = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if !parsed.take(&name, &value)? {
                take_own(&name, value.into_owned());
            }
        }
        Ok(parsed)
    }

    /// Takes a condition. Returns `false` when the name is not the one of a condition.
    fn take(&mut self, name: &str, value: &str) -> Result<bool, InvalidQuery> {
        match name {
            "benchmark" => self.benchmark = short(value).to_owned(),
            "scenario" => self.scenario = one_of("scenario", value, &Scenario::ALL, Scenario::as_str)?,
            "since" => self.since = short(value).to_owned(),
            "short" => self.has_short = !value.is_empty(),
            "simulated" => self.has_simulated = !value.is_empty(),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Appends the conditions to a query's text.
    pub(super) fn append_to(&self, query: &mut Serializer<'_, String>) {
        let flag = |is_set: bool| if is_set { "1" } else { "" };
        for (name, value) in [
            ("benchmark", self.benchmark.as_str()),
            ("scenario", self.scenario.map_or("", Scenario::as_str)),
            ("since", self.since.as_str()),
            ("short", flag(self.has_short)),
            ("simulated", flag(self.has_simulated)),
        ] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
    }

    /// Returns the conditions as the command line's flags have them.
    ///
    /// # Errors
    /// Returns an error when the time is invalid.
    pub(super) fn conditions(&self) -> Result<RunConditions, LabError> {
        let mut filter = RunFilter::default();
        filter
            .benchmark
            .extend(Some(self.benchmark.clone()).filter(|name| !name.is_empty()));
        filter.scenario.extend(self.scenario);
        if !self.since.is_empty() {
            let parsed = since(&self.since).map_err(|what| LabError::misuse(format!("Since: {what}")))?;
            filter.since = Some(parsed);
        }
        let included = [
            (self.has_short, Inclusion::Short),
            (self.has_simulated, Inclusion::Simulated),
        ];
        let include = included.into_iter().filter(|(is_set, _)| *is_set);
        Ok(RunConditions {
            filter,
            include: include.map(|(_, inclusion)| inclusion).collect(),
        })
    }

    /// Returns the equivalent flags of the command line.
    pub(super) fn flags(&self) -> Vec<String> {
        let mut flags = Vec::new();
        for (flag, value) in [
            ("--benchmark", self.benchmark.as_str()),
            ("--scenario", self.scenario.map_or("", Scenario::as_str)),
            ("--since", self.since.as_str()),
        ] {
            if !value.is_empty() {
                flags.extend([flag.to_owned(), value.to_owned()]);
            }
        }
        let included = [(self.has_short, "short"), (self.has_simulated, "simulated")];
        let included: Vec<&str> = included
            .into_iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, word)| word)
            .collect();
        if !included.is_empty() {
            flags.extend(["--include".to_owned(), included.join(",")]);
        }
        flags
    }
}

/// Returns the words of a selection, without white space around them.
///
/// # Errors
/// Returns an error when they are longer than a selection may be.
pub(super) fn selection(words: &str) -> Result<String, LabError> {
    let words = words.trim();
    if words.chars().count() > MAX_SELECTION {
        return Err(
            LabError::misuse(format!("a selection has at most {MAX_SELECTION} characters"))
                .hint("select by campaign, label or device"),
        );
    }
    Ok(words.to_owned())
}
