//! Builds the engines that are missing for trials, each once and in a separate process. The trial's run names the engine.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use super::{process, trial_failure::TrialFailure};

/// A builder of engines for one search.
pub(super) struct Builder {
    pub(super) program: PathBuf,
    /// The directory for output of builds.
    pub(super) directory: PathBuf,
    /// Optimisation profiles of every GPU engine: one per stream of any trial, so that one engine serves all trials.
    pub(super) profiles: usize,
    /// Additional flags of every build, without dashes.
    pub(super) flags: Vec<String>,
    /// All builds and their outcomes.
    pub(super) tried: Vec<Build>,
}

pub(super) struct Build {
    words: Vec<String>,
    /// The build time, or why it failed.
    outcome: Result<Duration, TrialFailure>,
}

impl Builder {
    /// Builds the engine that a run named. Returns `false` if it was built before, so something else must be missing for the run.
    ///
    /// # Errors
    /// When the build fails or failed before.
    pub(super) fn build(&mut self, missing: &[String], patience: Duration) -> Result<bool, TrialFailure> {
        let words = self.words(missing);
        if let Some(known) = self.tried.iter().find(|build| build.words == words) {
            return known.outcome.clone().map(|_| false);
        }
        let begun = Instant::now();
        let outcome = process::run(&self.program, &words, &self.directory, patience)
            .and_then(|ended| {
                if ended.is_well() {
                    Ok(begun.elapsed())
                } else {
                    Err(ended.failure())
                }
            })
            .map_err(|failure| TrialFailure(format!("its engine is not built: {failure}")));
        self.tried.push(Build {
            words,
            outcome: outcome.clone(),
        });
        outcome.map(|_| true)
    }

    /// Returns the arguments with the search's profiles and flags.
    fn words(&self, missing: &[String]) -> Vec<String> {
        let mut words = missing.to_vec();
        let position = words.iter().position(|word| word == "--profiles");
        let requested = position.and_then(|place| words.get(place + 1)?.parse().ok());
        let profiles = requested.unwrap_or(1).max(self.profiles).to_string();
        let is_for_dla = words.iter().any(|word| word == "--dla-core");
        match position.and_then(|place| words.get_mut(place + 1)) {
            Some(word) => *word = profiles,
            None if is_for_dla => {}
            None => words.extend(["--profiles".to_owned(), profiles]),
        }
        words.extend(self.flags.iter().map(|flag| format!("--{flag}")));
        words
    }

    /// Returns a line per build: its time or `failed`, and its command. The trial's row states why a build failed.
    pub(super) fn built_engines(&self) -> Vec<String> {
        let line = |build: &Build| {
            let outcome = match &build.outcome {
                Ok(time) => format!("{:.1} s", time.as_secs_f64()),
                Err(_) => "failed".to_owned(),
            };
            format!("{outcome}  regatta-agent {}", build.words.join(" "))
        };
        self.tried.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(missing: &str, profiles: usize, flags: &[&str]) -> String {
        let builder = Builder {
            program: PathBuf::new(),
            directory: PathBuf::new(),
            profiles,
            flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
            tried: Vec::new(),
        };
        let missing: Vec<String> = missing.split(' ').map(str::to_owned).collect();
        builder.words(&missing).join(" ")
    }

    #[test]
    fn engines_for_the_gpu_have_a_profile_for_every_stream() {
        assert_eq!(words("--batch 8", 4, &[]), "--batch 8 --profiles 4");
        assert_eq!(words("--profiles 2 --batch 8", 4, &[]), "--profiles 4 --batch 8");
        assert_eq!(words("--profiles 8", 4, &[]), "--profiles 8");
        assert_eq!(
            words("--dla-core 0", 4, &["calibration-cache=a.cache"]),
            "--dla-core 0 --calibration-cache=a.cache"
        );
    }
}
