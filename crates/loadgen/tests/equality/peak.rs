//! Tests of FindPeakPerformance: both LoadGens try the same rates, issue the same queries at each, and find the same peak.
//!
//! A real SUT's peak would depend on the clock. This SUT has a capacity: queries of a series up to it are answered at once, later
//! ones long after the latency bound. So a rate is reached or not by its number of queries, which the schedule's seed decides.
//! Only a machine that stops for seconds could change that.

use regatta_types::{Mode, Scenario};

use crate::{
    builds::Build,
    cases::{Case, Draw},
    draws, runs,
};

const BOUND_MS: u64 = 2000;

fn search(base_qps: u64, capacity: u64, seed: u64) -> Case {
    let mut case = Case::plain(Scenario::Server, Mode::FindPeakPerformance, 40);
    case.capacity = capacity;
    case.late_ms = BOUND_MS + 100;
    case.find_peak_decimals = Some(0);
    case.mlperf_conf += &format!(
        "*.*.schedule_rng_seed = {seed}\n*.*.sample_index_rng_seed = {}\n",
        seed / 3
    );
    case.user_conf = format!(
        "*.Server.target_qps = {base_qps}.5\n*.Server.target_latency = {BOUND_MS}\n*.Server.min_duration = 1000\n\
         *.Server.min_query_count = 10\n"
    );
    case
}

#[test]
fn the_search_for_the_peak_is_the_official_one() {
    let build = Build::NEWEST;
    let Some(oracle) = build.find() else { return };
    let (count, seed) = draws();
    let mut draw = Draw::new(seed ^ 0x9EA4);
    for _ in 0..count.div_ceil(250) {
        let case = search(8 + draw.below(8), 20 + draw.below(12), draw.below(1 << 40));
        runs::compare(&case, true, &oracle, build).unwrap();
    }
}

#[test]
fn a_search_that_begins_too_high_ends_like_the_official_one() {
    let build = Build::NEWEST;
    let Some(oracle) = build.find() else { return };
    runs::compare(&search(30, 5, 7), true, &oracle, build).unwrap();
}
