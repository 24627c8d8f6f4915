//! Baseline files: the measured runs of a selection as JSON, for comparisons in another workspace or at a later time.

use std::path::Path;

use jiff::Timestamp;
use regatta_fsutil::{atomic_file::AtomicFile, regular_file};
use serde::{Deserialize, Serialize};

use crate::exit::Failure;
use regatta_lab_views::comparisons::{ComparedSide, MeasuredRun, Selected};

/// The number of this form.
const SCHEMA: u16 = 1;

#[derive(Serialize, Deserialize)]
struct Baseline {
    schema: u16,
    written: String,
    runs: Vec<MeasuredRun>,
}

/// Writes a baseline.
pub(super) fn write(file: &Path, runs: &[MeasuredRun]) -> Result<(), Failure> {
    if runs.is_empty() {
        return Err(
            Failure::misuse("no run of the selection counts: a baseline needs measured runs")
                .hint("`regatta runs list` shows each run's state and markers"),
        );
    }
    let baseline = Baseline {
        schema: SCHEMA,
        written: Timestamp::now().to_string(),
        runs: runs.to_vec(),
    };
    let text = serde_json::to_string_pretty(&baseline)? + "\n";
    AtomicFile::new(file)
        .write(text.as_bytes())
        .map_err(|error| Failure::from(error).context(format!("cannot write {}", file.display())))
}

/// Reads a baseline.
pub(super) fn read(file: &Path) -> Result<Selected, Failure> {
    let text = regular_file::read_text(file)
        .map_err(|error| Failure::usage(error).context(format!("cannot read {}", file.display())))?;
    let no_baseline = |error: anyhow::Error| {
        Failure::usage(error)
            .context(format!("{} is not a baseline", file.display()))
            .hint("`regatta compare SELECTION --write-baseline FILE` writes one")
    };
    let baseline: Baseline = serde_json::from_str(&text).map_err(|error| no_baseline(error.into()))?;
    if baseline.schema != SCHEMA {
        let schema = baseline.schema;
        return Err(no_baseline(anyhow::anyhow!(
            "its schema is {schema}, this program reads {SCHEMA}"
        )));
    }
    if let Some(run) = baseline
        .runs
        .iter()
        .find(|run| !(run.value.is_finite() && run.value > 0.0))
    {
        return Err(no_baseline(anyhow::anyhow!(
            "the value of run {} is {}",
            run.run,
            run.value
        )));
    }
    let summary = ComparedSide {
        selection: format!("baseline {} of {}", file.display(), baseline.written),
        runs: baseline.runs.len(),
        excluded: Vec::new(),
    };
    Ok(Selected {
        runs: baseline.runs,
        summary,
    })
}
