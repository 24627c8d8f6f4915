//! The log of a session: every line is printed at once, and `client.log` or `server.log` gets all of them.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;

/// Prints a line for the user.
pub type LogSink = Arc<dyn Fn(&str) + Send + Sync>;

#[derive(Clone)]
pub(crate) struct SessionLog {
    name: &'static str,
    print: LogSink,
    lines: Arc<Mutex<String>>,
}

impl SessionLog {
    /// Begins a log of the program `name`.
    pub(crate) fn new(name: &'static str, print: &LogSink) -> Self {
        Self {
            name,
            print: Arc::clone(print),
            lines: Arc::default(),
        }
    }

    /// Adds what happens.
    pub(crate) fn info(&self, text: &str) {
        self.add("INFO", text);
    }

    /// Adds a message for the user.
    pub(crate) fn warn(&self, text: &str) {
        self.add("WARNING", text);
    }

    /// Adds a failure.
    pub(crate) fn error(&self, text: &str) {
        self.add("ERROR", text);
    }

    fn add(&self, level: &str, text: &str) {
        let now = Timestamp::now();
        let line = format!(
            "{} {},{:03} [{level}] {text}",
            self.name,
            now.strftime("%Y-%m-%d %H:%M:%S"),
            now.subsec_millisecond()
        );
        (self.print)(&line);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_str(&line);
        lines.push('\n');
    }

    /// All lines.
    pub(crate) fn text(&self) -> String {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for SessionLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionLog({})", self.name)
    }
}
