//! The simulated campaign: its plan, and its size in the short and the long form.

use crate::CampaignPlan;

/// The campaign's name in [`PLAN`].
pub(super) const CAMPAIGN: &str = "weekend";

/// The size of a simulated campaign.
pub(super) struct Size {
    /// The repetitions of the cells that any device may take.
    pub(super) repeat: u64,
    /// The time within which the faults happen. The campaign takes a little longer.
    pub(super) hours: u64,
}

/// The form of every landing.
pub(super) const SHORT: Size = Size {
    repeat: 40,
    hours: 20,
};
/// The form of `.ci/long`: a weekend.
pub(super) const WEEKEND: Size = Size {
    repeat: 120,
    hours: 48,
};

const PLAN: &str = r#"
schema = 1
name = "weekend"
seed = 11
deadline = "72h"
lose_device_after = "20m"

[[cells]]
devices = ["all"]
benchmark = "digits"
scenario = ["SingleStream", "Offline"]
engine = "null"
settings = [{ name = "a" }, { name = "b", set = { batch_size = 2 } }]
repeat = REPEAT

[[cells]]
devices = ["all"]
placement = "each"
benchmark = "digits"
scenario = ["Offline"]
engine = "null"
repeat = 2

[[cells]]
devices = ["all"]
placement = "same"
benchmark = "digits"
scenario = ["SingleStream", "Offline"]
engine = "null"
repeat = 5
priority = 1
"#;

impl Size {
    /// Returns the form that `REGATTA_SIMULATED_WEEKEND` selects.
    pub(super) fn selected() -> &'static Self {
        match std::env::var_os("REGATTA_SIMULATED_WEEKEND") {
            Some(_) => &WEEKEND,
            None => &SHORT,
        }
    }

    /// Returns the plan in this size.
    pub(super) fn plan(&self) -> CampaignPlan {
        CampaignPlan::read(&PLAN.replace("REPEAT", &self.repeat.to_string())).unwrap()
    }
}
