//! Devices, runs, campaigns and power sessions as JSON documents, for the command line and the live page alike. They are declared once, so that a program
//! reads the same fields from both. `coordinator/commands.schema.json` describes them.
//!
//! `tables` formats the same facts for people.

mod campaign;
mod campaign_progress;
mod device;
mod health;
mod power;
mod run;

pub use campaign::{campaign_status, campaign_summary, cell_subject, device_name, subject_of_cell};
pub use campaign_progress::{
    CampaignDevice, CampaignPlanDocument, CampaignStatus, CampaignSummary, CellSubject, FailedCell,
    PlannedCombination,
};
pub use device::{DeviceDocument, DeviceList, ShownDevice};
pub use health::HealthDocument;
pub use power::{power_session, power_sessions, shown_power_session};
pub use run::{RunDocument, run_document, shown_run};
