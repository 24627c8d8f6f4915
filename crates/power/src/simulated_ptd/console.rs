//! What PTDaemon prints on standard output. The official server copies it to `ptd_logs.txt`, which its checker reads.

use std::io::{self, Write as _};

use jiff::Timestamp;

/// Standard output, line by line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Console;

impl Console {
    pub(super) fn print(self, line: &str) {
        let mut output = io::stdout().lock();
        // When nobody reads any more, the server has ended, and ends this process too.
        let _ = writeln!(output, "{line}").and_then(|()| output.flush());
    }

    /// Prints a line with the time, as PTDaemon does for events.
    pub(super) fn stamped(self, text: &str) {
        self.print(&format!("{}: {text}", stamp(Timestamp::now())));
    }
}

/// `MM-DD-YYYY HH:MM:SS.mmm` in UTC: the form of all times of PTDaemon.
pub(super) fn stamp(time: Timestamp) -> String {
    format!(
        "{}.{:03}",
        time.strftime("%m-%d-%Y %H:%M:%S"),
        time.subsec_millisecond()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_have_every_digit() {
        let stamp_of = |milliseconds| stamp(Timestamp::from_millisecond(milliseconds).unwrap());
        assert_eq!(stamp_of(1_659_514_316_642), "08-03-2022 08:11:56.642");
        assert_eq!(stamp_of(1_659_514_316_000), "08-03-2022 08:11:56.000");
        assert_eq!(stamp_of(1_659_514_316_007), "08-03-2022 08:11:56.007");
    }
}
