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

/// The names of the directories that lead to a system.
#[derive(Debug, Clone, Copy)]
pub(super) struct SystemPlace<'a> {
    pub(super) division: &'a str,
    pub(super) submitter: &'a str,
    pub(super) system: &'a str,
}

impl SystemPlace<'_> {
    /// Returns the path of the system's description.
    pub(super) fn description(self) -> String {
        let Self {
            division,
            submitter,
            system,
        } = self;
        format!("{division}/{submitter}/systems/{system}.json")
    }

    /// Returns the directory of the system's results.
    pub(super) fn results(self) -> String {
        let Self {
            division,
            submitter,
            system,
        } = self;
        format!("{division}/{submitter}/results/{system}")
    }

    /// Returns the place of a scenario of the system.
    pub(super) fn scenario(self, model: &str, scenario: &str) -> ScenarioPlace {
        ScenarioPlace {
            division: self.division.to_owned(),
            submitter: self.submitter.to_owned(),
            system: self.system.to_owned(),
            model: model.to_owned(),
            scenario: scenario.to_owned(),
        }
    }
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
