//! Checks the errors and warnings in PTDaemon's own log (`ptd_logs.txt`), by the time at which they occurred.

use memchr::memchr_iter;
use regatta_catalogue::round::PowerRules;
use serde_json::Value;

use super::{
    check_failure::CheckFailure,
    samples::{plain_unix_seconds, unix_seconds},
    session::{CheckResult, Session, SessionFinding},
};

/// The log's path in a session's directory.
pub(super) const FILE: &str = "power/ptd_logs.txt";
/// The largest log that is read, in bytes. A session prints a few hundred kilobytes.
const MAX: u64 = 256 << 20;
/// The length of a timestamp, for example `08-03-2022 08:11:56.642`.
const STAMP: usize = 23;
/// The prefixes of reports, indexed by [`Word`].
const WORDS: [&str; 2] = ["WARNING:", "ERROR:"];
/// The error that PTDaemon may report during the testing run.
const KNOWN_TESTING_ERROR: &str = "USB.";

pub(super) struct Log<'a> {
    rules: &'a PowerRules,
    text: String,
    /// Whether the text equals the file byte for byte.
    verbatim: bool,
    /// The seconds that are added to its timestamps.
    shift: f64,
    ranging: Interval,
    run: Interval,
}

/// The time from the begin to the end of a run, in seconds since 1970.
#[derive(Debug, Clone, Copy, Default)]
struct Interval {
    begin: f64,
    end: f64,
}

impl Interval {
    /// Returns whether `time` is inside, at least `margin` seconds from both ends.
    fn contains(self, time: f64, margin: f64) -> bool {
        self.begin + margin < time && time < self.end - margin
    }
}

/// The severity of a report.
#[derive(Debug, Clone, Copy)]
enum Word {
    Warning,
    Error,
}

/// A line with one or both of [`WORDS`].
struct ReportLine<'a> {
    number: u64,
    line: &'a str,
    /// The first position of each of the words.
    words: [Option<usize>; 2],
    time: LineTime,
}

/// The time of a line. It is `None` without a timestamp, and an error if the timestamp is not a valid time.
type LineTime = Result<Option<f64>, CheckFailure>;

/// A report in a line.
struct PtdReport<'a> {
    line: &'a str,
    text: &'a str,
    time: f64,
}

impl PtdReport<'_> {
    /// Returns the line without its timestamp, so that equal reports have equal texts.
    fn message(&self) -> &str {
        let message = self.line.get(STAMP..).unwrap_or(self.line);
        message.trim_start_matches([':', ' '])
    }
}

