//! The obstacles to a submission of a run's figure, from the run's documents, and the markers that show them in a word.
//!
//! The round's rules on values are in the conf files and in the checker.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{EngineKind, LoadgenChoice, RunLength, RunSpec, RunTask};

/// A short marker beside a run's verdict. A run with any marker cannot be submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RunMarker {
    /// The engine does not execute the model: its times or answers are made up.
    #[serde(rename = "simulated")]
    Simulated,
    /// MLCommons does not accept the run as a result, for example because Regatta's own LoadGen ran it.
    #[serde(rename = "not a result")]
    NotAResult,
    /// The run is shorter than the round requires.
    #[serde(rename = "short")]
    Short,
}

impl RunMarker {
    /// Returns the word in tables, messages and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::NotAResult => "not a result",
            Self::Short => "short",
        }
    }
}

impl fmt::Display for RunMarker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A reason in a run's spec why its results can never be submitted. `Display` gives the sentence in the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmissionObstacle<'a> {
    /// The run measures nothing.
    #[error("its task is {}, which is not a measurement", .0.describe())]
    Task(RunTask),
    /// Regatta's own LoadGen.
    #[error("run by Regatta's own LoadGen: a submission requires the MLCommons LoadGen")]
    OwnLoadgen,
    /// An engine that does not execute the model.
    #[error("the {0} engine computes nothing")]
    Engine(EngineKind),
    /// A benchmark that is not one of MLPerf's.
    #[error("benchmark {name}: {reason}")]
    Benchmark {
        /// The benchmark's name.
        name: &'a str,
        /// The reason in the benchmark's file.
        reason: &'a str,
    },
    /// The length of a test run.
    #[error("a test run of 60 s, not of full length")]
    TestRun,
    /// A requested duration in milliseconds.
    #[error("a run of {0} ms, not of full length")]
    Duration(u64),
}

impl SubmissionObstacle<'_> {
    /// Returns the marker that shows the obstacle.
    #[must_use]
    pub const fn marker(self) -> RunMarker {
        match self {
            Self::Engine(_) => RunMarker::Simulated,
            Self::Task(_) | Self::OwnLoadgen | Self::Benchmark { .. } => RunMarker::NotAResult,
            Self::TestRun | Self::Duration(_) => RunMarker::Short,
        }
    }
}

impl RunSpec {
    /// Returns why results of this run can never be submitted: its LoadGen, its engine, its benchmark, its length.
    #[must_use]
    pub fn submission_obstacles(&self) -> Vec<SubmissionObstacle<'_>> {
        if !self.task.is_measurement() {
            return vec![SubmissionObstacle::Task(self.task)];
        }
        let mut obstacles = Vec::new();
        if self.loadgen == LoadgenChoice::Native {
            obstacles.push(SubmissionObstacle::OwnLoadgen);
        }
        if !self.engine.kind.computes() {
            obstacles.push(SubmissionObstacle::Engine(self.engine.kind));
        }
        if let Some(reason) = &self.benchmark.not_submittable {
            let name = &self.benchmark.name;
            obstacles.push(SubmissionObstacle::Benchmark { name, reason });
        }
        match self.length {
            // An accuracy run is one pass over the data set, whatever duration was requested.
            _ if !self.mode.has_verdict() => {}
            RunLength::Full => {}
            RunLength::TestRun => obstacles.push(SubmissionObstacle::TestRun),
            RunLength::Duration(milliseconds) => obstacles.push(SubmissionObstacle::Duration(milliseconds)),
        }
        obstacles
    }

    /// Returns the obstacles to a submission as sentences.
    #[must_use]
    pub fn not_a_measurement(&self) -> Vec<String> {
        let obstacles = self.submission_obstacles();
        obstacles.iter().map(ToString::to_string).collect()
    }
}
