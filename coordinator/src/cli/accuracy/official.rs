//! Runs the reference accuracy script on this workstation. Its output is printed and stored unchanged, and compared with Regatta's
//! figure. A failed script leaves no files.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use regatta_prep::accuracy::LabelType;
use regatta_submission::stage::official;
use regatta_types::{
    benchmark::{Benchmark, Metric},
    documents::document_name,
};

use super::args::{Args, no_scratch};
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
    let mut command = interpreter(args, script);
    command.args(arguments(args, benchmark, scratch, log)?);
    let called = || format!("the reference script {}", script.display());
    let output = command.output().map_err(|error| {
        let program = Path::new(command.get_program()).display();
        let sentence = format!("cannot start {program} for {}: {error}", called());
        Failure::could_not(sentence)
            .hint("`--python` or REGATTA_PYTHON names the Python that runs scripts in .py")
    })?;
    if !output.status.success() {
        let printed = String::from_utf8_lossy(&output.stderr);
        let last = printed.lines().rfind(|line| !line.trim().is_empty());
        return Err(Failure::could_not(format!(
            "{} ended with {}: {}",
            called(),
            output.status,
            last.unwrap_or("it says nothing")
        ))
        .hint("nothing was kept; `--python` names another Python, and words behind `--` are the script's own options"));
    }
    let directory = keep_at(args, log);
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

/// The script's options: the user's with `{log}`, `{map}` and `{scratch}` replaced, otherwise those of the metric's usual script.
fn arguments(
    args: &Args,
    benchmark: &Benchmark,
    scratch: Option<&Path>,
    log: &Path,
) -> Result<Vec<String>, Failure> {
    let usual;
    let words = if args.official_arguments.is_empty() {
        usual = usual_arguments(args, benchmark);
        &usual
    } else {
        &args.official_arguments
    };
    let needs_scratch = words
        .iter()
        .any(|word| word.contains("{map}") || word.contains("{scratch}"));
    let scratch = match scratch {
        Some(scratch) => scratch,
        None if needs_scratch => return Err(no_scratch()),
        None => Path::new(""),
    };
    let map = scratch.join(&benchmark.dataset.map);
    let fill = |word: &String| {
        word.replace("{log}", &log.to_string_lossy())
            .replace("{map}", &map.to_string_lossy())
            .replace("{scratch}", &scratch.to_string_lossy())
    };
    Ok(words.iter().map(fill).collect())
}

/// The options of the metric's reference script. This is `accuracy-imagenet.py` for top-1 and `accuracy-squad.py` for SQuAD, with the
/// files at the benchmark's usual paths.
fn usual_arguments(args: &Args, benchmark: &Benchmark) -> Vec<String> {
    if benchmark.accuracy.metric == Metric::SquadF1 {
        let data = format!("{{scratch}}/data/{}", benchmark.name);
        return [
            "--log_file",
            "{log}",
            "--val_data",
            &format!("{data}/dev-v1.1.json"),
            "--vocab_file",
            &format!("{data}/vocab.txt"),
            "--features_cache_file",
            &format!("{data}/eval_features.pickle"),
        ]
        .map(str::to_owned)
        .into();
    }
    let dtype = match args.dtype.or_else(|| LabelType::of(benchmark.model.response)) {
        Some(LabelType::Byte) => "byte",
        Some(LabelType::Int32) => "int32",
        Some(LabelType::Int64) => "int64",
        // This is also the script's default.
        Some(LabelType::Float32) | None => "float32",
    };
    let words = [
        "--mlperf-accuracy-file",
        "{log}",
        "--imagenet-val-file",
        "{map}",
        "--dtype",
    ];
    words
        .into_iter()
        .map(str::to_owned)
        .chain([dtype.to_owned()])
        .collect()
}

/// The directory for the output: the run's directory for a run's log, otherwise the log's own. Nothing is written among evidence files.
fn keep_at(args: &Args, log: &Path) -> PathBuf {
    if let Some(directory) = &args.keep {
        return directory.clone();
    }
    let beside = log.parent().unwrap_or(Path::new(""));
    let run = beside.parent().filter(|run| {
        beside.file_name().is_some_and(|name| name == "files") && run.join(document_name::SPEC).is_file()
    });
    run.map_or_else(|| beside.to_owned(), |run| run.join("accuracy"))
}

/// Parses the figure to compare with from the script's output: the value after `accuracy=` at the start of a line.
pub(super) fn figure(output: &[u8]) -> Option<f64> {
    let text = String::from_utf8_lossy(output);
    text.lines().find_map(|line| {
        let rest = line.strip_prefix("accuracy=")?;
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        rest.get(..end)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_is_the_scripts_own() {
        assert_eq!(figure(b"accuracy=98.995%, good=591, total=597\n"), Some(98.995));
        assert_eq!(figure(b"loading\naccuracy=7%\n"), Some(7.0));
        assert_eq!(figure(b" accuracy=7%\nmAP=3\n"), None);
    }
}
