//! What is asked of a deployment, what is to be done for it on one board, and what came of it.

use std::time::Duration;

use serde::Serialize;

use super::InstallMethod;

/// Receives the progress of a deployment.
pub(crate) trait ProgressReporter {
    /// A step begins, or something is worth knowing.
    fn say(&self, text: &str);
    /// So much of the package has been copied.
    fn copied(&self, bytes: u64, total: u64);
}

/// What the user asked for.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    /// The device's name.
    pub(crate) name: String,
    /// The address by which the board reaches the coordinator.
    pub(crate) coordinator: Option<String>,
    /// The way to install.
    pub(crate) way: Option<InstallMethod>,
    /// Whether a board of another lab is taken over.
    pub(crate) take_over: bool,
    /// Whether nothing is to be changed.
    pub(crate) dry_run: bool,
    /// How long a board may take to say hello.
    pub(crate) patience: Duration,
}

/// What a deployment came to.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub(crate) struct DeployOutcome {
    /// The device's id; `None` in a dry run on a board without an agent.
    pub(crate) device: Option<String>,
    /// What the board is, in words.
    pub(crate) board: String,
    /// What was changed; in a dry run, what would be.
    pub(crate) changes: Vec<String>,
    /// The agent's version, as it said hello.
    pub(crate) agent: Option<String>,
}

/// What is to be done on a board, each part with the reason in words.
pub(super) struct Plan {
    /// Copy and install a package; why, in words.
    pub(super) install: Option<String>,
    /// Set name and coordinator.
    pub(super) configure: bool,
    /// Bring it into the lab.
    pub(super) enrol: bool,
    /// `start` or `restart`.
    pub(super) start: Option<&'static str>,
}

impl Plan {
    /// The parts in words, in their order.
    pub(super) fn changes(&self, order: &Order, host: &str) -> Vec<String> {
        let mut changes = Vec::new();
        changes.extend(self.install.clone());
        if self.configure {
            changes.push(format!("set name and coordinator ({host}) in agent.toml"));
        }
        if self.enrol {
            changes.push(format!("enrol it as {}", order.name));
        }
        changes.extend(self.start.map(|verb| format!("{verb} its daemon")));
        changes
    }
}
