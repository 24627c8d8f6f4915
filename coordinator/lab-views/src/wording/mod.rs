//! Facts in words and short sentences, which the command line's tables and the live page share. It prints nothing and knows no layout.

mod audits;
mod campaigns;
mod comparisons;
mod device_state;
mod devices;
pub mod figure;
mod power;
pub mod run_text;
mod runs;
mod time_zone;
mod values;

pub use audits::{accuracy_delta, audit, compared_scores};
pub use campaigns::{campaign_counts, campaign_time_left, rough_duration};
pub use comparisons::{
    comparison_interval, comparison_medians, comparison_notes, count_of_runs, excluded, excluded_runs,
    include_hint,
};
pub use device_state::device_state_facts;
pub use devices::{describe_device, device_state, state_and_health};
pub use power::{describe_power_session, energy, power_result};
pub use runs::{run_figures, run_problems, short_id, stream_state, why_not, why_repeated};
pub use time_zone::{time_zone, use_local_time, zone_name};
pub use values::{age, ago, bytes, day, time, window};
