//! Runs the reference accuracy script on this workstation. Its output is printed and stored unchanged, and compared with Regatta's
//! figure. A failed script leaves no files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use regatta_mllog::read::ResponseCount;
use regatta_submission_check::check::last_figure;
use regatta_submission_stage::stage::official;
use regatta_types::{
    benchmark::Benchmark,
    documents::{AccuracyResult, FurtherFigure, document_name},
};

use super::{
    args::{Args, no_scratch},
    script_options::{self, Paths},
};
use crate::exit::Failure;

/// The script's result for one log.
#[derive(Debug)]
pub(super) struct ScriptOutput {
    /// The script's complete output.
    pub(super) output: Vec<u8>,
    /// The path of the stored output.
    pub(super) kept: PathBuf,
}

/// Runs the script on a log and stores its output.
pub(super) fn run(
    args: &Args,
    script: &Path,
    benchmark: &Benchmark,
    scratch: Option<&Path>,
    log: &Path,
) -> Result<ScriptOutput, Failure> {
    if !script.is_file() {
        let what = if script.exists() {
            "is not a file"
        } else {
            "does not exist"
        };
        return Err(Failure::misuse(format!("{} {what}", script.display()))
            .hint("name the benchmark's reference accuracy script, from a checkout of mlcommons/inference"));
    }
    if !log.is_file() {
        return Err(Failure::misuse(format!(
            "the accuracy log {} does not exist",
            log.display()
        )));
    }
    // A bare name would be searched in PATH.
    let script = &std::path::absolute(script)?;
    let directory = keep_at(args, log);
    // Scripts that write answers expect the directory.
    let is_new = !directory.exists();
    fs::create_dir_all(&directory)
        .map_err(|error| Failure::could_not(format!("cannot make {}: {error}", directory.display())))?;
    let mut command = interpreter(args, script);
    command.args(arguments(args, benchmark, scratch, log, &directory)?);
    // The detection script prefers it to the annotations on its command line.
    command.env_remove("DATASET_ANNOTATIONS_FILE_PATH");
    command.envs(script_options::environment(benchmark.accuracy.metric, script));
    let called = || format!("the reference script {}", script.display());
    let output = command.output().map_err(|error| {
        let program = Path::new(command.get_program()).display();
        let sentence = format!("cannot start {program} for {}: {error}", called());
        Failure::could_not(sentence)
            .hint("`--python` or REGATTA_PYTHON names the Python that runs scripts in .py")
    })?;
    if !output.status.success() {
        if is_new {
            // The failure itself is reported. What the script wrote is no result.
            let _ = fs::remove_dir_all(&directory);
        }
        let printed = String::from_utf8_lossy(&output.stderr);
        let last = printed.lines().rfind(|line| !line.trim().is_empty());
        return Err(Failure::could_not(format!(
            "{} ended with {}: {}",
            called(),
            output.status,
            last.unwrap_or("it printed nothing")
        ))
        .hint("its output was not kept; `--python` names another Python, and arguments after `--` are passed to the script"));
    }
    official::keep(&directory, script, log, &output.stdout)?;
    Ok(ScriptOutput {
        output: output.stdout,
        kept: directory.join(official::OUTPUT),
    })
}

/// Runs Python scripts with Python, and other programs directly.
fn interpreter(args: &Args, script: &Path) -> Command {
    if script.extension().is_some_and(|extension| extension == "py") {
        let mut python = Command::new(&args.python);
        python.arg(script);
        python
    } else {
        Command::new(script)
    }
}

