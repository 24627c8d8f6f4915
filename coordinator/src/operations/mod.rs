//! The operations that an operator may request of the lab, on the command line and on the live page: the same checks, refusals and log
//! entries. Who may request it is decided by the callers.

mod campaign_operations;
mod device_operations;
mod health_words;
mod refusal;

pub(crate) use campaign_operations::{change_campaign, move_deadline, retry_cells, retry_skipped_cells};
pub(crate) use device_operations::{drain_device, resume_device};
pub(crate) use health_words::{described, remedy};
pub(crate) use refusal::{OperationError, Refusal};
