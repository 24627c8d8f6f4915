//! The table of docs/scheduler.md: our policy beside LWIS's and the bound, on the modelled boards and on 200 tables that
//! are off by up to 30 %. Virtual time: the same on every machine.
//!
//! `cargo bench -p regatta-schedule --bench policies`.

use std::{error::Error, fs, path::Path};

use regatta_schedule::{board::Board, judge};

/// Tables judged.
const TABLES: usize = 200;
/// Within a thousandth counts as no worse: that is what jitter alone does to a query of this length.
const EQUAL: f64 = 1e-3;

fn main() -> Result<(), Box<dyn Error>> {
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let boards = boards()?;
    println!(
        "| modelled board | Offline ours /s | LWIS's | of the bound | LWIS's of it | MultiStream p99 ours ms | LWIS's | bound |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for board in &boards {
        let offline = judge::offline(board, judge::OFFLINE_SAMPLES, 1)?;
        let query = judge::multi_stream(board, 1)?;
        println!(
            "| {} | {:.4e} | {:.4e} | {:.2} % | {:.2} % | {:.3} | {:.3} | {:.3} |",
            board.name,
            offline.ours,
            offline.lwis,
            100.0 * offline.ours / offline.bound,
            100.0 * offline.lwis / offline.bound,
            query.ours * 1e3,
            query.lwis * 1e3,
            query.bound * 1e3,
        );
    }
    let (mut offline, mut query) = (Vec::new(), Vec::new());
    for number in 0..TABLES {
        let board = boards[number % boards.len()].perturbed(0.3, number as u64);
        let judged = judge::offline(&board, judge::OFFLINE_SAMPLES, number as u64)?;
        offline.push((
            judged.ours / judged.lwis,
            judged.ours / judged.bound,
            board.name.clone(),
        ));
        let judged = judge::multi_stream(&board, number as u64)?;
        query.push((judged.lwis / judged.ours, judged.bound / judged.ours, board.name));
    }
    println!("\n{TABLES} tables, each value off by up to 30 %:\n");
    println!(
        "| scenario | no worse than LWIS's | better by over 1 % | median gain | worst against LWIS's | median of the bound | worst of the bound |"
    );
    println!("|---|---|---|---|---|---|---|");
    row("Offline", offline);
    row("MultiStream", query);
    Ok(())
}

fn row(scenario: &str, mut judged: Vec<(f64, f64, String)>) {
    judged.sort_by(|one, other| one.0.total_cmp(&other.0));
    let no_worse = judged.iter().filter(|(gain, ..)| *gain >= 1.0 - EQUAL).count();
    let better = judged.iter().filter(|(gain, ..)| *gain > 1.01).count();
    let (worst, _, name) = &judged[0];
    let median = judged[judged.len() / 2].0;
    let mut of_bound: Vec<f64> = judged.iter().map(|(_, share, _)| *share).collect();
    of_bound.sort_by(f64::total_cmp);
    println!(
        "| {scenario} | {no_worse} of {} | {better} | {median:.4} | {worst:.4} ({name}) | {:.2} % | {:.2} % |",
        judged.len(),
        100.0 * of_bound[of_bound.len() / 2],
        100.0 * of_bound[0],
    );
}

fn boards() -> Result<Vec<Board>, Box<dyn Error>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/boards");
    let mut files = fs::read_dir(directory)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>, std::io::Error>>()?;
    files.sort();
    files
        .iter()
        .map(|path| Ok(Board::parse(&fs::read_to_string(path)?)?))
        .collect()
}
