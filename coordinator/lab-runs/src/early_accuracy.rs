//! Ends accuracy runs that cannot reach their target, when their first answers have arrived: a wrong calibration or the labels of another data
//! set show after minutes and not after hours. `regatta_accuracy` computes the metric.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use regatta_accuracy::measure;
use regatta_lab_store::{
    LiveRun, Store,
    workspace::{BrokerChoice, Workspace},
};
use regatta_types::{
    Mode, RunId,
    benchmark::{AccuracyMetric, Benchmark, BoundSide},
    documents::{Delivery, EngineKind, RunSpec, RunTask, end_reason},
};

use super::judging_mark::JudgingMarks;

/// The number of answers that are judged.
const ANSWERS: usize = 500;
/// The smallest data set of which they are judged. A smaller one is soon through.
const MIN_SAMPLES: usize = 2 * ANSWERS;
/// The part of the target below which the first answers end a run. LoadGen draws the samples in random order, so that those of a sound run
/// are within a few percent of its final accuracy.
const HOPELESS_PART: f64 = 0.5;
/// The interval between two looks at a log, and its part that is read.
const INTERVAL: Duration = Duration::from_secs(2);
const MAX_LOG: u64 = 256 << 20;

/// Returns when the logs of a run are delivered, unless the user says otherwise. Those of accuracy runs with many samples are live: nothing is
/// timed, and their first answers are judged.
pub(super) fn usual_delivery(
    mode: Mode,
    engine: EngineKind,
    task: RunTask,
    benchmark: &Benchmark,
) -> Delivery {
    let is_judged = mode == Mode::AccuracyOnly
        && engine.computes()
        && task == RunTask::Measurement
        && benchmark.dataset.total_samples >= MIN_SAMPLES;
    if is_judged {
        Delivery::Live
    } else {
        Delivery::After
    }
}

/// Returns whether the first answers of a run are judged. A script may need all of them.
fn is_judged(spec: &RunSpec) -> bool {
    if spec.benchmark.accuracy.metric == AccuracyMetric::Script {
        return false;
    }
    let usual = usual_delivery(spec.mode, spec.engine.kind, spec.task, &spec.benchmark);
    (usual, spec.delivery) == (Delivery::Live, Delivery::Live)
}

/// The running accuracy runs that were judged early, or wait for it.
#[derive(Debug, Default)]
pub(super) struct EarlyAccuracy {
    judged: BTreeSet<RunId>,
    looked: BTreeMap<RunId, Instant>,
}

impl EarlyAccuracy {
    /// Judges the runs whose first answers have arrived, and requests the abort of hopeless ones. Returns whether it requested any.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(super) fn look(
        &mut self,
        workspace: &Workspace,
        store: &Store,
        marks: &JudgingMarks,
    ) -> anyhow::Result<bool> {
        let config = workspace.config();
        // Chunks are not signed: elsewhere, others can publish answers in the name of the device.
        if !config.tls || !matches!(config.broker, BrokerChoice::Embedded { .. }) {
            return Ok(false);
        }
        let runs = store.runs().live()?;
        let is_live = |id: &RunId| runs.iter().any(|run| run.run == *id);
        self.judged.retain(is_live);
        self.looked.retain(|id, _| is_live(id));
        let mut has_ended = false;
        for run in &runs {
            let looked = self.looked.get(&run.run);
            let is_due = looked.is_none_or(|looked| looked.elapsed() >= INTERVAL);
            if !is_due || self.judged.contains(&run.run) {
                continue;
            }
            self.looked.insert(run.run, Instant::now());
            let Some(spec) = run.spec().filter(is_judged) else {
                self.judged.insert(run.run);
                continue;
            };
            has_ended |= self.judge(run, &spec, workspace, store, marks)?;
        }
        Ok(has_ended)
    }

    fn judge(
        &mut self,
        run: &LiveRun,
        spec: &RunSpec,
        workspace: &Workspace,
        store: &Store,
        marks: &JudgingMarks,
    ) -> anyhow::Result<bool> {
        let path = workspace.run(run.run).partial_file(&run.accuracy_log);
        let answers = match first_answers(&path, run.committed) {
            Ok(Some(answers)) => answers,
            Ok(None) => return Ok(false),
            Err(error) => {
                self.judged.insert(run.run);
                return Ok(not_judged(run.run, &path, &error.into()));
            }
        };
        self.judged.insert(run.run);
        let Some(value) = marks.judge(run.run, || value_of(&answers, spec, &workspace.scratch())) else {
            tracing::warn!(run = %run.run, "its first answers are not judged: that has ended the coordinator twice");
            return Ok(false);
        };
        let (side, target) = (spec.benchmark.accuracy.side(), spec.benchmark.accuracy.target());
        let hopeless = match side {
            BoundSide::AtLeast => HOPELESS_PART * target,
            BoundSide::AtMost => target / HOPELESS_PART,
        };
        match value {
            Ok(value) if !side.admits(value, hopeless) => {
                let reason = format!(
                    "{}: it is {value:.3} for the first {ANSWERS} answers, and {target:.3} is needed; hint: `--stream after` runs without this check",
                    end_reason::HOPELESS_ACCURACY
                );
                tracing::warn!(run = %run.run, "{reason}");
                Ok(store.runs().request_abort(run.run, &reason)?)
            }
            Ok(value) => {
                tracing::info!(run = %run.run, value, target, "the accuracy of the first {ANSWERS} answers");
                Ok(false)
            }
            Err(error) => Ok(not_judged(run.run, &path, &error)),
        }
    }
}

