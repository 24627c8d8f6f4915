//! Devices, runs, campaigns and power sessions as JSON documents, for the command line and the live page alike. They are declared once, so that a program
//! reads the same fields from both. `coordinator/commands.schema.json` describes them.
//!
//! [`crate::tables`] formats the same facts for people.

mod campaign;
mod campaign_progress;
mod device;
mod health;
mod power;
mod run;

pub(crate) use campaign::{campaign_status, campaign_summary, cell_subject, device_name, subject_of_cell};
pub(crate) use campaign_progress::{
    CampaignDevice, CampaignPlanDocument, CampaignStatus, CampaignSummary, CellSubject, FailedCell,
    PlannedCombination,
};
pub(crate) use device::{DeviceDocument, DeviceList, ShownDevice};
pub(crate) use health::HealthDocument;
pub(crate) use power::{power_session, power_sessions, shown_power_session};
pub(crate) use run::{RunDocument, run_document, shown_run};
