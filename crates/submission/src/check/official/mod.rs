//! The verdict of the round's official checker: results, CSV and exit status as that program gives them, with its gaps.
//!
//! What the rules ask is [`super::strict`]'s part. Where an official checker dies with a traceback, that is its verdict
//! ([`Verdict::Crash`]); this one goes on and says where.

mod accuracy;
mod context;
mod file_set;
mod monolith;
mod object;
mod package;
mod power;
mod python;
mod report;
mod result;
mod row;
mod summary;

use std::borrow::Cow;

use context::{Context, run_all};
pub(crate) use python::truthy;
use regatta_config::round::{Engine, Round};
pub use report::{Note, Official, Verdict};
pub use row::{Row, csv};

use super::place::ScenarioPlace;
use crate::tree::Tree;

/// No official checker to judge as.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OfficialError {
    /// A revision that the round has no checker of.
    #[error("round {round} has no official checker `{revision}`; known are {known}")]
    UnknownRevision {
        /// The round.
        round: String,
        /// What was asked for.
        revision: String,
        /// The revisions that are known.
        known: String,
    },
    /// What the round's file says of a checker does not fit the round.
    #[error("round {round}, checker {revision}: `instead` does not fit")]
    Instead {
        /// The round.
        round: String,
        /// The checker.
        revision: String,
        /// Why.
        source: Box<toml::de::Error>,
    },
}

/// Judges `tree` as an official checker of `round` does; `revision` names which, the round's default without it.
///
/// # Errors
/// When the round has no such checker, or its file is wrong about it.
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
    Ok(match checker.engine {
        Engine::Monolith => monolith::check(&context),
        Engine::Package => package::check(&context),
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
