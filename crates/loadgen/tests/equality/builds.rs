//! Builds of the official LoadGen, and how each differs from 6.0.17 with libstdc++ 11.

use regatta_loadgen::rng::RngAbi;
use regatta_test_requirements::{Requirement, skip};
use regatta_types::Scenario;

use crate::{
    cases::{Case, effective},
    oracle::Oracle,
};

/// A build of the official LoadGen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Build {
    /// Its directory's name after `loadgen-`.
    pub(crate) name: &'static str,
    pub(crate) abi: RngAbi,
    /// Before 6.0: loadable sets are parts of the whole library, whatever number of samples is set. The number in an accuracy run
    /// cannot be set.
    pub(crate) cuts_whole_library: bool,
    /// Before 5.0: some keys count in `mlperf.conf` only, and `audit.config` begins with that file once more.
    reads_otherwise: bool,
}

impl Build {
    /// The reference build.
    pub(crate) const NEWEST: Self = Self {
        name: "6.0.17",
        abi: RngAbi::Libstdcxx11,
        cuts_whole_library: false,
        reads_otherwise: false,
    };
    /// The same by Debian 11's compiler.
    pub(crate) const BY_GCC_10: Self = Self {
        name: "6.0.17-libstdc++-10",
        abi: RngAbi::Libstdcxx10,
        ..Self::NEWEST
    };
    /// Older versions.
    pub(crate) const OLDER: [Self; 2] = [
        Self {
            name: "5.1.2",
            cuts_whole_library: true,
            ..Self::NEWEST
        },
        Self {
            name: "4.1.30",
            cuts_whole_library: true,
            reads_otherwise: true,
            ..Self::NEWEST
        },
    ];

    /// Returns the driver of the build. Records a skipped test without it. Only the reference build is required in CI.
    pub(crate) fn find(self) -> Option<Oracle> {
        match Oracle::find(self.name) {
            Ok(oracle) => Some(oracle),
            Err(reason) => {
                // Only `.ci/long` builds the older ones.
                let requirement = if self.name == Self::NEWEST.name {
                    Requirement::Package
                } else {
                    Requirement::OfficialTools
                };
                skip(requirement, reason);
                None
            }
        }
    }

    /// Returns a case for generation alone, changed so that ours does the same; `None` where it cannot.
    pub(crate) fn as_read(self, mut case: Case) -> Option<Case> {
        if self.reads_otherwise {
            case.drop_user_keys(&["sample_concatenate_permutation"]);
            self.reads_queries(&case)?;
        }
        Some(case)
    }

    /// Returns a case for a complete run, changed so that this build does what ours does; `None` where it cannot.
    pub(crate) fn as_run(self, mut case: Case) -> Option<Case> {
        if self.cuts_whole_library {
            case.performance = case.total;
            case.drop_user_keys(&[
                "performance_sample_count_override",
                "accuracy_sample_count_override",
            ]);
            // Rounds set it for some models. The set is the library only if both have the same size.
            let (model, scenario) = (&case.model, case.scenario);
            case.user_conf += &format!("{model}.{scenario}.performance_sample_count_override = 0\n");
        }
        if self.reads_otherwise {
            case.audit_config = None;
            case.drop_user_keys(&[
                "sample_concatenate_permutation",
                "accuracy_log_rng_seed",
                "accuracy_log_sampling_target",
            ]);
            self.reads_queries(&case)?;
        }
        Some(case)
    }

    /// Offline with equal issue splits its query into many.
    fn reads_queries(self, case: &Case) -> Option<()> {
        let differs = case.scenario == Scenario::Offline && effective(case).sample_concatenate_permutation;
        (!differs).then_some(())
    }

    /// Whether this build does not write a key of the detail log.
    pub(crate) fn lacks_key(self, key: &str) -> bool {
        let accuracy_count = [
            "requested_accuracy_sample_count_override",
            "effective_accuracy_sample_count",
        ];
        self.cuts_whole_library && accuracy_count.contains(&key)
            || self.reads_otherwise && key == "num_errors"
    }

    /// Returns whether this build gives a key another value: in Offline, the requested number of samples instead of the generated
    /// one.
    pub(crate) fn tells_otherwise(self, key: &str) -> bool {
        self.reads_otherwise && key == "generated_samples_per_query"
    }

    /// Returns our summary in this build's form.
    pub(crate) fn as_its_summary(self, summary: &str) -> String {
        let lacking = |line: &&str| self.cuts_whole_library && line.starts_with("accuracy_sample_count : ");
        let lines = summary.split_inclusive('\n').filter(|line| !lacking(line));
        if self.reads_otherwise {
            in_4_1_words(lines)
        } else {
            lines.collect()
        }
    }
}

/// Percentiles have no decimals in 4.1, time per token has another name, and equal issue is missing.
fn in_4_1_words<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let warns = |line: &&str| !line.starts_with("WARNING: sample_concatenate_permutation");
    lines
        .take_while(warns)
        .map(|line| match line.split_once("th ") {
            Some((percent, rest)) if percent.parse::<f64>().is_ok() => {
                format!("{:.0}th {rest}", percent.parse::<f64>().unwrap())
            }
            _ => line.replace("Time per Output Token", "Time to Output Token"),
        })
        .collect()
}
