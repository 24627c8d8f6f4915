//! The operations that an operator may request of the lab, on the command line and on the live page: the same checks, refusals and log
//! entries. Who may request it is decided by the callers.

mod campaign_operations;
mod device_operations;
mod health_words;
mod refusal;

pub use campaign_operations::{
    change_campaign, move_deadline, retry_cells, retry_failed_cells, retry_skipped_cells,
};
pub use device_operations::{DISPATCH_TIME, drain_device, has_work, resume_device};
pub use health_words::{described, remedy};
pub use refusal::{OperationError, Refusal};
