//! Tests that no bytes make a reader panic or run for ever: neither noise, nor a changed real log.

use proptest::prelude::*;
use regatta_mllog::read::{AccuracyReader, DetailReader, Summary, TraceReader};

const REAL: [&[u8]; 5] = [
    include_bytes!("fixtures/read/summary_invalid.txt"),
    include_bytes!("fixtures/read/summary_accuracy.txt"),
    include_bytes!("fixtures/read/detail.txt"),
    include_bytes!("fixtures/read/accuracy.json"),
    include_bytes!("fixtures/read/trace.json"),
];

/// Gives the bytes to every reader, and checks that none returns more entries than the bytes can hold.
fn read_with_all(bytes: &[u8]) {
    drop(Summary::read(bytes));
    assert!(DetailReader::new(bytes).count() <= bytes.len());
    assert!(AccuracyReader::new(bytes).count() <= bytes.len() + 1);
    assert!(TraceReader::new(bytes).count() <= bytes.len() + 1);
}

/// A change to a log: its position (as a share of the length), the number of removed bytes, and their replacement.
fn change() -> impl Strategy<Value = (prop::sample::Index, usize, Vec<u8>)> {
    let hostile = prop::sample::select(vec![
        &b"\""[..],
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\n",
        b"\0",
        b"\xff",
        b"1e999",
        b"-1",
        b"\n\n...\n\n",
        b"99999999999999999999999",
        b":::MLLOG ",
        b"\"value\": ",
        b", \"time_ms\": ",
        b"[[[[[[[[[[[[",
        b"\xf0\x9f\x9a\xa3",
    ])
    .prop_map(<[u8]>::to_vec);
    (
        any::<prop::sample::Index>(),
        0usize..40,
        prop_oneof![hostile, prop::collection::vec(any::<u8>(), 0..12)],
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Numbers are read as by Python, and so by the official scripts: as the nearest double, to the last bit.
    #[test]
    fn a_float_reads_as_the_double_that_was_written(value in any::<f64>().prop_filter("finite", |value| value.is_finite())) {
        for text in [format!("{value:?}"), format!("{value:e}"), format!("{value:.17e}")] {
            let line = format!(":::MLLOG {{\"key\": \"rate\", \"value\": {text}, \"metadata\": {{\"is_error\": false}}}}\n");
            let record = DetailReader::new(line.as_bytes()).next().unwrap().unwrap();
            let read = record.value.as_f64().map(f64::to_bits);
            prop_assert_eq!(read, Some(text.parse::<f64>().unwrap().to_bits()), "{}", text);
        }
    }

    #[test]
    fn noise(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        read_with_all(&bytes);
    }

    #[test]
    fn noise_of_the_alphabet_of_logs(text in "[\\[\\]{}\",:.0-9a-fA-F \\n=*-]{0,400}") {
        read_with_all(text.as_bytes());
    }

    #[test]
    fn changed_logs(which in 0..REAL.len(), changes in prop::collection::vec(change(), 1..6)) {
        let mut log = REAL[which].to_vec();
        for (place, length, replacement) in changes {
            let start = place.index(log.len() + 1);
            let end = (start + length).min(log.len());
            log.splice(start..end, replacement);
        }
        read_with_all(&log);
    }

    #[test]
    fn an_accuracy_log_gives_back_what_was_written(
        entries in prop::collection::vec((any::<u64>(), any::<u64>(), prop::collection::vec(any::<u8>(), 0..40)), 0..20),
    ) {
        let written: Vec<String> = entries.iter().map(|(seq_id, qsl_idx, data)| {
            let hex: String = data.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("\n{{ \"seq_id\" : {seq_id}, \"qsl_idx\" : {qsl_idx}, \"data\" : \"{hex}\" }}")
        }).collect();
        let log = format!("[{}\n]\n", written.join(","));
        let read: Vec<_> = AccuracyReader::new(log.as_bytes())
            .map(|entry| entry.map(|entry| (entry.seq_id, entry.qsl_idx, entry.data)))
            .collect::<Result<_, _>>()
            .unwrap();
        prop_assert_eq!(read, entries);
    }
}

#[test]
fn brackets_without_end_do_not_exhaust_the_stack() {
    let deep = format!("[{{\"x\":{}", "[".repeat(1_000_000));
    read_with_all(deep.as_bytes());
    read_with_all(format!(":::MLLOG {{\"value\": {}", "[".repeat(1_000_000)).as_bytes());
}
