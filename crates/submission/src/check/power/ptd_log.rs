//! PTDaemon's own log (`ptd_logs.txt`): its errors and warnings, by when they came up.

use memchr::memchr_iter;
use regatta_config::round::PowerRules;
use serde_json::Value;

use super::{
    samples::{plain_unix_seconds, unix_seconds},
    session::{Session, SessionFinding, Verdict},
};

/// The log in a session's directory.
pub(super) const FILE: &str = "power/ptd_logs.txt";
/// A longer log is none of PTDaemon's: a session prints some hundred kilobytes.
const LONGEST: u64 = 256 << 20;
/// `08-03-2022 08:11:56.642`
const STAMP: usize = 23;
/// What stands before a report, by [`Word`].
const WORDS: [&str; 2] = ["WARNING:", "ERROR:"];
/// What PTDaemon may report during the testing run.
const KNOWN_TESTING_ERROR: &str = "USB.";

pub(super) struct Log<'a> {
    rules: &'a PowerRules,
    text: String,
    /// Whether the text is the file's to the byte.
    verbatim: bool,
    /// Added to its stamps, in seconds.
    shift: f64,
    ranging: (f64, f64),
    run: (f64, f64),
}

/// How a line reports something.
#[derive(Debug, Clone, Copy)]
enum Word {
    Warning,
    Error,
}

/// A line with one of [`WORDS`] or both.
struct ReportLine<'a> {
    number: u64,
    line: &'a str,
    /// Where each of the words is first.
    words: [Option<usize>; 2],
    time: Time,
}

/// When a line was written: `None` where it bears no stamp, an error where the stamp is of no time.
type Time = Result<Option<f64>, String>;

/// A line that reports something.
struct Report<'a> {
    line: &'a str,
    text: &'a str,
    time: f64,
}

impl Report<'_> {
    /// The line without its stamp: the same words in every session are one matter.
    fn message(&self) -> &str {
        let message = self.line.get(STAMP..).unwrap_or(self.line);
        message.trim_start_matches([':', ' '])
    }
}

/// Checks, as the official program does: its first complaint ends it. A review reads on, for what that leaves out.
pub(super) fn check(session: &Session<'_>) -> Verdict {
    let log = session.ptd_log()?;
    let mut verdict = log.uncertainty_checked();
    for report_line in log.report_line() {
        if verdict.is_err() && session.overlooked.is_none() {
            break;
        }
        if verdict.is_ok() {
            verdict = log.judge(&report_line);
        }
        if let Some(found) = &session.overlooked {
            let overlooked = [
                log.overlooked_error(&report_line),
                log.overlooked_uncertainty(&report_line),
            ];
            let here = overlooked.into_iter().flatten();
            found
                .borrow_mut()
                .extend(here.map(|text| (report_line.number, text.to_owned())));
        }
    }
    verdict
}

impl<'a> Log<'a> {
    /// Reads the log of a session.
    pub(super) fn read(session: &Session<'a>) -> Result<Self, String> {
        let name = FILE;
        let bytes = session
            .tree
            .read(&session.at(name), LONGEST)
            .map_err(|error| format!("{name} cannot be read: {error}"))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{name} is no UTF-8 text"))?;
        // Line ends of two characters stay, so that the text is the file's; a return alone ends a line for the official program.
        let mut returns = memchr_iter(b'\r', text.as_bytes());
        let verbatim = returns.all(|at| text.as_bytes().get(at + 1) == Some(&b'\n'));
        let text = match verbatim {
            true => text,
            false => text.replace("\r\n", "\n").replace('\r', "\n"),
        };
        let (begin, end) = session.window("run_1")?;
        let stamp = |text: &str| unix_seconds(text).ok_or_else(|| format!("`{text}` is no time stamp"));
        let zone = match session.server.get("timezone") {
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(value) => value.as_f64().map(f64::trunc),
            None => None,
        };
        let zone = zone.ok_or("timezone is no number")?;
        let mut log = Self {
            rules: session.rules,
            text,
            verbatim,
            shift: if session.rules.log_in_local_time {
                zone
            } else {
                0.0
            },
            ranging: (0.0, 0.0),
            run: (stamp(&begin)?, stamp(&end)?),
        };
        let name = session.server.get("session_name");
        log.ranging = log.find_ranging(name.and_then(Value::as_str).unwrap_or_default())?;
        Ok(log)
    }

