//! Writers that escape text, for programs that print text from trees, logs and devices. [`crate::escape`] lists the escaped characters.

use std::io::{self, Write};

use crate::{escape, escape_lines};

/// Writes text for users after [`escape_lines`]. Each write must end at a character boundary, as formatted writes do.
#[derive(Debug)]
pub struct EscapedText<W>(
    /// The target.
    pub W,
);

impl<W: Write> Write for EscapedText<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(escape_lines(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes each write as one line of a log. Line feeds within it are escaped, too.
#[derive(Debug)]
pub struct EscapedLog<W>(
    /// The target.
    pub W,
);

impl<W: Write> Write for EscapedLog<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        self.0.write_all(format!("{}\n", escape(line)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_keeps_its_lines_and_an_event_of_a_log_is_one() {
        let mut report = EscapedText(Vec::new());
        let name = "\x1b[2Ja.txt";
        write!(report, "1 finding\n  {name}\n").unwrap();
        assert_eq!(report.0, b"1 finding\n  \\u{1b}[2Ja.txt\n");
        let mut log = EscapedLog(Vec::new());
        log.write_all(b"WARN a\nPASS\n").unwrap();
        log.write_all(b"INFO b\n").unwrap();
        assert_eq!(log.0, b"WARN a\\nPASS\nINFO b\n");
    }
}
