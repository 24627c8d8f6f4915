//! Compares Regatta's policy, LWIS's and the bound, on the board models and on 200 tables that are off by up to 30 %. It runs in
//! virtual time, so that every machine prints the same. `docs/harness.md` has the extremes of what it prints.
//!
//! `cargo bench -p regatta-unit-sharing --bench policies`.

use std::{error::Error, fs, path::Path};

use regatta_unit_sharing::{
    board_model::BoardModel,
    policy_comparison::{self, PolicyComparison},
};

/// The number of tables in a group.
const TABLES: u64 = 200;
/// The number of groups of tables, each with its own seeds, which shows that the result does not depend on the seeds.
const GROUPS: u64 = 5;
/// The number of Offline queries per table, each with its own jitter. Their mean is compared.
const QUERIES: u64 = 5;
/// The relative difference below which two results count as equal.
const TIE: f64 = 1e-3;

fn main() -> Result<(), Box<dyn Error>> {
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let boards = boards()?;
    println!(
        "| modelled board | Offline ours /s | LWIS's | of the bound | LWIS's of it | MultiStream p99 ours ms | LWIS's | of the bound | LWIS's of it |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for board in &boards {
        let offline = policy_comparison::offline(board, policy_comparison::OFFLINE_SAMPLES, 1, QUERIES)?;
        let query = policy_comparison::multi_stream(board, 1)?;
        println!(
            "| {} | {:.4e} | {:.4e} | {:.2} % | {:.2} % | {:.3} | {:.3} | {:.2} % | {:.2} % |",
            board.name,
            offline.ours.value,
            offline.lwis.value,
            100.0 * offline.ours.of_bound,
            100.0 * offline.lwis.of_bound,
            query.ours.value * 1e3,
            query.lwis.value * 1e3,
            100.0 * query.ours.of_bound,
            100.0 * query.lwis.of_bound,
        );
    }
    println!(
        "\n| {TABLES} tables | no worse than LWIS's | within a thousandth | better by over 1 % | median gain | worst gain | of the bound: worst | median | best |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for group in 0..GROUPS {
        let (mut offline, mut query) = (Vec::new(), Vec::new());
        for (number, board) in (group * TABLES..)
            .zip(boards.iter().cycle())
            .take(TABLES as usize)
        {
            let board = board.perturbed(0.3, number);
            // Seeds of the queries of one table are far from those of the next.
            let seed = number.wrapping_mul(1 << 20);
            offline.push((
                policy_comparison::offline(&board, policy_comparison::OFFLINE_SAMPLES, seed, QUERIES)?,
                board.name.clone(),
            ));
            if group == 0 {
                query.push((policy_comparison::multi_stream(&board, number)?, board.name));
            }
        }
        let tables = format!("{} to {}", group * TABLES, (group + 1) * TABLES - 1);
        print_row(&format!("Offline, seeds {tables}"), &offline);
        if group == 0 {
            print_row(&format!("MultiStream, seeds {tables}"), &query);
        }
    }
    Ok(())
}

fn print_row(title: &str, comparisons: &[(PolicyComparison, String)]) {
    let mut gains: Vec<_> = comparisons
        .iter()
        .map(|(comparison, name)| (comparison.gain, name))
        .collect();
    gains.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let at_least = |least: f64| gains.iter().filter(|(gain, _)| *gain >= least).count();
    let mut of_bound: Vec<f64> = comparisons
        .iter()
        .map(|(comparison, _)| comparison.ours.of_bound)
        .collect();
    of_bound.sort_by(f64::total_cmp);
    let (worst, name) = gains[0];
    println!(
        "| {title} | {} of {} | {} | {} | {:.4} | {worst:.5} ({name}) | {:.2} % | {:.2} % | {:.2} % |",
        at_least(1.0),
        comparisons.len(),
        at_least(1.0 - TIE),
        at_least(1.01),
        gains[gains.len() / 2].0,
        100.0 * of_bound[0],
        100.0 * of_bound[of_bound.len() / 2],
        100.0 * of_bound[of_bound.len() - 1],
    );
}

fn boards() -> Result<Vec<BoardModel>, Box<dyn Error>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/simulated-boards");
    let mut files = fs::read_dir(directory)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>, std::io::Error>>()?;
    files.sort();
    files
        .iter()
        .map(|path| Ok(BoardModel::parse(&fs::read_to_string(path)?)?))
        .collect()
}