    /// The file's contents, where they are at hand as they are.
    pub(super) fn contents(&self) -> Option<&[u8]> {
        self.verbatim.then_some(self.text.as_bytes())
    }

    /// When a line was written; `None` where it bears no stamp.
    fn time(&self, line: &str) -> Time {
        let Some(stamp) = line.get(..STAMP) else {
            return Ok(None);
        };
        // Nearly all are plain: only the others are asked whether they are stamps at all.
        let time = plain_unix_seconds(stamp);
        if time.is_none() && !looks_like_stamp(stamp) {
            return Ok(None);
        }
        match time.or_else(|| unix_seconds(stamp)) {
            Some(time) => Ok(Some(time + self.shift)),
            None => Err(format!("`{stamp}` is no time stamp")),
        }
    }

    /// From the mark of the ranging run to the next completed test.
    fn find_ranging(&self, name: &str) -> Result<(f64, f64), String> {
        let quote = if name.contains('\'') { '"' } else { '\'' };
        let start = format!(": Go with mark {quote}{name}_ranging{quote}");
        let mut begin = None;
        for line in self.lines() {
            let Some(time) = self.time(line)? else { continue };
            let text = line.get(STAMP..).unwrap_or_default().trim_start();
            let is = |message: &str| {
                text.strip_prefix(message)
                    .is_some_and(|rest| rest.trim().is_empty())
            };
            match begin {
                None if is(&start) => begin = Some(time),
                Some(begin) if is(": Completed test") => return Ok((begin, time)),
                _ => {}
            }
        }
        Err("the ranging run is not in ptd_logs.txt".to_owned())
    }

    /// PTDaemon watched over the uncertainty before the ranging run began.
    fn uncertainty_checked(&self) -> Verdict {
        let activated = |line: &str| {
            let (_, rest) = line.split_once("Uncertainty checking for Yokogawa")?;
            let (meter, _) = rest.split_once(" is activated")?;
            (!meter.is_empty() && !meter.contains(char::is_whitespace)).then_some(())
        };
        let line = self.text.lines().find(|line| activated(line).is_some());
        let line = line.ok_or("the uncertainty was not watched: `is activated` is not in ptd_logs.txt")?;
        match self.time(line)? {
            Some(time) if time < self.ranging.0 => Ok(()),
            Some(_) => Err("the uncertainty was watched only after the ranging run had begun".into()),
            None => Err("the line that says that the uncertainty is watched has no time stamp".into()),
        }
    }

