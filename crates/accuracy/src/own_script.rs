//! Runs the command of the metric `script`, which belongs to a benchmark's file in the user's workspace, and reads its figure. A file from
//! elsewhere, such as the specification of an imported run, must not be judged this way: its command would be run.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::process::CommandExt as _,
    path::{self, Path},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use regatta_mllog::read::AccuracyLogError;
use rustix::process::{Pid, Signal, kill_process_group};

/// A script that takes longer is ended.
const MAX_TIME: Duration = Duration::from_secs(3600);
/// A script that prints more is ended, in bytes.
const MAX_OUTPUT: u64 = 64 << 20;
/// The end of an output in which its last line is searched, in bytes, and the characters of a line in a message.
const OUTPUT_TAIL: u64 = 64 << 10;
const MAX_QUOTED: usize = 200;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

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
    #[error("`{command}` {end}; last line of its error output: {words}")]
    Failed {
        /// The command.
        command: String,
        /// How it ended.
        end: String,
        /// The last line of its error output.
        words: String,
    },
    /// The system cannot say whether it has ended, or its output cannot be read.
    #[error("`{command}` cannot be followed")]
    Follow {
        /// The command.
        command: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The last line is not a number.
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
    // The command runs elsewhere.
    let [log, scratch] = [log, scratch].map(|path| path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    let filled = |word: &String| {
        word.replace("{log}", &log.display().to_string())
            .replace("{scratch}", &scratch.display().to_string())
    };
    let words: Vec<String> = command.iter().map(filled).collect();
    let (program, arguments) = words.split_first().ok_or(ScriptError::None)?;
    let text = words.join(" ");
    let follow = |source| ScriptError::Follow {
        command: text.clone(),
        source,
    };
    // Files, because a process that the script leaves behind would keep a pipe open.
    let mut output = tempfile::tempfile().map_err(follow)?;
    let mut errors = tempfile::tempfile().map_err(follow)?;
    let child = Command::new(program)
        .args(arguments)
        .current_dir(&scratch)
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(follow)?)
        .stderr(errors.try_clone().map_err(follow)?)
        .process_group(0)
        .spawn()
        .map_err(|source| ScriptError::Start {
            command: text.clone(),
            source,
        })?;
    let end = Group(child).end(&[&output, &errors]).map_err(follow)?;
    if let Some(end) = end {
        let words = last_line(&mut errors).map_err(follow)?;
        return Err(ScriptError::Failed {
            command: text,
            end,
            words: if words.is_empty() {
                "none".to_owned()
            } else {
                words
            },
        });
    }
    let line = last_line(&mut output).map_err(follow)?;
    let number = line.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or(ScriptError::NoFigure { command: text, line })
}

/// A running script with everything that it starts, which is ended when this is dropped.
struct Group(Child);

impl Group {
    /// Waits for the end of the script. Returns why it has no figure, if it has not succeeded.
    fn end(mut self, outputs: &[&File]) -> io::Result<Option<String>> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok((!status.success()).then(|| failed(status)));
            }
            if begin.elapsed() > MAX_TIME {
                return Ok(Some(format!("was ended after {} s", MAX_TIME.as_secs())));
            }
            for output in outputs {
                if output.metadata()?.len() > MAX_OUTPUT {
                    return Ok(Some(format!(
                        "was ended because it printed over {} MiB",
                        MAX_OUTPUT >> 20
                    )));
                }
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            // Usually nothing is left of the group.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

fn failed(status: ExitStatus) -> String {
    format!("failed ({status})")
}

/// Returns the last line of an output that is not empty, as far as a message can quote it.
fn last_line(output: &mut File) -> io::Result<String> {
    let length = output.metadata()?.len();
    output.seek(SeekFrom::Start(length.saturating_sub(OUTPUT_TAIL)))?;
    let mut tail = Vec::new();
    output.take(OUTPUT_TAIL).read_to_end(&mut tail)?;
    let text = String::from_utf8_lossy(&tail);
    let line = text.trim_end().lines().last().unwrap_or_default().trim();
    Ok(line.chars().take(MAX_QUOTED).collect())
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
        // Whatever it prints before, also more than is read.
        assert_eq!(of("seq 1 200000; echo 0.5").unwrap(), 0.5);
        let endless = of("yes x").unwrap_err();
        assert!(
            endless.contains("was ended because it printed over 64 MiB"),
            "{endless}"
        );
        let long = of("head -c 3000000 /dev/zero | tr '\\0' x").unwrap_err();
        assert!(long.len() < 600, "{long}");
    }

    #[test]
    fn what_a_script_leaves_behind_is_ended() {
        let begin = Instant::now();
        assert_eq!(of("sleep 600 & echo 1").unwrap(), 1.0);
        assert!(begin.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn paths_are_absolute() {
        let command = [
            "sh",
            "-c",
            "case {log} in /*) echo 1;; esac; case {scratch} in /*) echo 2;; esac",
        ];
        let command = command.map(str::to_owned);
        assert_eq!(figure(&command, Path::new("a.log"), Path::new(".")).unwrap(), 2.0);
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
            error.ends_with("failed (exit status: 3); last line of its error output: no such file"),
            "{error}"
        );
        let missing = figure(&["/no/such/program".to_owned()], Path::new("a"), Path::new("/")).unwrap_err();
        assert_eq!(missing.to_string(), "`/no/such/program` cannot be started");
        let none = figure(&[], Path::new("a"), Path::new("/")).unwrap_err();
        assert_eq!(none.to_string(), "its file names no `script` under [accuracy]");
    }
}
