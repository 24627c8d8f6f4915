//! A lab asked through `regatta`, as a user with a script asks it: by JSON. Knows no sentence that is meant for people.

use serde_json::Value;

use crate::{DEVICE, Lab, eventually, succeed_output};

impl Lab {
    /// What a command that must succeed prints as JSON.
    ///
    /// # Panics
    /// When it fails, or prints something else.
    #[must_use]
    pub fn json(&self, words: &[&str]) -> Value {
        let output = succeed_output(self.regatta().args(words).args(["--format", "json"]));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Asks the lab's device for one run of the bundled benchmark without waiting for it, and returns its id. `words` are the rest
    /// of the command.
    ///
    /// # Panics
    /// When the run is refused.
    #[must_use]
    pub fn request_run(&self, words: &[&str]) -> String {
        let common = ["run", "--device", DEVICE, "--benchmark", "digits", "--no-wait"];
        let requested = self.json(&[&common, words].concat());
        requested["runs"][0]["run"].as_str().expect("a run id").to_owned()
    }

    /// One run as `runs show` tells it.
    ///
    /// # Panics
    /// When there is no such run.
    #[must_use]
    pub fn show(&self, run: &str) -> Value {
        self.json(&["runs", "show", run])
    }

    /// A run's phase.
    ///
    /// # Panics
    /// When there is no such run.
    #[must_use]
    pub fn phase(&self, run: &str) -> String {
        self.show(run)["phase"].as_str().unwrap_or("unknown").to_owned()
    }

    /// Waits until a run is in a phase.
    ///
    /// # Panics
    /// When it is not within 90 s.
    pub fn wait_for_phase(&self, run: &str, expected: &str) {
        eventually(&format!("run {run} to be {expected}"), 90, || {
            self.phase(run) == expected
        });
    }
}
