//! The quick scanner against the reader: the same grammar, the same entries, the same faults.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may say what it expects")]

use std::io::Read;

use proptest::prelude::*;
use regatta_mllog::read::{AccuracyEntry, AccuracyLogError, AccuracyReader, AccuracyScanner};

/// Gives its bytes in the portions that the test wants, so that entries fall across the scanner's reads.
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

type Scanned = Result<Vec<(u64, u64, Vec<u8>)>, AccuracyLogError>;

fn scanned(log: &[u8], size: usize) -> Scanned {
    let mut scanner = AccuracyScanner::new(Portions { bytes: log, size });
    let mut entries = Vec::new();
    loop {
        let mut digits = Vec::new();
        let entry = scanner.next_entry(|piece| {
            assert!(piece.len().is_multiple_of(2));
            digits.extend_from_slice(piece);
        })?;
        let Some(entry) = entry else { return Ok(entries) };
        let begin = usize::try_from(entry.offset).unwrap();
        let end = begin + usize::try_from(entry.length).unwrap();
        assert_eq!((log[begin], log[end - 1]), (b'{', b'}'));
        let data: Vec<_> = digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect();
        assert_eq!(data.len() as u64, entry.bytes);
        entries.push((entry.seq_id, entry.qsl_idx, data));
    }
}

fn read(log: &[u8]) -> Scanned {
    AccuracyReader::new(log)
        .map(|entry| {
            entry.map(
                |AccuracyEntry {
                     seq_id,
                     qsl_idx,
                     data,
                     ..
                 }| (seq_id, qsl_idx, data),
            )
        })
        .collect()
}

fn same(log: &[u8], size: usize) {
    match (scanned(log, size), read(log)) {
        (Ok(scanned), Ok(read)) => assert_eq!(scanned, read),
        (Err(scanned), Err(read)) => {
            assert_eq!(
                std::mem::discriminant(&scanned),
                std::mem::discriminant(&read),
                "{scanned} against {read} in {:?}",
                String::from_utf8_lossy(log)
            );
        }
        (scanned, read) => {
            panic!(
                "{scanned:?} against {read:?} in {:?}",
                String::from_utf8_lossy(log)
            );
        }
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
fn faults_are_those_of_the_reader() {
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
        assert_eq!(entries[0].2.len(), 800_000);
    }
    same(log.as_bytes(), 65_537);
}

fn well_formed() -> impl Strategy<Value = String> {
    let entry = (
        any::<u64>(),
        any::<u64>(),
        prop::collection::vec(any::<u8>(), 0..40),
        any::<bool>(),
    );
    prop::collection::vec(entry, 0..6).prop_map(|entries| {
        let lines: Vec<_> = entries
            .iter()
            .map(|(seq_id, qsl_idx, data, compact)| {
                let digits: String = data.iter().map(|byte| format!("{byte:02X}")).collect();
                if *compact {
                    format!("{{\"data\":\"{digits}\",\"seq_id\":{seq_id},\"qsl_idx\":{qsl_idx}}}")
                } else {
                    format!("{{ \"seq_id\" : {seq_id}, \"qsl_idx\" : {qsl_idx}, \"data\" : \"{digits}\" }}")
                }
            })
            .collect();
        format!("[\n{}\n]\n", lines.join(",\n"))
    })
}

proptest! {
    #[test]
    fn what_the_reader_reads_the_scanner_scans(log in well_formed(), size in 1_usize..90) {
        same(log.as_bytes(), size);
    }

    /// One damaged place. Inside keys and strings of unknown keys the two may differ; nowhere does one panic.
    #[test]
    fn a_damaged_log_gives_the_same_verdict(
        log in well_formed(),
        at in any::<prop::sample::Index>(),
        byte in prop::sample::select(b"0x\"{}[],: -.eE\n\0\xff".to_vec()),
        size in 1_usize..90,
    ) {
        let mut log = log.into_bytes();
        let at = at.index(log.len());
        log[at] = byte;
        prop_assert_eq!(scanned(&log, size).is_ok(), read(&log).is_ok());
    }

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), size in 1_usize..90) {
        let _ = scanned(&bytes, size);
        let mut begun = b"[{\"seq_id\":0,".to_vec();
        begun.extend_from_slice(&bytes);
        let _ = scanned(&begun, size);
    }
}
