//! Counts the issuing thread's system calls while LoadGen measures, by `strace`. A wait for a lock is a futex call without a time
//! limit; the modelled accelerator's sleep has one. Memory is requested by brk and mmap. strace slows the run down, and does not
//! change its calls.

use std::{collections::BTreeMap, fs, path::Path};

use crate::{AnyError, conditions::Bench};

/// Prints a table of the calls, or why there is none.
pub(crate) fn print_system_calls(bench: &Bench, strace: &Path) -> Result<(), AnyError> {
    println!();
    if !strace.exists() {
        println!("left out: the issuing thread's system calls (Debian: strace)");
        return Ok(());
    }
    let trace = bench.spec().with_file_name("trace.txt");
    let words = ["-f", "-qq", "-s", "200", "-o"].map(str::to_owned);
    let mut prefix = vec![strace.display().to_string()];
    prefix.extend(words);
    prefix.push(trace.display().to_string());
    let files = bench.alone(&prefix)?;
    let counts = calls_in_the_window(&fs::read_to_string(&trace)?);
    fs::remove_file(&trace)?;
    let detail = fs::read_to_string(files.join("mlperf_log_detail.txt"))?;
    let queries = crate::conditions::logged(&detail, "result_query_count").unwrap_or(f64::NAN);
    println!("| system calls of the issuing thread in a window of {queries:.0} queries | number |");
    println!("|---|---|");
    for (what, names) in [
        (
            "waits for a lock (futex without a time limit)",
            &["wait for a lock"][..],
        ),
        ("memory asked for (brk, mmap, mremap)", &["brk", "mmap", "mremap"]),
        (
            "files and sockets (read, write, send, recv)",
            &["read", "write", "sendto", "recvfrom"],
        ),
        (
            "the modelled accelerator's sleep (futex with a time limit)",
            &[SLEEP],
        ),
    ] {
        let sum: u64 = names.iter().filter_map(|name| counts.get(*name)).sum();
        println!("| {what} | {sum} |");
    }
    println!("| all | {} |", counts.values().sum::<u64>());
    Ok(())
}

/// The name that counts the accelerator's sleeps.
const SLEEP: &str = "sleep";

/// Returns the calls of the first thread between its first and its last sleep. LoadGen issues from this thread, and the
/// accelerator sleeps in every query.
fn calls_in_the_window(trace: &str) -> BTreeMap<String, u64> {
    let first = trace.split_whitespace().next().unwrap_or_default();
    let calls: Vec<&str> = trace
        .lines()
        .filter_map(|line| {
            let (thread, call) = line.split_once(' ')?;
            let name = call.trim_start().split_once('(')?.0;
            let name = match name {
                "futex" if !call.contains("FUTEX_WAIT") => "futex",
                "futex" if call.contains(", NULL,") => "wait for a lock",
                "futex" => SLEEP,
                name => name,
            };
            (thread == first).then_some(name)
        })
        .collect();
    let begin = calls.iter().position(|name| *name == SLEEP).unwrap_or(0);
    let end = calls.iter().rposition(|name| *name == SLEEP).unwrap_or(0);
    let mut counts = BTreeMap::new();
    for name in &calls[begin..=end.min(calls.len().saturating_sub(1))] {
        *counts.entry((*name).to_owned()).or_default() += 1;
    }
    counts
}
