//! The energy of a session's testing run, by the formulas of the submission checkers.
//!
//! Idle power is not subtracted, as in the round's rules.

use regatta_types::{Scenario, documents::SessionEnergy};

use super::{
    CheckFailure,
    samples::{self, Reading, RunWindow},
};
use crate::{check::run_log::RunLog, tree::Tree};

/// Computes the energy of the testing run of the session in `directory` of `tree` (`""` for the root).
///
/// # Errors
/// Returns a [`CheckFailure`] when a log cannot be read or the window has no sample.
pub fn energy(tree: &Tree, directory: &str) -> Result<SessionEnergy, CheckFailure> {
    let at = |name: &str| match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    };
    let path = at("run_1/mlperf_log_detail.txt");
    let log = RunLog::read(tree, &path).map_err(|error| format!("{path}: {}", error.0))?;
    let stamp = |key: &str| log.text(key).ok_or_else(|| format!("{path} has no {key}"));
    let window = RunWindow {
        begin: stamp("power_begin")?,
        end: stamp("power_end")?,
    };
    let reading = Reading {
        every_line: false,
        zeros: false,
        factor: false,
    };
    let samples_path = at("run_1/spl.txt");
    let mean = samples::mean(tree, &samples_path, window, reading)?
        .ok_or_else(|| format!("{samples_path} has no samples in the run's window"))?;
    let joules = mean.watts * mean.seconds;
    let positive = |key: &str| log.number(key).filter(|number| *number > 0.0);
    let queries = positive("result_query_count");
    let scenario: Option<Scenario> = log.text("effective_scenario").and_then(|text| text.parse().ok());
    let is_stream = matches!(scenario, Some(Scenario::SingleStream | Scenario::MultiStream));
    let answered = queries.zip(positive("effective_samples_per_query"));
    Ok(SessionEnergy {
        watts: mean.watts,
        seconds: mean.seconds,
        joules,
        millijoules_per_query: queries
            .filter(|_| is_stream)
            .map(|queries| joules * 1000.0 / queries),
        samples_per_joule: answered.map(|(queries, samples)| queries * samples / joules),
    })
}

#[cfg(test)]
mod tests {
    use regatta_test_support::published_results;

    use super::*;

    /// Every published power row of an Orin in MaxQ has the figure that is computed from its session.
    #[test]
    fn figures_are_those_of_published_rows() {
        let (Some(root), Some(rows)) = (
            published_results("v2.1"),
            published_results("v2.1/expected/v2.1/summary.csv"),
        ) else {
            return;
        };
        let rows = std::fs::read_to_string(rows).unwrap();
        let mut compared = 0;
        for row in rows.lines().filter(|row| row.contains(",Orin_TRT_MaxQ,")) {
            let place = row
                .split(',')
                .find(|field| field.starts_with("closed/NVIDIA/results/"));
            let place = root.join(place.unwrap()).join("performance");
            let scenario = place.parent().unwrap().file_name().unwrap().to_str().unwrap();
            let (_, result) = row.split_once(&format!(",{scenario},")).unwrap();
            let published: f64 = result.split(',').next().unwrap().parse().unwrap();
            let is_watts = row.ends_with(",Watts");
            // 3d-unet-99 has no directory of its own: its rows repeat those of 3d-unet-99.9.
            if !place.is_dir() || !(is_watts || row.ends_with(",Joules")) {
                continue;
            }
            let energy = energy(&Tree::scan(&place).unwrap(), "").unwrap();
            let ours = if is_watts {
                energy.watts
            } else {
                energy.millijoules_per_query.unwrap() / 1000.0
            };
            assert!((ours / published - 1.0).abs() < 1e-12, "{row}: {ours}");
            assert!(energy.samples_per_joule.is_some_and(|samples| samples > 0.0));
            compared += 1;
        }
        assert!(compared >= 3, "{compared} rows");
    }
}
