//! Tests of wrong logs: each error is one sentence with its position, followed by its cause.

use std::{
    error::Error,
    io::{self, BufReader, Read},
    path::Path,
};

use insta::{assert_debug_snapshot, assert_snapshot};
use regatta_mllog::read::{
    AccuracyReader, DetailLog, DetailReader, LogFileError, Summary, TraceReader, summary_file,
};

/// The error and its causes, as the edge prints them.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

fn accuracy_fault(log: impl Read) -> String {
    let mut reader = AccuracyReader::new(BufReader::with_capacity(7, log));
    let fault = reader.find_map(Result::err);
    assert!(reader.next().is_none(), "the reader ends after an error");
    fault.map_or_else(|| "no fault".to_owned(), |fault| chain(&fault))
}

/// The largest part of a file that a reader keeps is bounded, whatever the file has.
#[test]
fn files_that_no_loadgen_writes_are_refused_by_size() {
    let summary = Summary::read(&b"a\n".repeat(1 << 20)[..]).unwrap_err();
    assert_eq!(chain(&summary), "the summary is larger than 1 MiB");
    let line = Summary::read(&[b'a'; 3 << 20][..]).unwrap_err();
    assert_eq!(
        chain(&line),
        "the summary cannot be parsed: line 1 is longer than 1024 KiB"
    );
    let record = |value: &str| {
        format!(":::MLLOG {{\"key\": \"k\", \"value\": {value}, \"metadata\": {{\"is_error\": false}}}}\n")
    };
    let list = record(&format!("[{}0]", "0,".repeat(2_000_000)));
    let parts = DetailReader::new(list.as_bytes()).next().unwrap().unwrap_err();
    assert!(
        chain(&parts).contains("the value has more than 2000000 parts"),
        "{}",
        chain(&parts)
    );
    let line = DetailReader::new(&[b'a'; 17 << 20][..])
        .next()
        .unwrap()
        .unwrap_err();
    assert!(chain(&line).ends_with("line 1 is longer than 16384 KiB"));
    let many = record("0").repeat(500_001);
    let log = DetailLog::read(many.as_bytes()).unwrap_err();
    assert_eq!(chain(&log), "the detail log has more than 500,000 records");
    let text = record(&format!("\"{}\"", "a".repeat(15 << 20))).repeat(5);
    let log = DetailLog::read(text.as_bytes()).unwrap_err();
    assert_eq!(chain(&log), "the detail log has more than 64 MiB");
}

#[test]
fn a_response_longer_than_the_limit_ends_the_reader() {
    let mut reader = AccuracyReader::new(TWO.as_bytes()).with_max_response(3);
    assert_eq!(
        chain(&reader.next().unwrap().unwrap_err()),
        "entry 1 of the accuracy log has a response of 4 bytes (byte 2): the maximum is 3 bytes"
    );
    assert!(reader.next().is_none(), "the reader ends after an error");
    let reader = AccuracyReader::new(TWO.as_bytes()).with_max_response(4);
    assert_eq!(reader.map(Result::unwrap).count(), 2);
}

const TWO: &str = "[\n{ \"seq_id\" : 0, \"qsl_idx\" : 12, \"data\" : \"07000000\" },\n{ \"seq_id\" : 1, \"qsl_idx\" : 3, \"data\" : \"02000000\" }\n]\n";

#[test]
fn accuracy_faults_name_entry_byte_and_line() {
    let replaced = |from: &str, to: &str| accuracy_fault(TWO.replace(from, to).as_bytes());
    let faults = [
        ("empty", accuracy_fault(&b" \n"[..])),
        ("an object", accuracy_fault(&b"{}"[..])),
        ("bad digit", replaced("02000000", "0200G000")),
        ("odd digits", replaced("02000000", "0200000")),
        ("no data", replaced(", \"data\" : \"02000000\"", "")),
        ("negative index", replaced(" 3,", " -3,")),
        (
            "key twice",
            replaced("\"seq_id\" : 1", "\"seq_id\" : 1, \"seq_id\" : 2"),
        ),
        ("no comma", replaced("},", "}")),
        ("comma before the end", replaced("}\n]", "},\n]")),
        ("more after the end", replaced("]", "]\n[")),
        ("no end", replaced("]", "")),
        ("cut within an entry", accuracy_fault(&TWO.as_bytes()[..80])),
        (
            "a text",
            replaced(
                "{ \"seq_id\" : 1, \"qsl_idx\" : 3, \"data\" : \"02000000\" }",
                "\"02\"",
            ),
        ),
    ];
    assert_debug_snapshot!(faults);
}

