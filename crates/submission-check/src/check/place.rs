//! The path of a scenario in a submission.

/// The names of the directories that lead to a scenario.
#[derive(Debug, Clone)]
pub(super) struct ScenarioPlace {
    pub(super) division: String,
    pub(super) submitter: String,
    pub(super) system: String,
    pub(super) model: String,
    /// The directory's name, which may be in lower case.
    pub(super) scenario: String,
}

impl ScenarioPlace {
    /// Returns the submitter's directory.
    pub(super) fn home(&self) -> String {
        format!("{}/{}", self.division, self.submitter)
    }

    /// Returns the scenario's directory in a part of the submission, for example in `results`.
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
