//! The commands of a connection to the simulated PTDaemon, and their replies.

use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    net::TcpStream,
    time::Duration,
};

use regatta_catalogue::round::SIMULATION_MARK;

use super::{console::Console, ending::hang, measurement::Meter, options::SimulatedPtd};
use crate::ptd::{self, reply};

/// Lines printed after a measurement. The official server loses the last 8 KiB of what PTDaemon prints before the testing run ends,
/// and a rehearsal is too short for PTDaemon's own lines to fill them.
const PADDING_LINES: usize = 200;
/// A shorter period would only make logs large.
const MIN_PERIOD: Duration = Duration::from_millis(10);

/// Answers one client until it hangs up.
pub(super) fn serve(
    ptd: &SimulatedPtd,
    meter: &Meter,
    console: Console,
    stream: TcpStream,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut output = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            meter.stop();
            return Ok(());
        }
        if meter.is_stalled() {
            hang();
        }
        let command = String::from_utf8_lossy(&line);
        let reply = answer(ptd, meter, console, command.trim_end());
        let reply_lines = reply.join("\r\n");
        console.stamped(&format!("Response to client sent: {reply_lines}"));
        output.write_all(format!("{reply_lines}\r\n").as_bytes())?;
    }
}

/// Executes a command and returns the lines of its reply.
fn answer(ptd: &SimulatedPtd, meter: &Meter, console: Console, command: &str) -> Vec<String> {
    let fields: Vec<&str> = command.split(',').collect();
    let one = |text: &str| vec![text.to_owned()];
    match fields.as_slice() {
        ["Hello"] => one(reply::HELLO),
        ["Identify"] => vec![ptd.identity()],
        ["RR"] => vec![meter.ranges()],
        ["SR", kind @ ("V" | "A"), range] => {
            let is_volts = *kind == "V";
            match (meter.set_range(is_volts, range), is_volts) {
                (false, _) => vec![format!("Error: {SIMULATION_MARK} has no range {range} {kind}")],
                (true, true) => one(reply::VOLTS_CHANGED),
                (true, false) => one(reply::AMPS_CHANGED),
            }
        }
        ["Go", period, "0", mark] => {
            let Ok(milliseconds) = period.parse() else {
                return one(reply::INVALID_PARAMETERS);
            };
            console.stamped(&format!("Go with mark '{mark}'"));
            meter.go(Duration::from_millis(milliseconds).max(MIN_PERIOD), mark);
            vec![format!(
                "Starting untimed measurement, maximum 500000 samples at {milliseconds}ms with 0 rampup samples"
            )]
        }
        ["Stop"] => match meter.stop() {
            true => {
                console.stamped("Completed test");
                pad(console);
                one(reply::STOPPED)
            }
            false => one(reply::NOTHING_TO_STOP),
        },
        ["RL", "*", "*"] if ptd::DC.contains(&ptd.device_type) => one(reply::UNKNOWN_COMMAND),
        ["RL", "*", "*"] if ptd.channels > 1 => rows(meter.unread(true)),
        ["RL", "*", "*"] => one(reply::INVALID_PARAMETERS),
        ["RL"] | ["DC-RL"] => rows(meter.unread(false)),
        ["Uncertainty"] => vec![meter.uncertainty()],
        ["Watts"] => vec![meter.watts()],
        _ => one(reply::UNKNOWN_COMMAND),
    }
}

fn rows(rows: Vec<String>) -> Vec<String> {
    let header = format!("Last {} samples", rows.len());
    std::iter::once(header).chain(rows).collect()
}

fn pad(console: Console) {
    for number in 1..=PADDING_LINES {
        console.print(&format!(
            "{SIMULATION_MARK}: padding {number} of {PADDING_LINES}, because the official server loses the end of this log"
        ));
    }
}