#[test]
fn a_log_truncated_for_submission_is_distinguished_from_a_broken_one() {
    for cut in 2..TWO.len() - 2 {
        let truncated = format!("{}\n\n...\n\n{}", &TWO[..cut], &TWO[cut..]);
        let fault = accuracy_fault(truncated.as_bytes());
        assert!(
            fault.contains("truncated for submission"),
            "cut at {cut}: {fault}"
        );
    }
}

#[test]
fn a_source_that_fails_is_no_broken_log() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let within = accuracy_fault(TWO.as_bytes()[..70].chain(Failing));
    assert_eq!(
        within,
        "the accuracy log cannot be read after byte 70: the disk is gone"
    );
    let between = accuracy_fault(TWO.as_bytes()[..60].chain(Failing));
    assert_eq!(
        between,
        "the accuracy log cannot be read after byte 60: the disk is gone"
    );
}

#[test]
fn detail_faults_name_their_lines_and_do_not_hide_what_follows() {
    let good = r#":::MLLOG {"key": "k", "value": 1, "time_ms": 0.1, "metadata": {"is_error": false}}"#;
    let no_value = r#":::MLLOG {"key": "k", "metadata": {"is_error": false}}"#;
    let no_metadata = r#":::MLLOG {"key": "k", "value": 1}"#;
    let mut log = [
        good,
        no_value,
        good,
        no_metadata,
        r#":::MLLOG {"key": "k", "val"#,
        ":::MLLOG ",
    ]
    .join("\n")
    .into_bytes();
    log.extend(b"\n\xff\n");
    log.extend(good.as_bytes());
    let read: Vec<String> = DetailReader::new(&log[..])
        .map(|record| {
            record.map_or_else(
                |error| chain(&error),
                |record| format!("line {}: {}", record.line, record.key),
            )
        })
        .collect();
    assert_debug_snapshot!(read);
}

#[test]
fn summary_faults_name_their_lines() {
    let text = include_str!("fixtures/read/summary_invalid.txt");
    let fault = |from, to| chain(&Summary::read(text.replace(from, to).as_bytes()).unwrap_err());
    let faults = [
        fault("Scenario : Server", "Scenario : Regatta"),
        fault("Mode     : PerformanceOnly", "Mode     : Fast"),
        fault("Result is : INVALID", "Result is : GOOD"),
        fault("Min queries satisfied : Yes", "Min queries satisfied : maybe"),
        chain(&Summary::read(&b"dear diary\n"[..]).unwrap_err()),
        chain(&Summary::read(&b"SUT name\n\xff\xfe"[..]).unwrap_err()),
    ];
    assert_debug_snapshot!(faults);
}

#[test]
fn trace_faults_name_their_lines() {
    let text = include_str!("fixtures/read/trace.json");
    let fault = |log: &str| chain(&TraceReader::new(log.as_bytes()).find_map(Result::err).unwrap());
    assert_snapshot!(fault("<html>"), @"line 1 of the trace opens no list of events");
    assert_snapshot!(fault(&text.replace("\"ts\":15.750", "\"ts\":soon")), @"line 4 of the trace is not an event: expected value (column 64)");
    assert_snapshot!(fault(text.split(']').next().unwrap()), @"the trace ends too early, after line 5");
}

#[test]
fn a_missing_file_is_named() {
    let error = summary_file(Path::new("no/such/mlperf_log_summary.txt")).unwrap_err();
    assert!(matches!(error, LogFileError::Open { .. }));
    assert_eq!(
        chain(&error),
        "cannot open no/such/mlperf_log_summary.txt: No such file or directory (os error 2)"
    );
}
