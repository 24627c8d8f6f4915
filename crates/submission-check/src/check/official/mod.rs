//! The verdict of the round's official checker: the same results, CSV and exit status, including its gaps.
//!
//! [`super::strict`] checks what the rules require. Where an official checker ends with a traceback, the verdict is
//! [`Verdict::Crash`]; this checker continues and says where.

mod accuracy;
mod context;
mod crash;
mod file_set;
mod monolith;
mod object;
mod package;
mod path_fault;
mod power;
mod python;
mod report;
mod result;
mod row;
mod summary;

use std::borrow::Cow;

use context::{Context, run_all};
pub(crate) use python::truthy;
use regatta_catalogue::round::{CheckerKind, Round};
pub use report::{Note, Official, Verdict};
pub use row::{Row, csv};

use super::place::ScenarioPlace;
use crate::tree::Tree;

/// The error if no official checker can be reproduced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OfficialError {
    /// The round has no checker of this revision.
    #[error("round {round} has no official checker `{revision}`; known are {known}")]
    UnknownRevision {
        /// The round's name.
        round: String,
        /// The requested revision.
        revision: String,
        /// The revisions that the round has, separated by commas.
        known: String,
    },
    /// The `instead` table of a checker in the round's file does not fit the round.
    #[error("round {round}, checker {revision}: `instead` does not fit")]
    Instead {
        /// The round's name.
        round: String,
        /// The checker's revision.
        revision: String,
        /// The error of the deserializer.
        source: Box<toml::de::Error>,
    },
}

/// Checks `tree` as an official checker of `round` does. `revision` names the checker; `None` selects the round's default.
///
/// # Errors
/// Returns an error if the round has no such checker, or if its `instead` table does not fit the round.
pub fn as_official(tree: &Tree, round: &Round, revision: Option<&str>) -> Result<Official, OfficialError> {
    let checker = round
        .submission
        .checker(revision)
        .ok_or_else(|| OfficialError::UnknownRevision {
            round: round.name.clone(),
            revision: revision.unwrap_or_default().to_owned(),
            known: known_revisions(round),
        })?;
    let known = round.submission.as_known_to(checker);
    let known = known.map_err(|source| OfficialError::Instead {
        round: round.name.clone(),
        revision: checker.revision.clone(),
        source: source.into(),
    })?;
    let round = &match known {
        Cow::Borrowed(_) => Cow::Borrowed(round),
        Cow::Owned(submission) => Cow::Owned(Round {
            submission,
            ..round.clone()
        }),
    };
    let context = Context { tree, round, checker };
    Ok(match checker.kind {
        CheckerKind::Monolith => monolith::check(&context),
        CheckerKind::Package => package::check(&context),
    })
}

fn known_revisions(round: &Round) -> String {
    let names: Vec<_> = round
        .submission
        .checkers
        .iter()
        .map(|checker| checker.revision.as_str())
        .collect();
    names.join(", ")
}