/// Returns the script's options: the user's with their placeholders replaced, otherwise those of the metric's usual script.
fn arguments(
    args: &Args,
    benchmark: &Benchmark,
    scratch: Option<&Path>,
    log: &Path,
    out: &Path,
) -> Result<Vec<String>, Failure> {
    let usual;
    let words = if args.official_arguments.is_empty() {
        usual = script_options::usual(args.dtype, benchmark);
        &usual
    } else {
        &args.official_arguments
    };
    let scratch = match scratch {
        Some(scratch) => scratch,
        None if script_options::need_scratch(words) => return Err(no_scratch()),
        None => Path::new(""),
    };
    let map = &scratch.join(&benchmark.dataset.map);
    let is_read_by_name = words.iter().any(|word| word.contains("{log_directory}"));
    if is_read_by_name
        && log
            .file_name()
            .is_none_or(|name| name != "mlperf_log_accuracy.json")
    {
        return Err(
            Failure::misuse(format!("the script does not read the log {}", log.display()))
                .hint("it reads mlperf_log_accuracy.json in a directory: rename the log"),
        );
    }
    let log_directory = log
        .parent()
        .filter(|beside| !beside.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let paths = Paths {
        log,
        log_directory,
        map,
        scratch,
        out,
    };
    Ok(words.iter().map(|word| paths.fill(word)).collect())
}

/// Returns the directory for the output: the run's directory for a run's log, otherwise the log's own. Nothing is written among evidence
/// files.
fn keep_at(args: &Args, log: &Path) -> PathBuf {
    if let Some(directory) = &args.keep {
        return directory.clone();
    }
    // A bare file name has an empty parent, which options cannot begin with.
    let beside = log
        .parent()
        .filter(|beside| !beside.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let run = beside.parent().filter(|run| {
        beside.file_name().is_some_and(|name| name == "files") && run.join(document_name::SPEC).is_file()
    });
    run.map_or_else(|| beside.to_owned(), |run| run.join("accuracy"))
}

/// Reads the figures of a metric that only the script computes. Returns `None` when one of them is not in its output. Without a count, all responses
/// count as missing.
pub(super) fn figures(
    output: &[u8],
    benchmark: &Benchmark,
    responses: Option<ResponseCount>,
) -> Option<AccuracyResult> {
    let samples = benchmark.dataset.total_samples;
    let text = String::from_utf8_lossy(output);
    let accuracy = &benchmark.accuracy;
    let metric = accuracy.metric.official_name();
    let mut names: Vec<&str> = accuracy
        .further
        .iter()
        .map(|bound| bound.figure.as_str())
        .collect();
    names.dedup();
    let further = names.into_iter().map(|name| {
        let value = last_figure(name, &text)?;
        Some(FurtherFigure::new(name, value, &accuracy.further))
    });
    Some(AccuracyResult {
        metric: metric.to_owned(),
        value: last_figure(metric, &text)?,
        correct: None,
        total: samples as u64,
        missing: responses.map_or(samples, |responses| responses.missing) as u64,
        duplicates: responses.map_or(0, |responses| responses.duplicates) as u64,
        target: Some(accuracy.target()),
        side: accuracy.side(),
        classes: Vec::new(),
        further: further.collect::<Option<_>>()?,
    })
}

/// Returns whether a script's output has the figure that Regatta computed: `accuracy=` or `mAP=` with three decimal places, `mean =` of
/// DICE with five, `f1` or `accuracy=` behind a word error rate in full, the complete line of ROUGE. `None` when it has neither.
pub(super) fn agrees(output: &[u8], own: &AccuracyResult) -> Option<bool> {
    let text = String::from_utf8_lossy(output);
    if let Some(line) = text.lines().find(|line| line.starts_with("{'rouge1': ")) {
        // NumPy 2 names its type.
        return Some(line.replace("np.int64(", "").replace(')', "") == own.official_line());
    }
    let (found, tolerance) = text.lines().find_map(|line| {
        // A figure of three decimal places may be rounded in two ways.
        let named = ["accuracy=", "mAP="]
            .iter()
            .find_map(|name| line.strip_prefix(name));
        let rounded = named.map(|rest| (rest, 0.0011));
        let wer = || {
            let rest = line.strip_prefix("Word Error Rate: ")?;
            Some((rest.split_once("accuracy=")?.1, 1e-9))
        };
        let dice = || Some((line.strip_prefix("Accuracy: mean = ")?, 0.000_011));
        let (rest, tolerance) = rounded
            .or_else(dice)
            .or_else(wer)
            .or_else(|| Some((line.split_once("\"f1\": ")?.1, 1e-9)))?;
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        Some((rest.get(..end)?.parse::<f64>().ok()?, tolerance))
    })?;
    Some((found - own.value).abs() < tolerance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_is_the_scripts_own() {
        let own = |value| AccuracyResult {
            metric: String::new(),
            value,
            correct: None,
            total: 1,
            missing: 0,
            duplicates: 0,
            target: None,
            side: regatta_types::benchmark::BoundSide::AtLeast,
            classes: Vec::new(),
            further: Vec::new(),
        };
        assert_eq!(
            agrees(b"accuracy=98.995%, good=591, total=597\n", &own(98.99497)),
            Some(true)
        );
        assert_eq!(agrees(b"loading\naccuracy=7%\n", &own(7.1)), Some(false));
        assert_eq!(agrees(b" accuracy=7%\nAP=3\n", &own(7.0)), None);
        let openimages = b" Average Precision  (AP) @[ IoU=0.50:0.95 ] = 0.376\nmAP=37.552%\n";
        assert_eq!(agrees(openimages, &own(37.5517)), Some(true));
        assert_eq!(agrees(openimages, &own(37.54)), Some(false));
        let kits =
            b"Running evaluation...\nAccuracy: mean = 0.86170, kidney = 0.9347, tumor = 0.7887\nDone!\n";
        assert_eq!(agrees(kits, &own(0.861_704)), Some(true));
        assert_eq!(agrees(kits, &own(0.861_69)), Some(true), "rounded in two ways");
        assert_eq!(agrees(kits, &own(0.861_6)), Some(false));
        let rnnt = b"Word Error Rate: 7.452253714852645%, accuracy=92.54774628514736%\n";
        assert_eq!(agrees(rnnt, &own(92.547_746_285_147_36)), Some(true));
        assert_eq!(agrees(rnnt, &own(92.547_7)), Some(false));
        let squad = b"Reading\n{\"exact_match\": 83.5, \"f1\": 90.87487229720105}\n";
        assert_eq!(agrees(squad, &own(90.874_872_297_201_05)), Some(true));
        assert_eq!(agrees(squad, &own(90.8749)), Some(false));
        let rouge = b"\nResults\n\n{'rouge1': '43.03', 'rouge2': '20.13', 'rougeL': '30.01', 'rougeLsum': '40.0', 'gen_len': np.int64(70), 'gen_num': 1}\n";
        let figures = [
            ("ROUGE2", 20.13),
            ("ROUGEL", 30.01),
            ("ROUGELSUM", 40.0),
            ("GEN_LEN", 70.0),
        ];
        let mut summaries = own(43.03);
        summaries.metric = "ROUGE1".to_owned();
        summaries.further = figures
            .map(|(name, value)| FurtherFigure::new(name, value, &[]))
            .into();
        assert_eq!(agrees(rouge, &summaries), Some(true));
        summaries.further[1].value = 30.02;
        assert_eq!(agrees(rouge, &summaries), Some(false));
    }
}
