//! `regatta runs logs`: prints a log of a run, while it arrives too.

use std::{
    fs::File,
    io::{self, IsTerminal as _, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use regatta_text::escape_lines;
use regatta_types::RunId;

use super::super::{Context, context::tell};
use crate::exit::Failure;
use regatta_lab_store::{RunRow, Store, StreamRow, workspace::Workspace};
use regatta_lab_views::lookup;

/// The interval between two looks at a log that is followed.
const PAUSE: Duration = Duration::from_millis(500);
/// The bytes that are read at once.
const CHUNK: u64 = 1 << 20;

/// Flags of `runs logs`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta runs logs last summary
      LoadGen's summary of the newest run
  regatta runs logs last -f
      what the run process writes, while it arrives (`regatta run --stream live`)

LOG is one of these, or the name of another file of the run, such as server.log:
  summary    LoadGen's mlperf_log_summary.txt
  detail     LoadGen's mlperf_log_detail.txt
  accuracy   the responses, mlperf_log_accuracy.json
  run        what the run process wrote, run.log
  telemetry  the device's sensors and clocks in each second, telemetry.csv")]
pub(in crate::cli) struct LogsArgs {
    /// The run's id, its beginning or end, or `last`
    run: String,
    /// The log [default: run]
    #[arg(value_name = "LOG", default_value = "run", hide_default_value = true)]
    log: String,
    /// Follow the log until the run has ended
    #[arg(short, long)]
    follow: bool,
}

/// Prints the log.
pub(super) fn run(
    args: &LogsArgs,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<(), Failure> {
    let row = lookup::run(store, &args.run)?;
    let log = Log {
        run: row.id,
        name: file_name(&args.log),
        workspace,
        store,
    };
    let mut output = LogOutput::default();
    loop {
        let row = store.runs().get(row.id)?.unwrap_or_else(|| row.clone());
        // The end of the run is read before the log: nothing is added to it afterwards.
        let path = log.path()?;
        let has_reader = path.as_ref().map_or(Ok(true), |path| output.print_new(path))?;
        if !has_reader {
            return Ok(());
        }
        if row.is_over() || !args.follow {
            let Some(path) = path else {
                return Err(log.missing(&row)?);
            };
            if output.offset == 0 {
                tell(&format!("{} is empty", path.display()));
            }
            return Ok(());
        }
        if !workspace.is_served() {
            return Err(
                Failure::could_not("no coordinator serves this workspace: the run cannot continue")
                    .hint(format!("start it: `{}`", context.command("serve --detach"))),
            );
        }
        thread::sleep(PAUSE);
    }
}

/// Returns the name of the file for the short name of a log.
fn file_name(log: &str) -> &str {
    match log {
        "summary" => "mlperf_log_summary.txt",
        "detail" => "mlperf_log_detail.txt",
        "accuracy" => "mlperf_log_accuracy.json",
        "run" => "run.log",
        "telemetry" => "telemetry.csv",
        other => other,
    }
}

struct Log<'a> {
    run: RunId,
    name: &'a str,
    workspace: &'a Workspace,
    store: &'a Store,
}

impl Log<'_> {
    fn streams(&self) -> Result<Vec<StreamRow>, Failure> {
        Ok(self.store.streams().of_run(self.run)?)
    }

    /// Returns the log's path, complete or not. `None` when none of it has arrived.
    fn path(&self) -> Result<Option<PathBuf>, Failure> {
        let directory = self.workspace.run(self.run);
        let stream = self
            .streams()?
            .into_iter()
            .find(|stream| stream.name.as_str() == self.name);
        let paths = stream.map(|stream| [directory.file(&stream.name), directory.partial_file(&stream.name)]);
        Ok(paths.and_then(|paths| paths.into_iter().find(|path| path.exists())))
    }

    fn missing(&self, row: &RunRow) -> Result<Failure, Failure> {
        let streams = self.streams()?;
        let names: Vec<&str> = streams.iter().map(|stream| stream.name.as_str()).collect();
        Ok(match (names.is_empty(), row.is_over()) {
            (true, true) => Failure::could_not(format!("run {} has no files", row.id)),
            (_, false) => Failure::could_not(format!(
                "{} of run {} has not arrived: the run is {}",
                self.name,
                row.id,
                row.shown_phase().as_str()
            ))
            .hint(
                "-f waits for it; logs arrive after the run, or with `regatta run --stream live` during it",
            ),
            (false, true) => Failure::misuse(format!("run {} has no file `{}`", row.id, self.name))
                .hint(format!("it has {}", names.join(", "))),
        })
    }
}

/// The printed part of a log.
#[derive(Default)]
struct LogOutput {
    offset: u64,
    /// The bytes of a character whose other bytes were not read yet.
    incomplete: Vec<u8>,
}

impl LogOutput {
    /// Prints what was added to a file. On a terminal, characters that would control it are escaped. Returns `false` when nobody reads the
    /// output any more.
    fn print_new(&mut self, path: &Path) -> Result<bool, Failure> {
        let mut file = match File::open(path) {
            // A complete log was moved meanwhile, and is found at its new place next time.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            opened => opened?,
        };
        file.seek(SeekFrom::Start(self.offset))?;
        let mut stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        loop {
            let mut chunk = Vec::new();
            let read = (&mut file).take(CHUNK).read_to_end(&mut chunk)?;
            if read == 0 {
                return Ok(true);
            }
            self.offset += read as u64;
            let written = if is_terminal {
                stdout.write_all(escape_lines(&self.text(&chunk)).as_bytes())
            } else {
                stdout.write_all(&chunk)
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(false),
                written => written?,
            }
        }
    }

    /// Returns the text of further bytes, and keeps those of an incomplete character at their end.
    fn text(&mut self, chunk: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.incomplete);
        bytes.extend_from_slice(chunk);
        if let Err(error) = str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            self.incomplete = bytes.split_off(error.valid_up_to());
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_in_two_chunks_stays_one() {
        let mut output = LogOutput::default();
        let bytes = "31 °C".as_bytes();
        let texts = [output.text(&bytes[..4]), output.text(&bytes[4..])];
        assert_eq!(texts, ["31 ", "°C"]);
    }
}