    /// The lines that hold one of [`WORDS`]: few of many, or, while a meter cannot tell its uncertainty, nearly all.
    fn report_line(&self) -> impl Iterator<Item = ReportLine<'_>> {
        (1..).zip(self.lines()).filter_map(|(number, line)| {
            let words = words_of(line);
            words.iter().any(Option::is_some).then(|| ReportLine {
                number,
                line,
                words,
                time: self.time(line.trim_start()),
            })
        })
    }

    /// All lines, with their ends.
    fn lines(&self) -> impl Iterator<Item = &str> {
        let mut begin = 0;
        let ends = memchr_iter(b'\n', self.text.as_bytes()).map(|newline| newline + 1);
        ends.chain([self.text.len()]).map(move |end| {
            let line = self.text.get(begin..end).unwrap_or_default();
            begin = end;
            line
        })
    }

    /// What the official program says of a line.
    fn judge(&self, report_line: &ReportLine<'_>) -> Verdict {
        if let Some(report) = report(report_line, Word::Warning)? {
            self.warning(&report)?;
        }
        if let Some(report) = report(report_line, Word::Error)? {
            self.error(&report)?;
        }
        Ok(())
    }

    /// An error outside of the ranging run, which the official program overlooks behind its first warning.
    fn overlooked_error<'b>(&self, report_line: &ReportLine<'b>) -> Option<&'b str> {
        let report = report(report_line, Word::Error).ok()??;
        let known = report.text == KNOWN_TESTING_ERROR;
        (!known && !self.in_ranging(report.time)).then_some(report.text)
    }

    /// An uncertainty in the part of the run that the official program leaves out.
    fn overlooked_uncertainty<'b>(&self, report_line: &ReportLine<'b>) -> Option<&'b str> {
        // A session warns of every sample in the ranging run: most are not of interest, which their text tells at once.
        if !report_line.line.contains('%') {
            return None;
        }
        let report = report(report_line, Word::Warning).ok()??;
        let margin = f64::from(self.rules.clock_tolerance_ms) / 1e3;
        let within = self.run.0 + margin < report.time && report.time < self.run.1 - margin;
        (within && is_uncertainty(report.text)).then_some(report.text)
    }

    fn in_ranging(&self, time: f64) -> bool {
        self.ranging.0 < time && time < self.ranging.1
    }

    fn warning(&self, report: &Report<'_>) -> Verdict {
        let rules = self.rules;
        let margin = rules.warning_margin_s;
        if !(self.run.0 + margin < report.time && report.time < self.run.1 - margin) {
            return Ok(());
        }
        let text = format!("in the testing run: {}", report.message());
        if rules.uncertainty_is_error && is_uncertainty(report.text) {
            return Err(text.into());
        }
        Err(SessionFinding::Warning(text))
    }

    fn error(&self, report: &Report<'_>) -> Verdict {
        if report.text == KNOWN_TESTING_ERROR {
            let text = format!("accepted in the testing run: {}", report.message());
            return Err(SessionFinding::Warning(text));
        }
        if !self.in_ranging(report.time) {
            return Err(format!("outside of the ranging run: {}", report.message()).into());
        }
        let mut known = self.rules.ranging_errors.iter();
        if known.any(|known| report.text.starts_with(known.as_str())) {
            return Ok(());
        }
        Err(SessionFinding::Warning(format!(
            "in the ranging run: {}",
            report.message()
        )))
    }
}

/// What a line says behind `word`.
fn report<'a>(report_line: &ReportLine<'a>, word: Word) -> Result<Option<Report<'a>>, String> {
    let word = word as usize;
    let Some(at) = report_line.words[word] else {
        return Ok(None);
    };
    let text = report_line.line.get(at + WORDS[word].len()..).unwrap_or_default();
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() {
        return Ok(None);
    }
    let line = report_line.line.trim();
    match report_line.time.clone()? {
        Some(time) => Ok(Some(Report {
            line,
            text: text.trim(),
            time,
        })),
        None => Err(format!("`{line}` has no time stamp")),
    }
}

/// Where each of [`WORDS`] is first in a line: they end at one of its few colons.
fn words_of(line: &str) -> [Option<usize>; 2] {
    let mut words = [None; 2];
    for colon in memchr_iter(b':', line.as_bytes()) {
        let before = line.get(..=colon).unwrap_or_default();
        for (first, word) in words.iter_mut().zip(WORDS) {
            if first.is_none() && before.ends_with(word) {
                *first = Some(before.len() - word.len());
            }
        }
    }
    words
}

/// Digits, dashes and colons where a stamp has them.
fn looks_like_stamp(text: &str) -> bool {
    let form = b"dd-dd-dddd dd:dd:dd?ddd";
    text.len() == STAMP
        && text.bytes().zip(form).all(|(byte, form)| match form {
            b'd' => byte.is_ascii_digit(),
            b'?' => true,
            form => byte == *form,
        })
}

/// `Uncertainty 1.20%, which is above 1.00% limit for the last sample!` within the text.
fn is_uncertainty(text: &str) -> bool {
    text.match_indices("Uncertainty ").any(|(at, word)| {
        let rest = text.get(at + word.len()..).unwrap_or_default();
        let number = rest.split_once("%, which is above 1.00% limit for the last sample!");
        let parts = number.and_then(|(number, _)| number.split_once('.'));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        parts.is_some_and(|(whole, fraction)| digits(whole) && digits(fraction))
    })
}
