//! What the quickstart ends with: the table, what is not as it should be, and where to go from here.

use std::collections::BTreeSet;

use super::{compare::compare, flow::BENCHMARK, place::Place};
use crate::{
    cli,
    exit::Failure,
    store::RunRow,
    tables::{self, Comparison},
    workspace::Workspace,
};

/// Compares both sides' files and prints everything; `true` when all is as it should be.
pub(super) fn report(rows: &[RunRow], workspace: &Workspace, place: &Place) -> Result<bool, Failure> {
    let mut compared = Vec::with_capacity(rows.len());
    for row in rows {
        let files = workspace.run(row.id).files();
        compared.push((row.clone(), compare(&files, &place.device_files(row.id))?));
    }
    cli::say(&format!("\n{}\n", tables::quickstart(&compared)))?;
    let good = |(row, comparison): &(RunRow, Comparison)| row.is_good() && comparison.equal;
    for (row, _) in compared.iter().filter(|compared| !good(compared)) {
        cli::say(&format!("not as it should be: {}", tables::why_not(row)))?;
    }
    cli::say(&closing_words(rows, workspace, place))?;
    Ok(compared.iter().all(good))
}

fn closing_words(rows: &[RunRow], workspace: &Workspace, place: &Place) -> String {
    let workspace = workspace.root().display();
    let outcomes = rows.iter().filter_map(|row| row.outcome.as_ref());
    let reasons: BTreeSet<&str> = outcomes
        .flat_map(|outcome| outcome.not_a_measurement.iter().map(String::as_str))
        .collect();
    let reasons: String = reasons.iter().map(|reason| format!("\n  - {reason}")).collect();
    format!(
        "logs and records   {workspace}/runs\n\
         device's side      {}\n\
         \n\
         These are no measurements to submit:{reasons}\n\
         \n\
         next, in two terminals, and a third for what you ask for:\n\
         \x20 {regatta} serve --workspace {workspace}\n\
         \x20 {regatta}-agent serve --config {}\n\
         \x20 {regatta} run --workspace {workspace} --benchmark {BENCHMARK} --scenario Offline --test-run\n\
         \x20 {regatta} runs list --workspace {workspace}",
        place.device().display(),
        place.agent_config().display(),
        regatta = own_name(),
    )
}

/// How the user called this program, so that the next commands can be typed as they stand.
fn own_name() -> String {
    std::env::args().next().unwrap_or_else(|| "regatta".to_owned())
}
