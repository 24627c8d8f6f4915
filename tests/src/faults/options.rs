//! The options that every fault campaign has, and the labs that they order.

use std::path::PathBuf;

use clap::Args;

use super::Rng;

/// The common options of a fault campaign.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Total number of faults
    #[arg(long)]
    faults: Option<usize>,
    /// Seed of the plan; equal seeds plan equal faults [default: a new one]
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Number of faults in each lab
    #[arg(long)]
    faults_per_lab: Option<usize>,
    /// Number of labs at the same time
    #[arg(long)]
    parallel: Option<usize>,
    /// Repeat only the lab of this number, which is at the end of its name; needs the options of its campaign
    #[arg(long, value_name = "NUMBER", requires = "seed")]
    pub(super) only_lab: Option<usize>,
    /// Write the tables of the results to this Markdown file
    #[arg(long, value_name = "FILE")]
    pub(super) table: Option<PathBuf>,
    /// Directory for copies of a failed lab's logs and disks [default: target/NAME]
    #[arg(long, value_name = "DIR")]
    pub(super) keep: Option<PathBuf>,
    /// Also copy the logs and disks of good labs
    #[arg(long)]
    pub(super) keep_good: bool,
    /// Run one lab; the campaign starts itself with this in new namespaces
    #[arg(long, hide = true, num_args = 2, value_names = ["SEED", "NUMBER"])]
    pub(super) in_namespaces: Vec<u64>,
}

/// The sizes of a campaign that its options do not state.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Total number of faults.
    pub faults: usize,
    /// Number of faults in each lab.
    pub faults_per_lab: usize,
    /// Number of labs at the same time.
    pub parallel: usize,
}

/// A lab to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabOrder {
    /// Its number in the campaign, from 0.
    pub number: usize,
    /// What distinguishes it from other labs of the campaign, such as its broker.
    pub variant: &'static str,
    /// Its own seed.
    pub seed: u64,
    /// The campaign's seed.
    pub campaign_seed: u64,
    /// The number of faults in the labs before it.
    pub faults_before: usize,
    /// The number of its faults.
    pub faults: usize,
}

impl LabOrder {
    /// Returns the lab's name.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.variant, self.number)
    }
}

impl Options {
    pub(super) fn sizes(&self, default: Sizes) -> Sizes {
        Sizes {
            faults: self.faults.unwrap_or(default.faults),
            faults_per_lab: self.faults_per_lab.unwrap_or(default.faults_per_lab).max(1),
            parallel: self.parallel.unwrap_or(default.parallel),
        }
    }
}

/// Divides a campaign into labs, which have these variants in turn.
pub(super) fn orders(
    sizes: Sizes,
    variants: &[&'static str],
    min_labs: usize,
    campaign_seed: u64,
) -> Vec<LabOrder> {
    let labs = sizes.faults.div_ceil(sizes.faults_per_lab).max(min_labs);
    let mut seeds = Rng::new(campaign_seed);
    // As evenly as possible, and no more faults than requested.
    let faults_before = |number: usize| sizes.faults * number / labs;
    let order = |number: usize| LabOrder {
        number,
        variant: variants[number % variants.len()],
        seed: seeds.bits(),
        campaign_seed,
        faults_before: faults_before(number),
        faults: faults_before(number + 1) - faults_before(number),
    };
    (0..labs).map(order).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labs_share_the_faults_and_repeat_from_the_seed() {
        let sizes = Sizes {
            faults: 60,
            faults_per_lab: 25,
            parallel: 1,
        };
        let labs = orders(sizes, &["one", "other"], 2, 7);
        let faults: Vec<usize> = labs.iter().map(|lab| lab.faults).collect();
        assert_eq!(faults, [20, 20, 20]);
        assert_eq!(labs[2].faults_before, 40);
        assert_eq!(labs[2].name(), "one-2");
        assert_eq!(labs, orders(sizes, &["one", "other"], 2, 7));
        assert_ne!(labs[0].seed, labs[1].seed);
        assert_ne!(labs[0].seed, orders(sizes, &["one", "other"], 2, 8)[0].seed);
    }

    #[test]
    fn few_faults_may_need_several_labs() {
        let sizes = Sizes {
            faults: 6,
            faults_per_lab: 50,
            parallel: 1,
        };
        assert_eq!(orders(sizes, &["one", "other"], 2, 1).len(), 2);
        assert_eq!(orders(sizes, &["one", "other"], 1, 1).len(), 1);
    }
}
