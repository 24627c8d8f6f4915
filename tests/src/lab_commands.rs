//! Queries a lab through `regatta` and its JSON output, as a user's script does. It does not depend on text for people.

use serde_json::Value;

use crate::{DEVICE, Lab, eventually, succeed_output};

impl Lab {
    /// Runs a command and parses its JSON output.
    ///
    /// # Panics
    /// Panics when the command fails or prints no JSON.
    #[must_use]
    pub fn json(&self, words: &[&str]) -> Value {
        let output = succeed_output(self.regatta().args(words).args(["--format", "json"]));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Returns the URL of the live page, once the coordinator serves it.
    ///
    /// # Panics
    /// Panics when it does not within 30 s.
    #[must_use]
    pub fn page_url(&self) -> String {
        let mut url = None;
        eventually("the live page", 30, || {
            // The exit code is 1 when something needs attention.
            let status = self.regatta().args(["status", "--format", "json"]).output();
            let status: Option<Value> = serde_json::from_slice(&status.expect("regatta runs").stdout).ok();
            url = status.and_then(|status| Some(status["coordinator"]["page"].as_str()?.to_owned()));
            url.is_some()
        });
        url.expect("it was found")
    }

    /// Requests a run of the bundled benchmark on the lab's device and returns its id without waiting. `words` are further arguments.
    ///
    /// # Panics
    /// Panics when the run is refused.
    #[must_use]
    pub fn request_run(&self, words: &[&str]) -> String {
        let common = ["run", "--device", DEVICE, "--benchmark", "digits", "--no-wait"];
        let requested = self.json(&[&common, words].concat());
        requested["runs"][0]["run"].as_str().expect("a run id").to_owned()
    }

    /// Returns a run as `runs show` prints it.
    ///
    /// # Panics
    /// Panics when the store does not have the run.
    #[must_use]
    pub fn show(&self, run: &str) -> Value {
        self.json(&["runs", "show", run])
    }

    /// Returns a run's phase.
    ///
    /// # Panics
    /// Panics when the store does not have the run.
    #[must_use]
    pub fn phase(&self, run: &str) -> String {
        self.show(run)["phase"].as_str().unwrap_or("unknown").to_owned()
    }

    /// Waits until a run is in a phase.
    ///
    /// # Panics
    /// Panics when that takes more than 90 s.
    pub fn wait_for_phase(&self, run: &str, expected: &str) {
        eventually(&format!("run {run} to be {expected}"), 90, || {
            self.phase(run) == expected
        });
    }
}
