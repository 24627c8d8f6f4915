//! Finds the round whose seeds the runs of a tree have. A tree that is checked with another round's rules has an error in every run.

use std::io::Read as _;

use regatta_catalogue::round::{Round, Seeds};
use regatta_mllog::read::{DetailReader, Value};

use super::{endpoints::Documents, finding::Findings, rules, strict::StrictReport};
use crate::tree::{Node, Tree};

/// The beginning of a detail log in which LoadGen states its settings, in bytes.
const HEAD: u64 = 1 << 18;
/// The end of the path of a performance run's log.
const DETAIL: &str = "/performance/run_1/mlperf_log_detail.txt";
/// The end of the path of the endpoints harness's summary.
const SUMMARY: &str = "/performance/result_summary.json";

/// Returns the round whose seeds most results of the tree have, or `None` if no result has the seeds of a round.
#[must_use]
pub fn round_of_seeds<'a>(tree: &Tree, rounds: &[&'a Round]) -> Option<&'a Round> {
    let mut results = vec![0_usize; rounds.len()];
    for node in tree.nodes().iter().filter(|node| node.path.contains("/results/")) {
        let logged = (node.path.ends_with(DETAIL) && !node.path.contains("/TEST"))
            .then(|| logged_seeds(tree, &node.path))
            .flatten();
        for (count, round) in results.iter_mut().zip(rounds) {
            let fits = match round.seeds() {
                Some(seeds) if logged.is_some() => logged == Some(seeds),
                Some(seeds) => endpoints_have(tree, node, round, seeds),
                None => false,
            };
            *count += usize::from(fits);
        }
    }
    let most = *results.iter().max().filter(|most| **most > 0)?;
    // Of rounds with the same seeds, the newest applies.
    let newest = rounds.iter().zip(results).rev().find(|(_, count)| *count == most);
    newest.map(|(round, _)| *round)
}

impl StrictReport {
    /// Returns whether a run has other seeds than the round.
    #[must_use]
    pub fn has_other_seeds(&self) -> bool {
        let seeds = format!("{}: ", rules::SEEDS.name);
        self.findings
            .iter()
            .any(|finding| finding.rule.starts_with(&seeds))
    }

    /// Adds an error that names the round whose seeds the runs have, if it is another one than the checked round.
    pub fn report_round_of_seeds(&mut self, tree: &Tree, round: &Round, rounds: &[&Round]) {
        let Some(found) = round_of_seeds(tree, rounds).filter(|found| found.name != round.name) else {
            return;
        };
        let mut named = Findings::default();
        let text = format!("the runs have the seeds of {}, not of {}", found.name, round.name);
        let fix = format!("check the tree with --round {}", found.name);
        named.error(rules::SEEDS, ".", text, fix);
        self.findings.splice(0..0, named.into_list());
    }
}

/// Returns whether the node is the summary of an endpoints harness run with these seeds.
fn endpoints_have(tree: &Tree, node: &Node, round: &Round, expected: Seeds) -> bool {
    let endpoints = round.submission.endpoints.as_ref();
    let (Some(directory), Some(endpoints)) = (node.path.strip_suffix(SUMMARY), endpoints) else {
        return false;
    };
    let Ok(logs) = Documents::read(tree, directory).logs(Some(endpoints)) else {
        return false;
    };
    let seed = |name: &str| logs.performance.value(name).and_then(Value::as_u64);
    seed("effective_sample_index_rng_seed") == Some(expected.sample_index)
        && seed("effective_schedule_rng_seed") == Some(expected.schedule)
}

/// Returns the seeds with which a run's log begins.
fn logged_seeds(tree: &Tree, path: &str) -> Option<Seeds> {
    let mut head = Vec::new();
    tree.open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    let mut seeds = [None; 3];
    for record in DetailReader::new(head.as_slice()).map_while(Result::ok) {
        let names = ["qsl", "sample_index", "schedule"];
        let of_record = names
            .iter()
            .position(|name| record.key == format!("effective_{name}_rng_seed"));
        if let Some(seed) = of_record.and_then(|number| seeds.get_mut(number)) {
            *seed = record.value.as_u64();
        }
        if let [Some(qsl), Some(sample_index), Some(schedule)] = seeds {
            return Some(Seeds {
                qsl,
                sample_index,
                schedule,
            });
        }
    }
    None
}
