//! Comparisons and histories of recorded runs, as `regatta compare`, `regatta history` and the live page show them: one computation for all.
//!
//! `selection` finds the runs, `measured` decides which of them count, `judged` pairs and judges them by `regatta-compare`, and
//! `history` finds the change points of each device. `tables` formats the documents for people.

mod combination;
mod history;
mod history_report;
mod judged;
mod measured;
mod report;
mod request;
mod selection;

pub use self::{
    combination::{AS_FOUND, Combination, FULL_LENGTH},
    history::{MIN_RUNS, histories},
    history_report::{History, HistoryChange, HistoryPoint, HistoryReport},
    judged::report,
    measured::{Inclusion, MeasuredRun, Selected},
    report::{
        ComparedSide, ComparisonReport, ComparisonRow, ComparisonVerdict, ExcludedRuns, FloorOrigin,
        SideDifference,
    },
    request::{InvalidFloor, RunConditions, least_floor, select},
    selection::Runs,
};
