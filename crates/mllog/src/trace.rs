//! Writes `mlperf_log_trace.json`: Chrome trace events of every sample. LoadGen's own scopes are not traced.

use std::io::{self, Write};

/// The times of one sample, in nanoseconds from the trace's origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleTrace {
    /// The sample's sequence number in the run.
    pub sample_seq: u64,
    /// The sequence number of its query.
    pub query_seq: u64,
    /// Its index in the library.
    pub sample_idx: usize,
    /// The scheduled time.
    pub scheduled_ns: i64,
    /// The time at which its query was issued.
    pub issued_ns: i64,
    /// The time of the answer.
    pub completed_ns: i64,
}

/// Writes trace events.
#[derive(Debug)]
pub struct TraceWriter<W> {
    out: W,
    pid: u32,
}

impl<W: Write> TraceWriter<W> {
    /// Writes the beginning of the file.
    ///
    /// # Errors
    /// Returns the error of writing.
    pub fn new(mut out: W, pid: u32) -> io::Result<Self> {
        out.write_all(b"{\"traceEvents\":[\n")?;
        Ok(Self { out, pid })
    }

    /// Writes a sample's begin and end. `server` adds the stacked latency counters of the Server scenario.
    ///
    /// # Errors
    /// Returns the error of writing.
    pub fn sample(&mut self, sample: &SampleTrace, server: bool) -> io::Result<()> {
        let pid = self.pid;
        let begin = micros(sample.scheduled_ns);
        let issue_start = sample.issued_ns - sample.scheduled_ns;
        let complete = sample.completed_ns - sample.scheduled_ns;
        if server {
            writeln!(
                self.out,
                "{{\"name\":\"Latency\",\"ph\": \"C\",\"pid\":{pid},\"ts\":{begin},\"args\":{{ \
                 \"issue_delay\":{issue_start},\"issue_to_done\":{}}}}},",
                complete - issue_start
            )?;
        }
        let id = sample.sample_seq;
        writeln!(
            self.out,
            "{{\"name\":\"Sample\",\"cat\":\"default\",\"ph\":\"b\",\"pid\":{pid},\"id\":{id},\"ts\":{begin},\
             \"args\":{{\"sample_seq\":{id},\"query_seq\":{},\"sample_idx\":{},\"issue_start_ns\":{issue_start},\
             \"complete_ns\":{complete}}}}},",
            sample.query_seq, sample.sample_idx
        )?;
        writeln!(
            self.out,
            "{{\"name\":\"Sample\",\"cat\":\"default\",\"ph\":\"e\", \"pid\":{pid},\"id\":{id},\"ts\":{}}},",
            micros(sample.completed_ns)
        )
    }

    /// Ends the file. `origin_ns` is the trace's origin on the clock in use; `version` is the LoadGen that wrote it.
    ///
    /// # Errors
    /// Returns the error of writing.
    pub fn finish(mut self, origin_ns: i64, version: &str) -> io::Result<()> {
        writeln!(
            self.out,
            "{{\"name\":\"LastTrace\"}}\n],\n\"displayTimeUnit\":\"ns\",\n\"otherData\":{{\n\"ts\":{},\n\
             \"version\":\"{version}\"\n}}\n}}",
            micros(origin_ns)
        )?;
        self.out.flush()
    }
}

fn micros(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:03}", ns / 1000, ns % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_json_with_three_events_per_server_sample() {
        let mut out = Vec::new();
        let mut writer = TraceWriter::new(&mut out, 3).unwrap();
        let sample = SampleTrace {
            sample_seq: 4,
            query_seq: 4,
            sample_idx: 9,
            scheduled_ns: 1_500,
            issued_ns: 1_700,
            completed_ns: 2_500,
        };
        writer.sample(&sample, true).unwrap();
        writer.finish(-1_001, "regatta-loadgen").unwrap();
        let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let events = read["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 4);
        assert_eq!(events[0]["args"]["issue_to_done"], 800);
        assert_eq!(events[1]["args"]["complete_ns"], 1000);
        assert_eq!(events[2]["ts"], 2.5);
        assert!(String::from_utf8(out).unwrap().contains("\"ts\":-1.001"));
    }
}
