//! The quickstart's report: the table of runs, the rehearsal, problems, and the next steps.

use std::{collections::BTreeSet, fmt::Write as _};

use regatta_text::{escape, escape_json};
use serde_json::json;

use super::{
    compare::compare, power::PowerRehearsal, quickstart_directory::QuickstartDirectory, rehearsal::Rehearsal,
    subject::BENCHMARK,
};
use crate::{
    cli,
    exit::Failure,
    tables::{self, Comparison},
};
use regatta_lab_store::{RunRow, workspace::Workspace};
use regatta_lab_views::{documents::run_document, wording};

/// The results of a quickstart.
pub(super) struct QuickstartReport<'a> {
    runs: Vec<(RunRow, Comparison)>,
    rehearsal: Result<Rehearsal, Failure>,
    /// The power session, if one was requested.
    power: Option<Result<PowerRehearsal, Failure>>,
    workspace: &'a Workspace,
    place: &'a QuickstartDirectory,
}

impl<'a> QuickstartReport<'a> {
    /// Creates a report, and compares both sides' files of every run.
    pub(super) fn new(
        rows: &[RunRow],
        rehearsal: Result<Rehearsal, Failure>,
        power: Option<Result<PowerRehearsal, Failure>>,
        workspace: &'a Workspace,
        place: &'a QuickstartDirectory,
    ) -> Result<Self, Failure> {
        let mut runs = Vec::with_capacity(rows.len());
        for row in rows {
            let files = workspace.run(row.id).files();
            runs.push((row.clone(), compare(&files, &place.device_files(row.id))?));
        }
        Ok(Self {
            runs,
            rehearsal,
            power,
            workspace,
            place,
        })
    }

    /// Returns whether every run and the rehearsals are good.
    pub(super) fn is_good(&self) -> bool {
        let is_power_good = |power: &Result<_, _>| power.as_ref().is_ok_and(PowerRehearsal::is_good);
        self.runs.iter().all(good)
            && self.rehearsal.as_ref().is_ok_and(Rehearsal::is_good)
            && self.power.as_ref().is_none_or(is_power_good)
    }

    /// Prints the report for people or for programs.
    pub(super) fn print(&self, json: bool) -> Result<(), Failure> {
        let text = if json {
            let document = serde_json::to_string_pretty(&self.document()?)?;
            escape_json(&document).into_owned()
        } else {
            self.text()
        };
        Ok(cli::say(&text)?)
    }

    fn document(&self) -> Result<serde_json::Value, Failure> {
        let mut runs = Vec::with_capacity(self.runs.len());
        for (row, comparison) in &self.runs {
            let mut document = serde_json::to_value(run_document(row))?;
            if let Some(fields) = document.as_object_mut() {
                fields.insert("hash_equal".to_owned(), comparison.equal.into());
            }
            runs.push(document);
        }
        let rehearsal = match &self.rehearsal {
            Ok(rehearsal) => serde_json::to_value(rehearsal)?,
            Err(failure) => json!({ "fault": failure.to_string() }),
        };
        let power = match &self.power {
            None => serde_json::Value::Null,
            Some(Ok(power)) => serde_json::to_value(power)?,
            Some(Err(failure)) => json!({ "fault": failure.to_string() }),
        };
        Ok(json!({
            "verdict": if self.is_good() { "pass" } else { "fail" },
            "workspace": self.workspace.root(),
            "device": self.place.device(),
            "runs": runs,
            "rehearsal": rehearsal,
            "power": power,
        }))
    }

    fn text(&self) -> String {
        let mut text = format!("\n{}\n\n", tables::quickstart(&self.runs));
        // Writing to a `String` cannot fail, here and below.
        for (row, _) in self.runs.iter().filter(|run| !good(run)) {
            let _ = writeln!(text, "problem: {}", wording::why_not(row));
        }
        match &self.rehearsal {
            Ok(rehearsal) => tell_rehearsal(&mut text, rehearsal),
            Err(failure) => {
                let _ = writeln!(text, "nothing was rehearsed: {failure}");
            }
        }
        match &self.power {
            None => {}
            Some(Ok(power)) => {
                let _ = writeln!(text, "{}", power.text());
            }
            Some(Err(failure)) => {
                let _ = writeln!(text, "power session      {failure}");
            }
        }
        text.push_str(&self.closing_words());
        text
    }

    fn closing_words(&self) -> String {
        let workspace = self.workspace.root().display();
        let outcomes = self.runs.iter().filter_map(|(row, _)| row.outcome.as_ref());
        let reasons: BTreeSet<&str> = outcomes
            .flat_map(|outcome| outcome.judgement.not_a_measurement.iter().map(String::as_str))
            .collect();
        let reasons: String = reasons
            .iter()
            .map(|reason| format!("\n  - {}", escape(reason)))
            .collect();
        format!(
            "\n\
             logs and records   {workspace}/runs\n\
             device's side      {}\n\
             \n\
             These runs cannot be submitted:{reasons}\n\
             \n\
             next, in three terminals:\n\
             \x20 {regatta} serve --workspace {workspace}\n\
             \x20 {regatta}-agent serve --config {}\n\
             \x20 {regatta} run --workspace {workspace} --benchmark {BENCHMARK} --scenario Offline --test-run\n\
             \x20 {regatta} runs list --workspace {workspace}",
            self.place.device().display(),
            self.place.agent_config().display(),
            regatta = own_name(),
        )
    }
}

/// Returns whether a run is good and its files are equal on both sides.
fn good((row, comparison): &(RunRow, Comparison)) -> bool {
    row.is_good() && comparison.equal
}

fn tell_rehearsal(text: &mut String, rehearsal: &Rehearsal) {
    let _ = write!(
        text,
        "The same runs as a submission, rehearsed: {} results staged, {} of {} truncated logs match their originals.\n\
         By the rules:\n\n{}\n\n\
         official checker   {} would {} it\n\
         tree               {}\n\
         originals          {}\n",
        rehearsal.results,
        rehearsal.proven,
        rehearsal.cut,
        tables::rules(&rehearsal.rules),
        rehearsal.official.revision,
        rehearsal.official.verdict,
        rehearsal.tree.display(),
        rehearsal.originals.display(),
    );
    let package = rehearsal
        .package
        .iter()
        .map(|package| format!("{}, password `{}`", package.display(), rehearsal.password));
    let none = rehearsal.no_package.iter().map(|why| format!("none: {why}"));
    for line in package.chain(none) {
        let _ = writeln!(text, "package            {line}");
    }
}

/// Returns the name with which the user called this program, for printing the next commands.
fn own_name() -> String {
    std::env::args().next().unwrap_or_else(|| "regatta".to_owned())
}
