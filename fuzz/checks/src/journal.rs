//! Checks the delivery journal after a power cut or disk fault: opening finds the complete records at its beginning. Opening
//! again finds the same, and the records that were appended.

use std::{fs, path::Path};

use regatta_agent::journal::{Journal, Record};

const MAGIC: &[u8] = b"RGTJ\x01\x00";

/// Opens the bytes as a journal. After a first byte of 1 they are the bodies of records, each with its length before it. They get
/// headers with right checksums, so that the fuzzer reaches the code behind those.
pub fn journal(bytes: &[u8]) {
    match bytes.split_first() {
        Some((1, bodies)) => open_twice_and_append(&framed(bodies)),
        _ => open_twice_and_append(bytes),
    }
}

fn framed(mut bodies: &[u8]) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    while let Some((length, rest)) = bodies.split_first() {
        let (body, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        file.extend_from_slice(&u32::from(body.len() as u8).to_le_bytes());
        file.extend_from_slice(&crc32c::crc32c(body).to_le_bytes());
        file.extend_from_slice(body);
        bodies = rest;
    }
    file
}

fn open_twice_and_append(bytes: &[u8]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("outbox.journal");
    fs::write(&path, bytes).expect("the file is written");
    let mut records = open(&path).1;
    let cut = fs::read(&path).expect("the file is there");
    let (mut again, same) = open(&path);
    assert_eq!(records, same);
    assert!(
        bytes.starts_with(&cut) || cut == MAGIC,
        "a whole record was changed"
    );
    let news = Record::Complete {
        stream: "run.log".parse().expect("a stream's name"),
    };
    again
        .append(&news)
        .and_then(|()| again.sync())
        .expect("the file takes a record");
    records.push(news);
    assert_eq!(open(&path).1, records);
}

fn open(path: &Path) -> (Journal, Vec<Record>) {
    Journal::open(path).expect("any bytes open as a journal")
}
