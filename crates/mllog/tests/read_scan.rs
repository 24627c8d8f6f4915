//! Tests of the accuracy log's grammar against a JSON library's, with any boundary between reads and entries.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may say what it expects")]

use std::io::Read;

use proptest::prelude::*;
use regatta_mllog::read::{AccuracyEntry, AccuracyLogError, AccuracyReader, AccuracyScanner};

/// A reader that returns its bytes in portions of the test, so that entries cross the scanner's reads.
struct Portions<'a> {
    bytes: &'a [u8],
    size: usize,
}

impl Read for Portions<'_> {
    fn read(&mut self, target: &mut [u8]) -> std::io::Result<usize> {
        let count = self.size.min(target.len()).min(self.bytes.len());
        target[..count].copy_from_slice(&self.bytes[..count]);
        self.bytes = &self.bytes[count..];
        Ok(count)
    }
}

/// An entry as both return it: numbers, response, first token, number of tokens.
type ReadEntry = (u64, u64, Vec<u8>, Option<Vec<u8>>, Option<i64>);

fn read(log: &[u8], size: usize) -> Result<Vec<ReadEntry>, AccuracyLogError> {
    let entries = AccuracyReader::new(Portions { bytes: log, size });
    let taken = |e: AccuracyEntry| (e.seq_id, e.qsl_idx, e.data, e.token_data, e.token_count);
    entries.map(|entry| entry.map(taken)).collect()
}

/// Returns the entries and their positions by the scanner alone, with digits in pairs.
fn scanned(log: &[u8], size: usize) -> Result<Vec<(u64, u64, u64)>, AccuracyLogError> {
    let mut scanner = AccuracyScanner::new(Portions { bytes: log, size });
    let mut entries = Vec::new();
    loop {
        let mut digits = 0;
        let entry = scanner.next_entry(|piece| {
            assert!(piece.len().is_multiple_of(2));
            digits += piece.len() as u64;
        })?;
        let Some(entry) = entry else { return Ok(entries) };
        let begin = usize::try_from(entry.offset).unwrap();
        let end = begin + usize::try_from(entry.length).unwrap();
        assert_eq!((log[begin], log[end - 1]), (b'{', b'}'));
        assert_eq!(digits, 2 * entry.bytes);
        entries.push((entry.seq_id, entry.qsl_idx, entry.bytes));
    }
}

#[derive(serde::Deserialize)]
struct JsonEntry {
    seq_id: u64,
    qsl_idx: u64,
    data: String,
    #[serde(default, deserialize_with = "text")]
    token_data: Option<String>,
    #[serde(default, deserialize_with = "number")]
    token_count: Option<i64>,
}

/// A `null` is no token: serde would take it for none.
fn text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    serde::Deserialize::deserialize(deserializer).map(Some)
}

fn number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    serde::Deserialize::deserialize(deserializer).map(Some)
}

/// The same by a JSON library, which holds the whole file.
fn by_json_library(log: &[u8]) -> Option<Vec<ReadEntry>> {
    let entries: Vec<JsonEntry> = serde_json::from_slice(log).ok()?;
    let bytes = |digits: &str| -> Option<Vec<u8>> {
        let digits = digits.as_bytes();
        let plain = digits.iter().all(u8::is_ascii_hexdigit) && digits.len().is_multiple_of(2);
        let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        plain.then(|| pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect())
    };
    let taken = |e: JsonEntry| {
        let token = e.token_data.as_deref().map(bytes);
        let token = if let Some(bytes) = token {
            Some(bytes?)
        } else {
            None
        };
        Some((e.seq_id, e.qsl_idx, bytes(&e.data)?, token, e.token_count))
    };
    entries.into_iter().map(taken).collect()
}

fn same(log: &[u8], size: usize) {
    let shown = String::from_utf8_lossy(log);
    match (read(log, size), by_json_library(log)) {
        (Ok(read), Some(parsed)) => {
            assert_eq!(read, parsed, "{shown:?}");
            let in_short: Vec<_> = read.iter().map(|e| (e.0, e.1, e.2.len() as u64)).collect();
            assert_eq!(scanned(log, size).unwrap(), in_short);
        }
        (Err(_), None) => assert!(scanned(log, size).is_err(), "{shown:?}"),
        (read, parsed) => panic!("{read:?} against {parsed:?} in {shown:?}"),
    }
}

#[test]
fn forms_that_other_tools_write_scan_too() {
    for log in [
        "[]",
        " [ ] ",
        "[\n]\n",
        "[{\"qsl_idx\":7,\"data\":\"\",\"seq_id\":0}]",
        "[{\"data\":\"aBcD\",\"seq_id\":18446744073709551615,\"qsl_idx\":1,\"token_count\":-3,\"token_data\":\"00\"}]",
        "[{\"x\":[1,{\"y\":\"\\\"]\"},null],\"seq_id\":1,\"qsl_idx\":1,\"data\":\"\",\"z\":-1.5e3}]",
        "[{ \"seq_id\" : 0, \"qsl_idx\" : 3, \"data\" : \"07000000\" },\r\n{ \"seq_id\" : 1, \"qsl_idx\" : 4, \"data\" : \"08\" }]",
    ] {
        same(log.as_bytes(), 3);
        assert!(scanned(log.as_bytes(), 3).is_ok(), "{log}");
    }
}

