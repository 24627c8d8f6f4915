//! The log files of a run: created together, written in LoadGen's order, closed together.

use std::{
    fs::File,
    io::{self, BufWriter},
    path::PathBuf,
};

use regatta_mllog::{
    detail::{DetailWriter, Level, PrintedValue},
    summary::SummaryWriter,
    trace::{SampleTrace, TraceWriter},
};
use rustix::thread::gettid;

use super::{
    clock::now_ns,
    tap::{AccuracyTap, TokenEntries},
};
use crate::{load_gen::LoadgenError, request::LogSettings};

/// The open log files. A write failure is kept and returned when they are closed. A run on a full disk therefore ends and reports it.
pub(super) struct RunLog {
    settings: LogSettings,
    origin_ns: i64,
    tid: u64,
    pub(super) detail: DetailWriter<BufWriter<File>>,
    pub(super) summary: SummaryWriter<BufWriter<File>>,
    trace: Option<TraceWriter<BufWriter<File>>>,
    failure: Option<LoadgenError>,
}

impl RunLog {
    /// Creates the files, and the accuracy log's receiver of responses.
    pub(super) fn create(
        settings: &LogSettings,
        tokens: TokenEntries,
    ) -> Result<(Self, AccuracyTap), LoadgenError> {
        let fail = |kind: &str| {
            let path = settings.path(kind);
            move |source| LoadgenError::Log { path, source }
        };
        let create = |kind: &str| File::create(settings.path(kind)).map_err(fail(kind));
        let pid = std::process::id();
        let trace = settings
            .trace
            .then(|| -> Result<_, LoadgenError> {
                TraceWriter::new(BufWriter::new(create("trace")?), pid).map_err(fail("trace"))
            })
            .transpose()?;
        let log = Self {
            settings: settings.clone(),
            origin_ns: now_ns(),
            tid: u64::from(gettid().as_raw_nonzero().get().cast_unsigned()),
            detail: DetailWriter::new(BufWriter::new(create("detail")?), pid),
            summary: SummaryWriter::new(BufWriter::new(create("summary")?)),
            trace,
            failure: None,
        };
        let tap = AccuracyTap::new(create("accuracy")?, tokens).map_err(fail("accuracy"))?;
        Ok((log, tap))
    }

    /// Returns the files, in the order summary, detail, accuracy, trace.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let kinds = ["summary", "detail", "accuracy", "trace"];
        let count = if self.trace.is_some() { 4 } else { 3 };
        kinds[..count]
            .iter()
            .map(|kind| self.settings.path(kind))
            .collect()
    }

    /// Logs an information line.
    #[track_caller]
    pub(super) fn info<'v>(&mut self, key: &str, value: impl Into<PrintedValue<'v>>) {
        self.line(Level::Info, key, &value.into());
    }

    /// Logs a warning.
    #[track_caller]
    pub(super) fn warning(&mut self, text: &str) {
        self.line(
            Level::Warning,
            "warning_generic_message",
            &PrintedValue::Text(text),
        );
    }

    /// Logs an error.
    #[track_caller]
    pub(super) fn error(&mut self, key: &str, text: &str) {
        self.line(Level::Error, key, &PrintedValue::Text(text));
    }

    #[track_caller]
    fn line(&mut self, level: Level, key: &str, value: &PrintedValue<'_>) {
        let time_ns = now_ns().saturating_sub(self.origin_ns).cast_unsigned();
        let written = self.detail.line(time_ns, level, self.tid, key, value);
        self.keep("detail", written);
    }

    /// Writes to the summary.
    pub(super) fn summarize(
        &mut self,
        write: impl FnOnce(&mut SummaryWriter<BufWriter<File>>) -> io::Result<()>,
    ) {
        let written = write(&mut self.summary);
        self.keep("summary", written);
    }

    /// Whether samples are traced.
    pub(super) const fn traces(&self) -> bool {
        self.trace.is_some()
    }

    /// Writes samples to the trace.
    pub(super) fn trace(&mut self, samples: &[SampleTrace], server: bool) {
        let Some(trace) = &mut self.trace else { return };
        let origin = self.origin_ns;
        let written = samples.iter().try_for_each(|sample| {
            let from_origin = SampleTrace {
                scheduled_ns: sample.scheduled_ns - origin,
                issued_ns: sample.issued_ns - origin,
                completed_ns: sample.completed_ns - origin,
                ..*sample
            };
            trace.sample(&from_origin, server)
        });
        self.keep("trace", written);
    }

    /// Passes the buffered lines to the system, before time is measured.
    pub(super) fn flush(&mut self) {
        let flushed = self.detail.flush();
        self.keep("detail", flushed);
    }

    /// Returns the number of lines with `is_error` so far.
    pub(super) const fn errors(&self) -> u64 {
        self.detail.errors()
    }

    fn keep(&mut self, kind: &str, written: io::Result<()>) {
        if let Err(source) = written {
            let path = self.settings.path(kind);
            self.failure.get_or_insert(LoadgenError::Log { path, source });
        }
    }

    /// Ends all files and returns the first failure to write any of them.
    pub(super) fn close(mut self, tap: &AccuracyTap, version: &str) -> Result<(), LoadgenError> {
        let accuracy = tap.close();
        self.keep("accuracy", accuracy);
        self.flush();
        let (warnings, errors) = (self.detail.warnings(), self.detail.errors());
        let Self {
            settings,
            summary,
            trace,
            origin_ns,
            mut failure,
            ..
        } = self;
        let mut end = |kind: &str, ended: io::Result<()>| {
            if let Err(source) = ended {
                let path = settings.path(kind);
                failure.get_or_insert(LoadgenError::Log { path, source });
            }
        };
        if let Some(trace) = trace {
            end("trace", trace.finish(origin_ns, version));
        }
        end("summary", summary.finish(warnings, errors));
        failure.map_or(Ok(()), Err)
    }
}
