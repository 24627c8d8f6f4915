//! Checks LoadGen's logs from any machine: no bytes make a reader panic, run for ever or contradict the other reader.

use regatta_mllog::read::{AccuracyReader, AccuracyScanner, DetailLog, DetailReader, Summary, TraceReader};

/// Reads a summary.
pub fn summary(bytes: &[u8]) {
    if let Ok(summary) = Summary::read(bytes) {
        let _ = summary.statistic("Min latency (ns)").map(|entry| entry.number());
        let _ = summary.parameter("samples_per_query").map(|entry| entry.number());
    }
}

/// Reads a detail log and, as it is also one record a line, a trace.
pub fn detail(bytes: &[u8]) {
    let mut last = 0;
    let mut faults = 0;
    for record in DetailReader::new(bytes) {
        match record {
            Ok(record) => {
                assert!(record.line > last, "line {} follows {last}", record.line);
                last = record.line;
            }
            Err(_) => faults += 1,
        }
    }
    let lines = bytes.split(|&byte| byte == b'\n').count();
    assert!(usize::try_from(last).is_ok_and(|last| last <= lines) && faults <= lines);
    assert_eq!(
        DetailLog::read(bytes).is_ok(),
        faults == 0,
        "the collected log reports the same faults as the reader"
    );
    assert!(TraceReader::new(bytes).count() <= bytes.len() + 1);
}

/// Reads an accuracy log, and scans it: where both accept it, they find the same.
pub fn accuracy(bytes: &[u8]) {
    let read: Result<Vec<_>, _> = AccuracyReader::new(bytes)
        .map(|entry| entry.map(|entry| (entry.seq_id, entry.qsl_idx, entry.data)))
        .collect();
    if let (Ok(read), Some(scanned)) = (read, scan(bytes)) {
        assert_eq!(read, scanned);
    }
}

/// Every entry of a log; `None` when the scanner finds a fault.
fn scan(bytes: &[u8]) -> Option<Vec<(u64, u64, Vec<u8>)>> {
    let mut scanner = AccuracyScanner::new(bytes);
    let mut entries = Vec::new();
    loop {
        let mut digits = Vec::new();
        let Some(entry) = scanner.next_entry(|piece| digits.extend_from_slice(piece)).ok()? else {
            return Some(entries);
        };
        assert!(entries.len() < bytes.len(), "more entries than bytes");
        let data: Vec<u8> = digits.chunks(2).map(value).collect();
        assert_eq!(data.len() as u64, entry.bytes);
        let (begin, length) = (usize::try_from(entry.offset), usize::try_from(entry.length));
        let end = begin.expect("it is in memory") + length.expect("it is in memory");
        assert_eq!(bytes.get(end - 1), Some(&b'}'));
        entries.push((entry.seq_id, entry.qsl_idx, data));
    }
}

fn value(pair: &[u8]) -> u8 {
    let text = std::str::from_utf8(pair).expect("the scanner gives digits");
    assert_eq!(text.len(), 2, "the scanner gives pairs");
    u8::from_str_radix(text, 16).expect("the scanner gives digits")
}
