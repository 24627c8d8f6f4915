//! Runs, from a user's request to the record of the outcome.
//!
//! `run_request_input`, with `gate`, `device_state` and `plan`, makes requests of a user's input; `resolve` and `resolved_request` make drafts of
//! them. `estimate` fills in rates from past runs, and `rate_retry` repeats runs whose rate was a guess. `expected_time` computes the minimum and the
//! likely duration of a run. `form` selects the samples that the settings need. `dispatch` sends runs, `limits` ends those that never end, `missing`
//! finds undelivered
//! files, `logged` reads logs, and `finish` judges and records. `judging_mark` sets aside a run whose judging ends the process. `cause` determines
//! whose failure a bad end was. `device_judgement` updates the health of its device, and `device_check` judges the known runs that test a device.
//! `mod@markers` has the reasons why a figure is not an MLPerf result.
//!
//! For readers, `latencies` and `telemetry` read what a run's page draws. [`repeat_command`] words the command that requests
//! a run again, and `run_verdict` filters lists.
//!
//! `mod@rebuild` restores a lost store from the records, `removal` removes runs, and [`staged`] keeps which trees hold them. [`audit`] repeats runs under audits. `mod@verify` checks recorded runs
//! later.

mod accuracy;
pub mod audit;
mod cause;
mod detail_figures;
mod device_check;
mod device_judgement;
mod device_state;
mod dispatch;
mod early_accuracy;
mod estimate;
mod evidence;
#[cfg(test)]
mod example_spec;
mod expected_time;
mod export_manifest;
mod figures;
mod finish;
mod form;
mod gate;
pub mod ingest;
mod int8_scales;
mod judgement_check;
mod judging_lane;
mod judging_mark;
mod latencies;
mod limits;
mod logged;
mod markers;
mod missing;
mod plan;
pub mod plan_toml;
mod prescribed_settings;
pub mod rate_advice;
mod rate_retry;
mod rebuild;
mod record_writer;
mod removal;
mod repeat_command;
mod resolve;
mod resolve_error;
mod resolved_request;
mod retry_schedule;
mod run_failure;
mod run_files;
mod run_request_input;
mod run_verdict;
mod spec_file;
pub mod staged;
mod telemetry;
pub mod text_values;
mod verify;
pub mod vocabulary;

pub use accuracy::{judge as judge_accuracy, judge_by_script, line as accuracy_line};
pub use cause::{RunEnd, cause_of_end};
pub use device_check::{CheckVerdict, judge_check, speed};
pub use device_judgement::judge_device;
pub use device_state::list as state_list;
pub use dispatch::start as start_dispatch;
pub use expected_time::{least_seconds, likely_seconds};
pub use export_manifest::MANIFEST;
pub use finish::start as start_finish;
pub use form::SampleNeed;
pub use gate::{GateInput, GateSize, GateTemperature, complete_gate};
pub use int8_scales::{SCALES_HINT, has_no_scales};
pub use judging_mark::JudgingMarks;
pub use latencies::{LatencyDistribution, read_latencies};
pub use markers::{marker_reasons, markers, min_duration_ms};
pub use plan::Plan;
pub use rate_retry::RateRetries;
pub use rebuild::{RunsNotInStore, add_recorded, count_runs_not_in_store, expect_runs_in_store, rebuild};
pub use removal::Removal;
pub use repeat_command::{NotRepeatable, repeat_command};
pub use resolve::KnownRequest;
pub use resolve_error::{ResolveError, catalogue_hint};
pub use resolved_request::ResolvedRequest;
pub use run_failure::run_failure;
pub use run_files::RunFiles;
pub use run_request_input::{RunRequestError, RunRequestInput};
pub use run_verdict::RunVerdict;
pub use staged::is_offered as is_offered_for_staging;
pub use telemetry::{Quantity, RunTelemetry, TelemetryColumn, read_telemetry};
pub use verify::{Subject, Verification, verify};
