//! Writes `mlperf_log_accuracy.json`: an array with one line per logged response.

use std::io::{self, Write};

use crate::format::push_hex;

/// One logged response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The sample's sequence number in the run.
    pub seq_id: u64,
    /// The sample's index in the library.
    pub qsl_idx: usize,
    /// The response's bytes.
    pub data: &'a [u8],
    /// The token data that benchmarks with token latencies log in addition.
    pub tokens: Option<Tokens<'a>>,
}

/// Token data of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tokens<'a> {
    /// The first token's bytes, or `None` in scenarios without first tokens (Offline).
    pub first: Option<&'a [u8]>,
    /// The number of tokens in the response.
    pub count: i64,
}

/// Writes entries in the order of the calls.
#[derive(Debug)]
pub struct AccuracyWriter<W> {
    out: W,
    any: bool,
    line: Vec<u8>,
}

impl<W: Write> AccuracyWriter<W> {
    /// Writes the beginning of the array.
    ///
    /// # Errors
    /// Returns the error of writing.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(b"[")?;
        Ok(Self {
            out,
            any: false,
            line: Vec::new(),
        })
    }

    /// Writes one response.
    ///
    /// # Errors
    /// Returns the error of writing.
    pub fn entry(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        self.line.clear();
        self.line
            .extend_from_slice(if self.any { b",\n{ " } else { b"\n{ " });
        self.any = true;
        write!(
            self.line,
            "\"seq_id\" : {}, \"qsl_idx\" : {}, \"data\" : \"",
            entry.seq_id, entry.qsl_idx
        )?;
        push_hex(&mut self.line, entry.data);
        self.line.push(b'"');
        if let Some(tokens) = entry.tokens {
            if let Some(first) = tokens.first {
                self.line.extend_from_slice(b", \"token_data\" : \"");
                push_hex(&mut self.line, first);
                self.line.push(b'"');
            }
            write!(self.line, ", \"token_count\" : {}", tokens.count)?;
        }
        self.line.extend_from_slice(b" }");
        self.out.write_all(&self.line)
    }

    /// Writes the end of the array.
    ///
    /// # Errors
    /// Returns the error of writing.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.write_all(b"\n]\n")?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(entries: &[Entry<'_>]) -> String {
        let mut out = Vec::new();
        let mut writer = AccuracyWriter::new(&mut out).unwrap();
        for entry in entries {
            writer.entry(entry).unwrap();
        }
        writer.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn entries_are_formed_as_the_official_ones() {
        let plain = Entry {
            seq_id: 0,
            qsl_idx: 5,
            data: &[0xAB, 0x01],
            tokens: None,
        };
        let tokens = Some(Tokens {
            first: Some(&[0xFF]),
            count: 12,
        });
        let with_tokens = Entry {
            seq_id: 1,
            tokens,
            ..plain
        };
        assert_eq!(
            written(&[plain, with_tokens]),
            "[\n{ \"seq_id\" : 0, \"qsl_idx\" : 5, \"data\" : \"AB01\" },\n{ \"seq_id\" : 1, \"qsl_idx\" : 5, \
             \"data\" : \"AB01\", \"token_data\" : \"FF\", \"token_count\" : 12 }\n]\n"
        );
        assert_eq!(written(&[]), "[\n]\n");
    }
}
