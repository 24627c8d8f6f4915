//! Comparisons and histories of recorded runs, as `regatta compare`, `regatta history` and the live page show them: one computation for all.
//!
//! [`selection`] finds the runs, [`measured`] decides which of them count, [`judged`] pairs and judges them by `regatta-compare`, and
//! [`history`] finds the change points of each device. The documents and tables are in [`crate::tables`].

mod history;
mod judged;
mod measured;
mod request;
mod selection;

pub(crate) use self::{
    history::{LEAST_RUNS, histories},
    judged::report,
    measured::{Inclusion, MeasuredRun, Selected},
    request::{RunConditions, least_floor, select},
    selection::Runs,
};
