//! Runs, from a user's request to the record of the outcome.
//!
//! [`request`], [`resolve`], [`gate`] and [`plan`] turn a user's input into drafts. [`estimate`] fills in rates from past runs, and
//! [`repetition`] repeats runs whose rate was a guess. [`expected_time`] is how long a run takes at least. [`form`] selects the samples
//! that the settings need. [`dispatch`] sends runs, [`limits`] ends those that never end, [`missing`] finds undelivered files, [`logged`]
//! reads logs, and [`finish`] judges and records. [`judging_mark`] sets aside a run whose judging ends the process. [`cause`] determines whose failure a bad end was. [`device_judgement`] draws the
//! conclusion for its device, and [`device_check`] judges the known runs that test a device. [`mod@markers`] has the reasons why a figure
//! is no MLPerf result.
//!
//! For readers, [`latencies`] and [`telemetry`] read what a run's page draws. [`repeat_command`] words the command that requests
//! a run again, and [`run_verdict`] filters lists.
//!
//! [`mod@rebuild`] restores a lost store from the records, [`removal`] removes runs, and [`staged`] keeps which trees hold them. [`audit`] repeats runs under audits. [`mod@verify`] checks recorded runs
//! later.

mod accuracy;
pub(crate) mod audit;
mod cause;
mod detail_figures;
mod device_check;
mod device_judgement;
mod device_state;
mod dispatch;
mod estimate;
mod evidence;
mod expected_time;
mod export_manifest;
mod figures;
mod finish;
mod form;
mod gate;
mod judging_mark;
mod latencies;
mod limits;
mod logged;
mod markers;
mod missing;
mod plan;
mod prescribed_settings;
pub(crate) mod rate_advice;
mod rebuild;
mod record_writer;
mod removal;
mod repeat_command;
mod repetition;
mod request;
mod resolve;
mod retry_schedule;
mod run_verdict;
mod spec_writer;
pub(crate) mod staged;
mod telemetry;
mod verify;
mod word_list;

pub(crate) use accuracy::{judge as judge_accuracy, line as accuracy_line};
pub(crate) use cause::{RunEnd, cause_of_end};
pub(crate) use device_check::{CheckVerdict, judge_check, speed};
#[cfg(test)]
pub(crate) use device_judgement::judge_device;
pub(crate) use device_state::StateWords;
pub(crate) use dispatch::start as start_dispatch;
pub(crate) use expected_time::least_seconds;
pub(crate) use export_manifest::MANIFEST;
pub(crate) use finish::start as start_finish;
pub(crate) use gate::GateWords;
pub(crate) use judging_mark::JudgingMark;
pub(crate) use latencies::{LatencyDistribution, read_latencies};
pub(crate) use markers::{marker_reasons, markers, min_duration_ms};
pub(crate) use plan::{Plan, Words};
pub(crate) use rebuild::{RunsNotInStore, count_runs_not_in_store, expect_runs_in_store, rebuild};
pub(crate) use removal::Removal;
pub(crate) use repeat_command::repeat_command;
pub(crate) use repetition::repetitions;
#[cfg(test)]
pub(crate) use request::Request;
pub(crate) use resolve::{NO_SYSTEM, ParsedWords, ResolveError, RunFiles};
pub(crate) use run_verdict::RunVerdict;
pub(crate) use staged::is_offered as is_offered_for_staging;
pub(crate) use telemetry::{Quantity, RunTelemetry, TelemetryColumn, read_telemetry};
pub(crate) use verify::{Subject, Verification, verify};
pub(crate) use word_list::spanned_words;