/// Warns that the first answers of a run are not judged. Returns `false`, because the run goes on.
fn not_judged(run: RunId, log: &Path, error: &anyhow::Error) -> bool {
    tracing::warn!(%run, log = %log.display(), "its first answers are not judged: {error:#}");
    false
}

/// Returns the accuracy of answers.
fn value_of(answers: &[u8], spec: &RunSpec, scratch: &Path) -> anyhow::Result<f64> {
    let mut log = tempfile::NamedTempFile::new().context("a temporary file")?;
    log.write_all(answers).context("a temporary file")?;
    match measure(&spec.benchmark, None, log.path(), scratch) {
        Ok(measured) => Ok(measured.figure.value_of_answered()),
        Err(error) if error.is_nothing_detected() => Ok(0.0),
        Err(error) => Err(error.into()),
    }
}

/// Returns a log of the first entries of a growing one, of which `committed` bytes are on disk. `None` while there are not enough.
fn first_answers(path: &Path, committed: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        // It was completed or removed meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut lines = BufReader::new(file.take(committed.min(MAX_LOG)));
    let (mut log, mut entries) = (b"[\n".to_vec(), 0);
    let mut line = Vec::new();
    while entries < ANSWERS {
        line.clear();
        lines.read_until(b'\n', &mut line)?;
        // The last line may not be complete. LoadGen writes an entry per line, with a comma if another one follows.
        let Some(complete) = line.strip_suffix(b"\n") else {
            return Ok(None);
        };
        let entry = complete.trim_ascii_end();
        let entry = entry.strip_suffix(b",").unwrap_or(entry);
        if entry.starts_with(b"{") && entry.ends_with(b"}") {
            log.extend_from_slice(if entries == 0 { b"" } else { b",\n" });
            log.extend_from_slice(entry);
            entries += 1;
        }
    }
    log.extend_from_slice(b"\n]\n");
    Ok(Some(log))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use regatta_catalogue::known;
    use regatta_mllog::read::{AccuracyReader, file_name};

    use super::*;

    #[test]
    fn only_long_accuracy_runs_that_compute_are_live_by_default() {
        let mut benchmark = known::benchmarks().unwrap().remove(0);
        benchmark.dataset.total_samples = MIN_SAMPLES;
        let delivery = |mode, engine, benchmark: &Benchmark| {
            usual_delivery(mode, engine, RunTask::Measurement, benchmark)
        };
        let of_mode = |mode| delivery(mode, EngineKind::Tract, &benchmark);
        assert_eq!(of_mode(Mode::AccuracyOnly), Delivery::Live);
        assert_eq!(of_mode(Mode::PerformanceOnly), Delivery::After);
        assert_eq!(of_mode(Mode::SubmissionRun), Delivery::After);
        assert_eq!(
            delivery(Mode::AccuracyOnly, EngineKind::Null, &benchmark),
            Delivery::After
        );
        benchmark.dataset.total_samples -= 1;
        assert_eq!(
            delivery(Mode::AccuracyOnly, EngineKind::Tract, &benchmark),
            Delivery::After
        );
    }

    #[test]
    fn the_first_answers_of_a_growing_log_are_a_log() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(file_name::ACCURACY);
        let entry = |number: usize| {
            format!("{{ \"seq_id\" : {number}, \"qsl_idx\" : {number}, \"data\" : \"07000000\" }}")
        };
        let entries: Vec<String> = (0..ANSWERS + 20).map(entry).collect();
        let text = format!("[\n{}\n]\n", entries.join(",\n"));
        fs::write(&path, &text).unwrap();
        let taken = |committed: usize| first_answers(&path, committed as u64).unwrap();
        let enough = text.find(&entry(ANSWERS)).unwrap();
        assert_eq!(taken(enough - 1), None);
        assert_eq!(taken(0), None);
        for committed in [enough, enough + 7, text.len()] {
            let log = taken(committed).unwrap();
            let read: Vec<_> = AccuracyReader::new(&log[..]).map(Result::unwrap).collect();
            assert_eq!(
                (read.len(), read[ANSWERS - 1].qsl_idx),
                (ANSWERS, ANSWERS as u64 - 1)
            );
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(taken(text.len()), None);
    }
}
