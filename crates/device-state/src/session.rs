//! A session of one agent: answers its requests in order, and restores everything when the connection ends for any reason.
//! It does not decide whose connection is accepted.

use std::{
    io::{self, BufRead, Read as _, Write},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{
    board_controls::BoardControls,
    device_control::DeviceControl,
    journal::Journal,
    message::{ControlReport, HelperRequest, MAX_LINE_LEN, ResponseLine},
    transaction::{self, AppliedState, Refusal},
};

/// The time that another helper may take to restore its state before this one gives up.
const TIMEOUT: Duration = Duration::from_secs(8);
/// The reason for refusing a request while another helper has the journal.
const BUSY: &str = "another run has set the board's state; try again when it has ended";

/// Answers requests until the connection ends, then restores a state that is still applied.
///
/// # Errors
/// [`Refusal`] when a control does not accept its earlier value.
pub fn serve(
    board: &BoardControls,
    journal_dir: &std::path::Path,
    input: impl BufRead,
    mut output: impl Write,
) -> Result<(), Refusal> {
    let mut applied: Option<AppliedState> = None;
    let mut input = input;
    while let Ok(Some(line)) = next_line(&mut input) {
        let (lines, last) = match line.parse::<HelperRequest>() {
            Ok(request) => answer(board, journal_dir, &mut applied, request),
            Err(e) => (Vec::new(), ResponseLine::Refused(e.to_string())),
        };
        if write_response(&mut output, lines, &last).is_err() {
            break;
        }
    }
    let Some(applied) = applied else { return Ok(()) };
    applied.restore().map(drop)
}

fn answer(
    board: &BoardControls,
    journal_dir: &std::path::Path,
    applied: &mut Option<AppliedState>,
    request: HelperRequest,
) -> (Vec<ControlReport>, ResponseLine) {
    let outcome = match request {
        HelperRequest::Read(controls) => Ok(read(board, &controls)),
        HelperRequest::Apply(_) if applied.is_some() => Err(Refusal {
            reason: "this connection has already applied a state; hint: restore it first".to_owned(),
            controls: Vec::new(),
        }),
        HelperRequest::Apply(request) => open(journal_dir)
            .and_then(|journal| transaction::apply(board.clone(), journal, &request))
            .map(|(applied_state, lines)| {
                *applied = Some(applied_state);
                lines
            }),
        HelperRequest::Restore => match applied {
            Some(set) => set.restore().inspect(|_| *applied = None),
            None => open(journal_dir).and_then(|journal| transaction::restore_leftover(board, &journal)),
        },
    };
    match outcome {
        Ok(lines) => (lines, ResponseLine::Done),
        Err(refusal) => (refusal.controls, ResponseLine::Refused(refusal.reason)),
    }
}

/// Opens the journal, and waits while another helper holds it: one whose agent has just died is still restoring.
fn open(journal_dir: &std::path::Path) -> Result<Journal, Refusal> {
    let begin = Instant::now();
    loop {
        if let Some(journal) = Journal::open(journal_dir)? {
            return Ok(journal);
        }
        if begin.elapsed() > TIMEOUT {
            return Err(Refusal {
                reason: BUSY.to_owned(),
                controls: Vec::new(),
            });
        }
        sleep(Duration::from_millis(20));
    }
}

fn read(board: &BoardControls, controls: &[DeviceControl]) -> Vec<ControlReport> {
    let line = |control, read| ControlReport {
        control,
        before: None,
        requested: None,
        read,
    };
    if controls.is_empty() {
        let all = board.read_all().into_iter();
        return all.map(|(control, value)| line(control, Some(value))).collect();
    }
    controls
        .iter()
        .map(|&control| line(control, board.read(control)))
        .collect()
}

fn write_response(output: &mut impl Write, lines: Vec<ControlReport>, last: &ResponseLine) -> io::Result<()> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&format!("{}\n", ResponseLine::Control(line)));
    }
    text.push_str(&format!("{last}\n"));
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// Reads the next line. Returns `None` at the end of the input, and for a line that is too long or not UTF-8.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let limit = u64::try_from(MAX_LINE_LEN).unwrap_or(u64::MAX);
    input.by_ref().take(limit).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8(line)
        .ok()
        .and_then(|line| line.strip_suffix('\n').map(str::to_owned)))
}