#[test]
fn faults_are_faults_to_a_json_library_too() {
    for log in [
        "",
        "{}",
        "[",
        "[,",
        "[{}]",
        "[{\"seq_id\":0,\"qsl_idx\":1}]",
        "[{\"seq_id\":0,\"qsl_idx\":1,\"data\":\"0\"}]",
        "[{\"seq_id\":0,\"qsl_idx\":1,\"data\":\"0g\"}]",
        "[{\"seq_id\":0,\"seq_id\":0,\"qsl_idx\":1,\"data\":\"\"}]",
        "[{\"seq_id\":-1,\"qsl_idx\":1,\"data\":\"\"}]",
        "[{\"seq_id\":01,\"qsl_idx\":1,\"data\":\"\"}]",
        "[{\"seq_id\":1.0,\"qsl_idx\":1,\"data\":\"\"}]",
        "[{\"seq_id\":18446744073709551616,\"qsl_idx\":1,\"data\":\"\"}]",
        "[{\"seq_id\":0,\"qsl_idx\":1,\"data\":\"\"} {}]",
        "[{\"seq_id\":0,\"qsl_idx\":1,\"data\":\"\"},]",
        "[{\"seq_id\":0,\"qsl_idx\":1,\"data\":\"\"}",
        "[{\"seq_id\":0,\"qsl_idx\":1,\"data\":\"00",
        "[{\"seq_id\":0,\"qsl_idx\":1,\"data\":\"\"}] more",
        "[{ \"seq_id\" : 0, \"qsl_idx\" : 3, \"data\" : \"07\n\n...\n\n00\" }]",
    ] {
        same(log.as_bytes(), 5);
        assert!(scanned(log.as_bytes(), 5).is_err(), "{log}");
    }
}

#[test]
fn an_error_names_line_and_byte_also_far_into_the_file() {
    let mut log = "[\n".to_owned();
    for number in 0..20_000 {
        log.push_str(&format!(
            "{{ \"seq_id\" : {number}, \"qsl_idx\" : 1, \"data\" : \"0011\" }},\n"
        ));
    }
    let sound = log.len();
    log.push_str("{ \"seq_id\" : 5, \"qsl_idx\" : x");
    let Err(AccuracyLogError::Entry {
        entry, offset, line, ..
    }) = scanned(log.as_bytes(), 8192)
    else {
        panic!("no error")
    };
    assert_eq!((entry, line), (20_001, 20_002));
    assert_eq!(offset as usize, sound + "{ \"seq_id\" : 5, \"qsl_idx\" : ".len());
}

#[test]
fn an_entry_larger_than_any_buffer_passes_by() {
    let digits = "0123456789abcdef".repeat(100_000);
    let log = format!("[\n{{ \"seq_id\" : 0, \"qsl_idx\" : 3, \"data\" : \"{digits}\" }}\n]\n");
    for size in [1023, 1 << 20] {
        let entries = scanned(log.as_bytes(), size).unwrap();
        assert_eq!(entries[0].2, 800_000);
    }
    same(log.as_bytes(), 65_537);
}

fn well_formed() -> impl Strategy<Value = String> {
    let entry = (
        any::<u64>(),
        any::<u64>(),
        prop::collection::vec(any::<u8>(), 0..40),
        any::<bool>(),
        prop::option::of((prop::collection::vec(any::<u8>(), 0..9), any::<i64>())),
    );
    prop::collection::vec(entry, 0..6).prop_map(|entries| {
        let lines: Vec<_> = entries
            .iter()
            .map(|(seq_id, qsl_idx, data, compact, token)| {
                let hex =
                    |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02X}")).collect() };
                let digits = hex(data);
                let token = token.as_ref().map_or_else(String::new, |(data, count)| {
                    let digits = hex(data);
                    format!(", \"token_data\" : \"{digits}\", \"token_count\" : {count}")
                });
                if *compact {
                    format!("{{\"data\":\"{digits}\",\"seq_id\":{seq_id}{token},\"qsl_idx\":{qsl_idx}}}")
                } else {
                    format!(
                        "{{ \"seq_id\" : {seq_id}, \"qsl_idx\" : {qsl_idx}, \"data\" : \"{digits}\"{token} }}"
                    )
                }
            })
            .collect();
        format!("[\n{}\n]\n", lines.join(",\n"))
    })
}

proptest! {
    #[test]
    fn log_reader_agrees_with_a_json_library(log in well_formed(), size in 1_usize..90) {
        same(log.as_bytes(), size);
    }

    /// One damaged place. (Within keys that LoadGen does not write, bytes beyond ASCII are not judged.)
    #[test]
    fn a_damaged_log_gives_the_same_verdict(
        log in well_formed(),
        at in any::<prop::sample::Index>(),
        byte in prop::sample::select(b"0x\"{}[],: -.eE\n\0".to_vec()),
        size in 1_usize..90,
    ) {
        let mut log = log.into_bytes();
        let at = at.index(log.len());
        log[at] = byte;
        same(&log, size);
    }

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), size in 1_usize..90) {
        let _ = (scanned(&bytes, size), read(&bytes, size));
        let mut begun = b"[{\"seq_id\":0,".to_vec();
        begun.extend_from_slice(&bytes);
        let _ = (scanned(&begun, size), read(&begun, size));
    }
}
