//! Tests of the readers' results for small logs in the official form, with its departures from JSON.

use insta::assert_debug_snapshot;
use regatta_mllog::read::{AccuracyReader, DetailLog, Summary, TraceReader};

#[test]
fn summary_of_an_invalid_server_run() {
    let text = include_bytes!("fixtures/read/summary_invalid.txt");
    assert_debug_snapshot!(Summary::read(&text[..]).unwrap());
}

#[test]
fn summary_of_an_accuracy_run_holds_the_counts_alone() {
    let text = include_bytes!("fixtures/read/summary_accuracy.txt");
    let expected = Summary {
        warnings: Some(0),
        errors: Some(0),
        ..Summary::default()
    };
    assert_eq!(Summary::read(&text[..]).unwrap(), expected);
}

#[test]
fn detail_log_with_every_departure_from_json() {
    let log = DetailLog::read(&include_bytes!("fixtures/read/detail.txt")[..]).unwrap();
    assert_eq!(log.passed_over(), 1);
    assert_eq!(log.errors().map(|record| record.line).collect::<Vec<_>>(), [14]);
    assert_eq!(log.warnings().map(|record| record.line).collect::<Vec<_>>(), [15]);
    assert_eq!(log.all("loaded_qsl_set").count(), 2);
    let first = log
        .value("loaded_qsl_set")
        .and_then(|value| value.as_list())
        .unwrap();
    assert_eq!(first.len(), 3, "the first of equal keys counts");
    assert_debug_snapshot!(log.records());
}

#[test]
fn accuracy_log_with_tokens_and_an_empty_response() {
    let entries: Result<Vec<_>, _> =
        AccuracyReader::new(&include_bytes!("fixtures/read/accuracy.json")[..]).collect();
    assert_debug_snapshot!(entries.unwrap());
}

#[test]
fn trace_with_spans() {
    let events: Result<Vec<_>, _> =
        TraceReader::new(&include_bytes!("fixtures/read/trace.json")[..]).collect();
    assert_debug_snapshot!(events.unwrap());
}

#[test]
fn logs_without_content() {
    assert!(DetailLog::read(&b""[..]).unwrap().records().is_empty());
    assert_eq!(TraceReader::new(&b""[..]).count(), 0, "tracing was off");
    assert_eq!(
        AccuracyReader::new(&b"[\n]\n"[..]).count(),
        0,
        "nothing was sampled for the log"
    );
}
