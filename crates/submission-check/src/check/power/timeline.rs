//! The watts of a session over time, for readers: PTDaemon's samples of both runs, with the time in which LoadGen ran and the phases that the
//! official server logged. It does not judge, and shows the remaining data of a failed session.

use serde_json::Value;

use super::{
    samples::{self, PowerSample},
    session::MAX,
};
use crate::{check::run_log::RunLog, tree::Tree};

/// The runs of a session: the phase's name in the official programs, and the run's directory.
const PARTS: [(&str, &str); 2] = [("ranging", "ranging"), ("testing", "run_1")];

/// The power of one of a session's two runs. Times are seconds since 1970.
#[derive(Debug, Clone, PartialEq)]
pub struct PowerTimeline {
    /// `ranging` or `testing`.
    pub name: &'static str,
    /// The samples in the order of the file.
    pub samples: Vec<PowerSample>,
    /// The time from LoadGen's `power_begin` to its `power_end`, where the log has both.
    pub window: Option<[f64; 2]>,
    /// The times at which the official server reached the checkpoints of this phase. Empty without its description.
    pub checkpoints: Vec<f64>,
}

/// Reads both runs of the session in `directory` of `tree` (`""` for the root). What cannot be read is empty.
#[must_use]
pub fn timelines(tree: &Tree, directory: &str) -> Vec<PowerTimeline> {
    let at = |name: &str| match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    };
    let server: Value = tree
        .read(&at("power/server.json"), MAX)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    PARTS
        .into_iter()
        .map(|(name, run)| PowerTimeline {
            name,
            samples: samples::all(tree, &at(&format!("{run}/spl.txt"))),
            window: window(tree, &at(&format!("{run}/mlperf_log_detail.txt"))),
            checkpoints: checkpoints(&server, name),
        })
        .collect()
}

fn window(tree: &Tree, path: &str) -> Option<[f64; 2]> {
    let log = RunLog::read(tree, path).ok()?;
    let stamp = |key: &str| samples::unix_seconds(log.text(key)?);
    Some([stamp("power_begin")?, stamp("power_end")?])
}

fn checkpoints(server: &Value, phase: &str) -> Vec<f64> {
    let list = server
        .pointer(&format!("/phases/{phase}"))
        .and_then(Value::as_array);
    let times = list
        .into_iter()
        .flatten()
        .filter_map(|point| point.get(0)?.as_f64());
    times.filter(|time| time.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use regatta_test_support::published_results;

    use super::*;
    use crate::check::power::energy;

    /// The samples of a published session within LoadGen's window have the mean that its energy is computed from.
    #[test]
    fn a_published_session_has_both_runs_with_windows_and_checkpoints() {
        let Some(root) = published_results("v2.1") else {
            return;
        };
        let session = root.join("closed/NVIDIA/results/Orin_TRT_MaxQ/resnet50/Offline/performance");
        let tree = Tree::scan(&session).unwrap();
        let found = timelines(&tree, "");
        assert_eq!(
            found.iter().map(|part| part.name).collect::<Vec<_>>(),
            ["ranging", "testing"]
        );
        for part in &found {
            let [from, to] = part.window.unwrap();
            assert!(part.samples.len() > 600 && to - from > 600.0, "{}", part.name);
            assert_eq!(part.checkpoints.len(), 4, "{}", part.name);
            let [first, second, third, _] = part.checkpoints[..] else {
                panic!("{:?}", part.checkpoints)
            };
            assert!(first <= second && second <= from && to <= third, "{}", part.name);
        }
        let [from, to] = found[1].window.unwrap();
        let inside = found[1]
            .samples
            .iter()
            .filter(|sample| sample.seconds > from && sample.seconds < to && sample.watts > 0.0);
        let watts: Vec<f64> = inside.map(|sample| sample.watts).collect();
        let mean = watts.iter().sum::<f64>() / watts.len() as f64;
        assert!(
            (mean / energy(&tree, "").unwrap().watts - 1.0).abs() < 1e-9,
            "{mean}"
        );
    }

    #[test]
    fn a_session_without_files_is_empty_and_lines_of_any_form_are_skipped() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("run_1")).unwrap();
        let lines = "banner\nTime,07-30-2022 04:40:04.430,Watts,11.47,Volts\nTime,x,Watts,1\nTime,07-30-2022 04:40:05.430,Watts,NaN\n\
                     Time,07-30-2022 04:40:06.430,Watts,12,Volts\n";
        let mut bytes = lines.as_bytes().to_vec();
        bytes.extend(b"Time,07-30-2022 04:40:07.430,Watts,\xff\n");
        std::fs::write(directory.path().join("run_1/spl.txt"), bytes).unwrap();
        let found = timelines(&Tree::scan(directory.path()).unwrap(), "");
        assert!(found[0].samples.is_empty() && found[0].checkpoints.is_empty() && found[0].window.is_none());
        let watts: Vec<f64> = found[1].samples.iter().map(|sample| sample.watts).collect();
        assert_eq!(watts, [11.47, 12.0]);
        assert!((found[1].samples[1].seconds - found[1].samples[0].seconds - 2.0).abs() < 1e-6);
    }
}
