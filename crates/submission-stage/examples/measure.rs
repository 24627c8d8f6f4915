//! Measures audits and truncation on logs of any size. It makes the logs, runs one part alone, and prints time and memory.
//!
//! ```text
//! cargo run --release -p regatta-submission-stage --example measure -- make DIR 300 4      300 MB log, responses of 4 bytes
//! cargo run --release -p regatta-submission-stage --example measure -- compare DIR         TEST01's comparison
//! cargo run --release -p regatta-submission-stage --example measure -- truncate DIR BACKUP in place
//! ```
//! It measures this crate; `tools/compare-audits` runs the official script beside it.

use std::{
    error::Error,
    fs::{self, File},
    io::BufWriter,
    path::Path,
    time::Instant,
};

use regatta_catalogue::known;
use regatta_mllog::accuracy::{AccuracyWriter, Entry};
use regatta_submission_stage::{
    audit::{Dtype, compare_accuracy},
    truncate::{Destination, TruncationRequest, truncate},
};

/// Below the tree's root.
const REFERENCE: &str = "closed/ACME/results/sys/resnet/Offline/accuracy";
const AUDITED: &str = "audit";
const LOG: &str = "mlperf_log_accuracy.json";

#[expect(clippy::print_stderr, reason = "a measuring tool speaks to whoever runs it")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let began = Instant::now();
    match *arguments.as_slice() {
        ["make", directory, megabytes, bytes] => {
            make(Path::new(directory), megabytes.parse()?, bytes.parse()?)?;
        }
        ["compare", directory] => {
            let reference = Path::new(directory).join(REFERENCE).join(LOG);
            let audited = Path::new(directory).join(AUDITED).join(LOG);
            let counts = compare_accuracy(&reference, &audited, Dtype::Byte, true)?.counts;
            print!("{}", counts.text());
            eprintln!(
                "{:.1} bytes of memory per entry",
                peak_kibibytes()? as f64 * 1024.0 / counts.reference_entries as f64
            );
        }
        ["truncate", directory, backup] => {
            let rounds = known::rounds()?;
            let rule = rounds.iter().rev().find_map(|round| round.truncation.as_ref());
            let request = TruncationRequest {
                input: Path::new(directory),
                submitter: "ACME",
                destination: Destination::Backup(backup.into()),
                skip_scenarios: &[],
                rule: rule.ok_or("no round has a rule for truncation")?,
            };
            println!("{} logs cut", truncate(&request)?.cut());
        }
        _ => {
            return Err("give: make DIR MEGABYTES RESPONSE_BYTES | compare DIR | truncate DIR BACKUP".into());
        }
    }
    eprintln!(
        "{:.3} s, {} KiB at most",
        began.elapsed().as_secs_f64(),
        peak_kibibytes()?
    );
    Ok(())
}

/// An accuracy run's log of a given size in megabytes, and an audit's log with every hundredth of its entries.
fn make(directory: &Path, megabytes: u64, bytes: usize) -> Result<(), Box<dyn Error>> {
    let open = |path: &str| -> Result<_, Box<dyn Error>> {
        let directory = directory.join(path);
        fs::create_dir_all(&directory)?;
        Ok(AccuracyWriter::new(BufWriter::new(File::create(
            directory.join(LOG),
        )?))?)
    };
    let (mut reference, mut audited) = (open(REFERENCE)?, open(AUDITED)?);
    let entries = megabytes * 1_000_000 / (58 + 2 * bytes as u64);
    let mut data = vec![0; bytes];
    for seq_id in 0..entries {
        for (place, byte) in data.iter_mut().enumerate() {
            *byte = (seq_id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (place % 8 * 8)) as u8;
        }
        let qsl_idx = usize::try_from(seq_id)?;
        let entry = Entry {
            seq_id,
            qsl_idx,
            data: &data,
            tokens: None,
        };
        reference.entry(&entry)?;
        if seq_id.is_multiple_of(100) {
            audited.entry(&entry)?;
        }
    }
    fs::write(
        directory.join(REFERENCE).join("accuracy.txt"),
        "accuracy=76.46%\n",
    )?;
    reference.finish()?;
    Ok(audited.finish()?)
}

/// The most memory that this process has had.
fn peak_kibibytes() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(line
        .and_then(|line| line.split_whitespace().next())
        .ok_or("no VmHWM")?
        .parse()?)
}
