//! Facts in words and short sentences, which the command line's tables and the live page share. It prints nothing and knows no layout.

mod audits;
mod campaigns;
mod comparisons;
mod device_state;
mod devices;
pub(crate) mod figure;
mod power;
pub(crate) mod run_text;
mod runs;
mod values;

pub(crate) use audits::{accuracy_delta, audit, compared_scores};
pub(crate) use campaigns::{campaign_counts, campaign_time_left, rough_duration};
pub(crate) use comparisons::{comparison_interval, comparison_notes, count_of_runs, excluded, excluded_runs};
pub(crate) use device_state::device_state_facts;
pub(crate) use devices::{device_in_words, device_state, state_and_health};
pub(crate) use power::{energy, power_result, power_session_in_words};
pub(crate) use runs::{run_figures, run_problems, short_id, stream_state, why_not, why_repeated};
pub(crate) use values::{age, ago, bytes, day, time, window};
