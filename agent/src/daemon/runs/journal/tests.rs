//! Tests of journals that were truncated or damaged at any byte.

use std::fs;

use proptest::prelude::*;

use super::*;

fn sample() -> Vec<Record> {
    let stream: StreamName = "mlperf_log_detail.txt".parse().unwrap();
    vec![
        Record::Sealed {
            stream: stream.clone(),
            length: 70_000,
            sha256: [7; 32],
        },
        Record::Committed {
            stream: stream.clone(),
            offset: 65_536,
        },
        Record::Restarted {
            stream: stream.clone(),
        },
        Record::Committed {
            stream: stream.clone(),
            offset: 70_000,
        },
        Record::Complete { stream },
    ]
}

fn written(path: &Path) -> Vec<u8> {
    let (mut journal, before) = Journal::open(path).unwrap();
    assert!(before.is_empty());
    for record in sample() {
        journal.append(&record).unwrap();
    }
    journal.sync().unwrap();
    fs::read(path).unwrap()
}

#[test]
fn golden_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = written(&dir.path().join("outbox.journal"));
    insta::assert_snapshot!(regatta_fsutil::hash::hex(&bytes));
}

#[test]
fn a_tail_torn_at_any_byte_is_cut_and_nothing_before_it_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("outbox.journal");
    let bytes = written(&path);
    for length in 0..=bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        let (mut journal, records) = Journal::open(&path).unwrap();
        assert_eq!(records, sample()[..records.len()], "cut at {length}");
        let whole = read_records(&bytes[..length]).1;
        assert!(
            length - whole < MAX_RECORD,
            "cut at {length}: only the torn record goes"
        );
        // The journal continues as if the torn record had never been started.
        let next = Record::Complete {
            stream: "run.log".parse().unwrap(),
        };
        journal.append(&next).unwrap();
        let (_, again) = Journal::open(&path).unwrap();
        assert_eq!(again.last(), Some(&next));
        assert_eq!(again.len(), records.len() + 1);
    }
    assert_eq!(read_records(&bytes).0, sample());
}

proptest! {
    #[test]
    fn a_flipped_bit_costs_no_record_before_it(at in 0_usize..300, bit in 0_u8..8) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("outbox.journal");
        let mut bytes = written(&path);
        let at = at % bytes.len();
        let before = read_records(&bytes[..at]).0;
        bytes[at] ^= 1 << bit;
        let records = read_records(&bytes).0;
        prop_assert_eq!(&records, &sample()[..records.len()]);
        prop_assert!(records.len() >= before.len());
    }

    #[test]
    fn any_bytes_open(bytes in proptest::collection::vec(any::<u8>(), 0..200), magic in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("outbox.journal");
        let content = if magic { [MAGIC, &bytes].concat() } else { bytes };
        fs::write(&path, content).unwrap();
        prop_assert!(Journal::open(&path).is_ok());
    }
}
