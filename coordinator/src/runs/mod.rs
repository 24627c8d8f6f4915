//! Runs, from what a user asks for to the record of what came of it.
//!
//! [`catalogue`] knows benchmarks and rounds, [`request`] and [`plan`] turn words into drafts, [`estimate`] fills in
//! the rates that a device has shown, [`form`] says which samples the settings need, [`dispatch`]
//! sends, [`missing`] says what has still to come, [`logged`] reads the logs, [`finish`] judges and records.
//! [`mod@rebuild`] fills a lost store from the records, [`audit`] runs them once more under audits, and [`mod@verify`]
//! looks at them again later.

mod accuracy;
pub(crate) mod audit;
mod catalogue;
mod device_state;
mod dispatch;
mod estimate;
mod evidence;
#[cfg(test)]
mod example_draft;
mod figures;
mod finish;
mod form;
mod logged;
mod missing;
mod plan;
mod rebuild;
mod request;
mod retry_schedule;
mod verify;

pub(crate) use accuracy::{judge as judge_accuracy, line as accuracy_line};
pub(crate) use catalogue::{Catalogue, Rounds};
pub(crate) use device_state::StateWords;
pub(crate) use dispatch::start as start_dispatch;
#[cfg(test)]
pub(crate) use example_draft::example_draft;
pub(crate) use finish::start as start_finish;
pub(crate) use form::take as take_form;
pub(crate) use plan::{Plan, Words};
pub(crate) use rebuild::{RunsNotInStore, count_runs_not_in_store, expect_runs_in_store, rebuild};
pub(crate) use request::Request;
pub(crate) use verify::{Subject, Verification, verify};
