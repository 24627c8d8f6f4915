//! `regatta events`: prints each change of devices, runs and campaigns as it happens, a line each.

use std::{
    io::{self, Write as _},
    thread,
    time::Duration,
};

use regatta_text::{escape_json, escape_lines};

use super::{Context, context::Format};
use crate::{
    events::{Event, EventSource},
    exit::{self, CommandResult},
};

/// The interval between two looks at the store.
const PAUSE: Duration = Duration::from_millis(250);

/// Flags of `events`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// First print the present state of every device, and of the runs and campaigns that are not over
    #[arg(long)]
    current: bool,
}

/// Prints changes until the reader leaves or the user interrupts.
pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let (_, store) = context.open_store()?;
    let mut source = EventSource::new(&store);
    let present = source.look()?;
    let mut shown = if args.current { present } else { Vec::new() };
    loop {
        for event in &shown {
            match writeln!(io::stdout(), "{}", line(event, context.format)?) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(exit::OK),
                printed => printed?,
            }
        }
        thread::sleep(PAUSE);
        shown = source.look()?;
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
