//! `regatta events`: prints each change of devices, runs, campaigns and power sessions as it happens, a line each.

use std::{
    collections::BTreeMap,
    io::{self, Write as _},
    thread,
    time::Duration,
};

use regatta_terminal::fit;
use regatta_text::{escape_json, escape_lines};
use regatta_types::ExitCode;

use super::{Context, context::Format};
use crate::exit::CommandResult;
use regatta_lab_views::events::{Event, EventSource};

/// The interval between two looks at the store.
const PAUSE: Duration = Duration::from_millis(250);

/// Flags of `events`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// First print the current state of every device, and of all open runs, campaigns and power sessions
    #[arg(long)]
    current: bool,
}

/// Prints changes until the reader leaves or the user interrupts.
pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let (_, store) = context.open_store()?;
    let mut source = EventSource::new(&store);
    let present = source.look()?;
    let mut shown = if args.current { present } else { Vec::new() };
    let mut words = LastWords::default();
    loop {
        for event in &shown {
            let is_text = context.format == Format::Text;
            if is_text && !words.insert(event) {
                continue;
            }
            let line = line(event, context.format)?;
            let line = if is_text {
                fit(&line, &io::stdout())
            } else {
                line.into()
            };
            match writeln!(io::stdout(), "{line}") {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::Success),
                printed => printed?,
            }
        }
        thread::sleep(PAUSE);
        shown = source.look()?;
    }
}

/// The last words about each thing. A change that text does not show is left out, such as another run on a busy device.
#[derive(Default)]
struct LastWords(BTreeMap<String, String>);

impl LastWords {
    fn insert(&mut self, event: &Event) -> bool {
        let last = self.0.insert(event.id().to_owned(), event.text.clone());
        last.as_ref() != Some(&event.text)
    }
}

fn line(event: &Event, format: Format) -> serde_json::Result<String> {
    Ok(match format {
        Format::Json => escape_json(&serde_json::to_string(event)?).into_owned(),
        _ => {
            let time = event.time.get(11..19).unwrap_or_default();
            format!("{time}  {}", escape_lines(&event.text).replace('\n', " "))
        }
    })
}