/// Checks the log like the official program, which ends at its first report. A review continues to find what that overlooks.
pub(super) fn check(session: &Session<'_>) -> CheckResult {
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

/// Returns the seconds at the end of the testing run that the log does not reach, if it ends too early: reports of them are not in it. The
/// official server loses the last kilobytes, which in a long session are only copies of samples.
pub(super) fn missing_end(session: &Session<'_>) -> Option<f64> {
    let log = session.ptd_log().ok()?;
    let last = log
        .lines()
        .filter_map(|line| log.time(line).ok().flatten())
        .last()?;
    // Rounds that read its times as local ones say nothing about them.
    (!log.rules.log_in_local_time && last < log.run.end).then_some(log.run.end - last)
}

impl<'a> Log<'a> {
    /// Reads the log of a session.
    pub(super) fn read(session: &Session<'a>) -> Result<Self, CheckFailure> {
        let name = FILE;
        let bytes = session
            .tree
            .read(&session.at(name), MAX)
            .map_err(|error| format!("{name} cannot be read: {error}"))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{name} is not UTF-8 text"))?;
        // CRLF line ends are kept, so that the text equals the file. The official program also ends a line at a single CR.
        let mut returns = memchr_iter(b'\r', text.as_bytes());
        let verbatim = returns.all(|at| text.as_bytes().get(at + 1) == Some(&b'\n'));
        let text = match verbatim {
            true => text,
            false => text.replace("\r\n", "\n").replace('\r', "\n"),
        };
        let window = session.window("run_1")?;
        let stamp = |text: &str| unix_seconds(text).ok_or_else(|| format!("`{text}` is not a time stamp"));
        let zone = match session.server.get("timezone") {
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(value) => value.as_f64().map(f64::trunc),
            None => None,
        };
        let zone = zone.ok_or("timezone is not a number")?;
        let mut log = Self {
            rules: session.rules,
            text,
            verbatim,
            shift: if session.rules.log_in_local_time {
                zone
            } else {
                0.0
            },
            ranging: Interval::default(),
            run: Interval {
                begin: stamp(&window.begin)?,
                end: stamp(&window.end)?,
            },
        };
        let name = session.server.get("session_name");
        log.ranging = log.find_ranging(name.and_then(Value::as_str).unwrap_or_default())?;
        Ok(log)
    }

    /// Returns the file's contents, if the text equals the file.
    pub(super) fn contents(&self) -> Option<&[u8]> {
        self.verbatim.then_some(self.text.as_bytes())
    }

    /// Returns the time of a line, or `None` if it has no timestamp.
    fn time(&self, line: &str) -> LineTime {
        let Some(stamp) = line.get(..STAMP) else {
            return Ok(None);
        };
        // Nearly all timestamps are regular. Only others need the test whether they are timestamps at all.
        let time = plain_unix_seconds(stamp);
        if time.is_none() && !looks_like_stamp(stamp) {
            return Ok(None);
        }
        match time.or_else(|| unix_seconds(stamp)) {
            Some(time) => Ok(Some(time + self.shift)),
            None => Err(format!("`{stamp}` is not a time stamp").into()),
        }
    }

    /// Finds the ranging run: from its mark to the next completed test.
    fn find_ranging(&self, name: &str) -> Result<Interval, CheckFailure> {
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
                Some(begin) if is(": Completed test") => return Ok(Interval { begin, end: time }),
                _ => {}
            }
        }
        Err("the ranging run is not in ptd_logs.txt".into())
    }

    /// Checks that PTDaemon's uncertainty check was active before the ranging run began.
    fn uncertainty_checked(&self) -> CheckResult {
        let activated = |line: &str| {
            let (_, rest) = line.split_once("Uncertainty checking for Yokogawa")?;
            let (meter, _) = rest.split_once(" is activated")?;
            (!meter.is_empty() && !meter.contains(char::is_whitespace)).then_some(())
        };
        let line = self.text.lines().find(|line| activated(line).is_some());
        let line = line.ok_or("the uncertainty was not watched: `is activated` is not in ptd_logs.txt")?;
        match self.time(line)? {
            Some(time) if time < self.ranging.begin => Ok(()),
            Some(_) => Err("the uncertainty was watched only after the ranging run had begun".into()),
            None => Err("the line about the monitored uncertainty has no time stamp".into()),
        }
    }

    /// Returns the lines with one of [`WORDS`]. They are few, or nearly all if a meter cannot determine its uncertainty.
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

    /// Returns all lines, with their line ends.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        let mut begin = 0;
        let ends = memchr_iter(b'\n', self.text.as_bytes()).map(|newline| newline + 1);
        ends.chain([self.text.len()]).map(move |end| {
            let line = self.text.get(begin..end).unwrap_or_default();
            begin = end;
            line
        })
    }

    /// Returns the official program's verdict on a line.
    fn judge(&self, report_line: &ReportLine<'_>) -> CheckResult {
        if let Some(report) = report(report_line, Word::Warning)? {
            self.warning(&report)?;
        }
        if let Some(report) = report(report_line, Word::Error)? {
            self.error(&report)?;
        }
        Ok(())
    }

    /// Returns an error outside the ranging run, which the official program overlooks after its first warning.
    fn overlooked_error<'b>(&self, report_line: &ReportLine<'b>) -> Option<&'b str> {
        let report = report(report_line, Word::Error).ok()??;
        let known = report.text == KNOWN_TESTING_ERROR;
        (!known && !self.in_ranging(report.time)).then_some(report.text)
    }

    /// Returns an uncertainty in the part of the run that the official program skips.
    fn overlooked_uncertainty<'b>(&self, report_line: &ReportLine<'b>) -> Option<&'b str> {
        // A session warns about every sample of the ranging run. This test quickly skips most of those warnings.
        if !report_line.line.contains('%') {
            return None;
        }
        let report = report(report_line, Word::Warning).ok()??;
        let margin = f64::from(self.rules.clock_tolerance_ms) / 1e3;
        let within = self.run.contains(report.time, margin);
        (within && is_uncertainty(report.text)).then_some(report.text)
    }

    fn in_ranging(&self, time: f64) -> bool {
        self.ranging.contains(time, 0.0)
    }

    fn warning(&self, report: &PtdReport<'_>) -> CheckResult {
        let rules = self.rules;
        let margin = rules.warning_margin_s;
        if !self.run.contains(report.time, margin) {
            return Ok(());
        }
        let text = format!("in the testing run: {}", report.message());
        if rules.uncertainty_is_error && is_uncertainty(report.text) {
            return Err(text.into());
        }
        Err(SessionFinding::Warning(text))
    }

    fn error(&self, report: &PtdReport<'_>) -> CheckResult {
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

/// Returns the report after `word` in a line.
fn report<'a>(report_line: &ReportLine<'a>, word: Word) -> Result<Option<PtdReport<'a>>, CheckFailure> {
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
        Some(time) => Ok(Some(PtdReport {
            line,
            text: text.trim(),
            time,
        })),
        None => Err(format!("`{line}` has no time stamp").into()),
    }
}

/// Returns the first position of each of [`WORDS`] in a line. It only searches at colons, because the words end with one.
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

/// Returns whether a text has digits, dashes and colons at the places of a timestamp.
fn looks_like_stamp(text: &str) -> bool {
    let form = b"dd-dd-dddd dd:dd:dd?ddd";
    text.len() == STAMP
        && text.bytes().zip(form).all(|(byte, form)| match form {
            b'd' => byte.is_ascii_digit(),
            b'?' => true,
            form => byte == *form,
        })
}

/// Returns whether the text contains `Uncertainty 1.20%, which is above 1.00% limit for the last sample!` with any number.
fn is_uncertainty(text: &str) -> bool {
    text.match_indices("Uncertainty ").any(|(at, word)| {
        let rest = text.get(at + word.len()..).unwrap_or_default();
        let number = rest.split_once("%, which is above 1.00% limit for the last sample!");
        let parts = number.and_then(|(number, _)| number.split_once('.'));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        parts.is_some_and(|(whole, fraction)| digits(whole) && digits(fraction))
    })
}
