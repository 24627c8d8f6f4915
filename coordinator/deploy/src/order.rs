//! The options of a deployment, the plan for one board, and the outcome.

use std::time::Duration;

use serde::Serialize;

use super::InstallMethod;

/// Receives the progress of a deployment.
pub trait ProgressReporter {
    /// Reports a step, or other information.
    fn say(&self, text: &str);
    /// Reports the number of copied bytes of the package.
    fn copied(&self, bytes: u64, total: u64);
}

/// The user's options.
#[derive(Debug, Clone)]
pub struct Order {
    /// The device's name.
    pub name: String,
    /// The address at which the board reaches the coordinator.
    pub coordinator: Option<String>,
    /// The requested install method.
    pub way: Option<InstallMethod>,
    /// Whether a board of another lab is taken over.
    pub take_over: bool,
    /// Whether to change nothing.
    pub dry_run: bool,
    /// The longest wait for the board's hello.
    pub patience: Duration,
}

/// The outcome of a deployment.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct DeployOutcome {
    /// The device's id. `None` in a dry run on a board without an agent.
    pub device: Option<String>,
    /// The description of the board.
    pub board: String,
    /// The changes made, or planned in a dry run.
    pub changes: Vec<String>,
    /// Sentences about missing parts of the board, each with the remedy.
    pub notes: Vec<String>,
    /// The agent's version from its hello.
    pub agent: Option<String>,
}

/// The planned changes on a board.
pub(super) struct Plan {
    /// The reason for installing a package, if one is to be installed.
    pub(super) install: Option<String>,
    /// Whether to set name and coordinator.
    pub(super) configure: bool,
    /// Whether to enroll the board.
    pub(super) enroll: bool,
    /// `start` or `restart`, if needed.
    pub(super) start: Option<&'static str>,
}

impl Plan {
    /// Describes the changes, in their order.
    pub(super) fn changes(&self, order: &Order, host: &str) -> Vec<String> {
        let mut changes = Vec::new();
        changes.extend(self.install.clone());
        if self.configure {
            changes.push(format!("set name and coordinator ({host}) in agent.toml"));
        }
        if self.enroll {
            changes.push(format!("enroll it as {}", order.name));
        }
        changes.extend(self.start.map(|verb| format!("{verb} its daemon")));
        changes
    }
}
