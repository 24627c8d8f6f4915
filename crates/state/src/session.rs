//! One agent's visit: its requests one after the other, and at its end, however it came, everything put back.

use std::{
    io::{self, BufRead, Read as _, Write},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{
    board::Board,
    journal::Journal,
    knob::Knob,
    message::{KnobLine, LONGEST_LINE, Line, Request},
    transaction::{self, Held, Refusal},
};

/// How long a helper before this one may take to put back.
const PATIENCE: Duration = Duration::from_secs(8);
/// Who else may be setting a state.
const BUSY: &str = "another run holds the board's state; try again when it has ended";

/// Answers requests until the other side goes; then puts back what is still set.
///
/// # Errors
/// What could not be put back, as a sentence.
pub fn serve(
    board: &Board,
    journal_dir: &std::path::Path,
    input: impl BufRead,
    mut output: impl Write,
) -> Result<(), String> {
    let mut held: Option<Held> = None;
    let mut input = input;
    while let Ok(Some(line)) = next_line(&mut input) {
        let (lines, last) = match line.parse::<Request>() {
            Ok(request) => answer(board, journal_dir, &mut held, request),
            Err(e) => (Vec::new(), Line::Refused(e.to_string())),
        };
        if say(&mut output, lines, &last).is_err() {
            break;
        }
    }
    let Some(held) = held else { return Ok(()) };
    held.put_back().map(drop).map_err(|refusal| refusal.why)
}

fn answer(
    board: &Board,
    journal_dir: &std::path::Path,
    held: &mut Option<Held>,
    request: Request,
) -> (Vec<KnobLine>, Line) {
    let outcome = match request {
        Request::Read(knobs) => Ok(read(board, &knobs)),
        Request::Apply(_) if held.is_some() => Err(Refusal {
            why: "a state is set already; restore it first".to_owned(),
            knobs: Vec::new(),
        }),
        Request::Apply(wish) => open(journal_dir)
            .and_then(|journal| transaction::apply(board.clone(), journal, &wish))
            .map(|(now_held, lines)| {
                *held = Some(now_held);
                lines
            }),
        Request::Restore => match held {
            Some(set) => set.put_back().inspect(|_| *held = None),
            None => open(journal_dir).and_then(|journal| transaction::put_back_leftover(board, &journal)),
        },
    };
    match outcome {
        Ok(lines) => (lines, Line::Done),
        Err(refusal) => (refusal.knobs, Line::Refused(refusal.why)),
    }
}

/// The journal, as soon as nobody else holds it: a helper whose agent has just died is still putting back.
fn open(journal_dir: &std::path::Path) -> Result<Journal, Refusal> {
    let begin = Instant::now();
    loop {
        if let Some(journal) = Journal::open(journal_dir)? {
            return Ok(journal);
        }
        if begin.elapsed() > PATIENCE {
            return Err(Refusal {
                why: BUSY.to_owned(),
                knobs: Vec::new(),
            });
        }
        sleep(Duration::from_millis(20));
    }
}

fn read(board: &Board, knobs: &[Knob]) -> Vec<KnobLine> {
    let line = |knob, read| KnobLine {
        knob,
        before: None,
        wanted: None,
        read,
    };
    if knobs.is_empty() {
        let all = board.read_all().into_iter();
        return all.map(|(knob, value)| line(knob, Some(value))).collect();
    }
    knobs.iter().map(|&knob| line(knob, board.read(knob))).collect()
}

fn say(output: &mut impl Write, lines: Vec<KnobLine>, last: &Line) -> io::Result<()> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&format!("{}\n", Line::Knob(line)));
    }
    text.push_str(&format!("{last}\n"));
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// The next line; `None` at the end, and for one that is too long or is no text.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let limit = u64::try_from(LONGEST_LINE).unwrap_or(u64::MAX);
    input.by_ref().take(limit).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8(line)
        .ok()
        .and_then(|line| line.strip_suffix('\n').map(str::to_owned)))
}
