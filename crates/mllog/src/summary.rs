//! Writes `mlperf_log_summary.txt`: plain lines for people, some of which official scripts read.

use std::{
    fmt::Display,
    io::{self, Write},
};

/// Writes summary lines.
#[derive(Debug)]
pub struct SummaryWriter<W> {
    out: W,
}

impl<W: Write> SummaryWriter<W> {
    /// Creates a writer.
    pub const fn new(out: W) -> Self {
        Self { out }
    }

    /// Writes a line unchanged. It may contain line breaks.
    ///
    /// # Errors
    /// Returns the error of writing.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    /// Writes a label, which includes its spaces and colon, and a value.
    ///
    /// # Errors
    /// Returns the error of writing.
    pub fn value(&mut self, label: &str, value: impl Display) -> io::Result<()> {
        writeln!(self.out, "{label}{value}")
    }

    /// Writes a headline between two rules.
    ///
    /// # Errors
    /// Returns the error of writing.
    pub fn headline(&mut self, title: &str) -> io::Result<()> {
        const RULE: &str = "================================================";
        writeln!(self.out, "{RULE}\n{title}\n{RULE}")
    }

    /// Ends the file with the numbers of warnings and errors in the detail log.
    ///
    /// # Errors
    /// Returns the error of writing.
    pub fn finish(mut self, warnings: u64, errors: u64) -> io::Result<()> {
        match warnings {
            0 => writeln!(self.out, "\nNo warnings encountered during test."),
            1 => writeln!(self.out, "\n1 warning encountered. See detailed log."),
            n => writeln!(self.out, "\n{n} warnings encountered. See detailed log."),
        }?;
        match errors {
            0 => writeln!(self.out, "\nNo errors encountered during test."),
            1 => writeln!(self.out, "\n1 ERROR encountered. See detailed log."),
            n => writeln!(self.out, "\n{n} ERRORS encountered. See detailed log."),
        }?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_ends_with_the_counts_of_warnings_and_errors() {
        let end = |warnings, errors| {
            let mut out = Vec::new();
            SummaryWriter::new(&mut out).finish(warnings, errors).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            end(0, 0),
            "\nNo warnings encountered during test.\n\nNo errors encountered during test.\n"
        );
        assert_eq!(
            end(1, 2),
            "\n1 warning encountered. See detailed log.\n\n2 ERRORS encountered. See detailed log.\n"
        );
    }
}
