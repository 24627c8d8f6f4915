//! Runs the command of the metric `script`, which belongs to a benchmark's file in the user's workspace, and reads its figure. A file from
//! elsewhere, such as the specification of an imported run, must not be judged this way: its command would be run.

use std::{
    io::{self, Read as _},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use regatta_mllog::read::AccuracyLogError;

/// A script that takes longer is ended.
const MAX_TIME: Duration = Duration::from_secs(3600);
/// The output that is kept, in bytes.
const MAX_OUTPUT: u64 = 1 << 20;
const PAUSE: Duration = Duration::from_millis(20);

/// The error of a script.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The benchmark's file names no command.
    #[error("its file names no `script` under [accuracy]")]
    None,
    /// The program cannot be started.
    #[error("`{command}` cannot be started")]
    Start {
        /// The command.
        command: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// It failed, or took too long.
    #[error("`{command}` {end}; its last words: {words}")]
    Failed {
        /// The command.
        command: String,
        /// How it ended.
        end: String,
        /// The last line of its error output.
        words: String,
    },
    /// Its last line is no number.
    #[error("the last line that `{command}` prints must be the figure, but it is `{line}`")]
    NoFigure {
        /// The command.
        command: String,
        /// The line.
        line: String,
    },
    /// The log cannot be read.
    #[error("the responses in the accuracy log cannot be counted")]
    Log(#[from] AccuracyLogError),
    /// The log cannot be opened.
    #[error("the accuracy log cannot be opened")]
    Open(#[from] io::Error),
}

/// Runs a command in the scratch directory, and returns the number in the last line of its output.
pub(crate) fn figure(command: &[String], log: &Path, scratch: &Path) -> Result<f64, ScriptError> {
    let filled = |word: &String| {
        word.replace("{log}", &log.display().to_string())
            .replace("{scratch}", &scratch.display().to_string())
    };
    let words: Vec<String> = command.iter().map(filled).collect();
    let (program, arguments) = words.split_first().ok_or(ScriptError::None)?;
    let text = words.join(" ");
    let start = |source| ScriptError::Start {
        command: text.clone(),
        source,
    };
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(scratch)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(start)?;
    let output = kept(child.stdout.take());
    let errors = kept(child.stderr.take());
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().map_err(start)? {
            Some(status) => break Some(status),
            None if begin.elapsed() > MAX_TIME => {
                // It may have ended meanwhile.
                let _ = child.kill();
                child.wait().map_err(start)?;
                break None;
            }
            None => thread::sleep(PAUSE),
        }
    };
    let failed = |end: String| {
        let words = errors.join().unwrap_or_default();
        let words = words.trim_end().lines().last().unwrap_or("none").to_owned();
        ScriptError::Failed {
            command: text.clone(),
            end,
            words,
        }
    };
    match status {
        Some(status) if status.success() => {}
        Some(status) => return Err(failed(format!("failed ({status})"))),
        None => return Err(failed(format!("was ended after {} s", MAX_TIME.as_secs()))),
    }
    let output = output.join().unwrap_or_default();
    let line = output.trim_end().lines().last().unwrap_or_default().trim();
    let number = line.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| ScriptError::NoFigure {
        command: text.clone(),
        line: line.to_owned(),
    })
}

/// Reads an output to its end on a thread, and keeps its beginning.
fn kept(stream: Option<impl io::Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let Some(mut stream) = stream else {
            return String::new();
        };
        let mut text = Vec::new();
        // An output that cannot be read is as good as none: the status and the figure decide.
        let _ = stream.by_ref().take(MAX_OUTPUT).read_to_end(&mut text);
        let _ = io::copy(&mut stream, &mut io::sink());
        String::from_utf8_lossy(&text).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(script: &str) -> Result<f64, String> {
        let command = ["sh", "-c", script].map(str::to_owned);
        figure(&command, Path::new("a.log"), Path::new("/")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_last_line_is_the_figure() {
        assert_eq!(of("echo reading {log}; echo 0.75; echo").unwrap(), 0.75);
        assert_eq!(of("pwd >&2; printf 3").unwrap(), 3.0);
        let long = "head -c 3000000 /dev/zero | tr '\\0' x; echo; exit 0";
        assert!(of(long).is_err());
    }

    #[test]
    fn a_script_without_a_figure_is_an_error() {
        let error = of("echo accuracy: high").unwrap_err();
        assert!(
            error.ends_with("must be the figure, but it is `accuracy: high`"),
            "{error}"
        );
        assert!(of("echo nan").is_err());
        let error = of("echo no such file >&2; exit 3").unwrap_err();
        assert!(
            error.ends_with("failed (exit status: 3); its last words: no such file"),
            "{error}"
        );
        let missing = figure(&["/no/such/program".to_owned()], Path::new("a"), Path::new("/")).unwrap_err();
        assert_eq!(missing.to_string(), "`/no/such/program` cannot be started");
        let none = figure(&[], Path::new("a"), Path::new("/")).unwrap_err();
        assert_eq!(none.to_string(), "its file names no `script` under [accuracy]");
    }
}
