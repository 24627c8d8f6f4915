//! Where a scenario lies in a submission, whatever its checker.

/// The names of the directories that lead to a scenario.
#[derive(Debug, Clone)]
pub(super) struct ScenarioPlace {
    pub(super) division: String,
    pub(super) submitter: String,
    pub(super) system: String,
    pub(super) model: String,
    /// As it is spelt there, perhaps in lower case.
    pub(super) scenario: String,
}

impl ScenarioPlace {
    /// The submitter's directory.
    pub(super) fn home(&self) -> String {
        format!("{}/{}", self.division, self.submitter)
    }

    /// The scenario's directory below a part of the submission, such as `results`.
    pub(super) fn below(&self, part: &str) -> String {
        let Self {
            division,
            submitter,
            system,
            model,
            scenario,
        } = self;
        format!("{division}/{submitter}/{part}/{system}/{model}/{scenario}")
    }
}
