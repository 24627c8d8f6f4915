//! The claims about TensorRT and CUDA in `docs/UNPROVEN.md`, with the checks that prove them.

use serde::Serialize;

use crate::outcome::Verdict;

/// A claim in UNPROVEN.md.
pub(crate) struct Claim {
    /// The key at the beginning of its line.
    pub(crate) key: &'static str,
    /// The checks that prove it. All of them must pass.
    pub(crate) checks: &'static [&'static str],
    /// The part that the checks cannot prove.
    pub(crate) remains: Option<&'static str>,
}

const fn claim(key: &'static str, checks: &'static [&'static str], remains: Option<&'static str>) -> Claim {
    Claim { key, checks, remains }
}

/// The claims that the kit checks, in the order of UNPROVEN.md. UNPROVEN.md describes how the other claims can be proven.
pub(crate) const CLAIMS: &[Claim] = &[
    claim(
        "cuda-driver",
        &[
            "driver-facts",
            "driver-context",
            "driver-pinned",
            "driver-copies",
            "driver-ranges",
            "driver-streams",
            "driver-events",
            "driver-deadline",
            "driver-graphs",
            "driver-lanes",
            "driver-out-of-memory",
            "driver-leaks",
        ],
        None,
    ),
    claim("shim", &["engine-build"], Some("other versions of TensorRT")),
    claim(
        "missing-engine",
        &["engine-build", "engine-scenarios"],
        Some("a run through the daemon"),
    ),
    claim("int8", &["engine-precisions"], Some("a published network")),
    claim("timing-cache", &["engine-timing-cache", "engine-cancel"], None),
    claim("plug-ins", &["engine-plugins"], None),
    claim(
        "speech-states",
        &["engine-rnnt", "engine-whisper"],
        Some("published weights, `nsys profile`"),
    ),
    claim("graphs", &["engine-graphs-direct"], Some("`nsys profile`")),
    claim(
        "several-gpus",
        &["driver-gpus", "engine-gpus"],
        Some("`doctor` beside `deviceQuery`"),
    ),
    claim(
        "latency",
        &["latency-resnet50", "latency-trtexec", "latency-overhead"],
        None,
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ClaimState {
    Shown,
    Refuted,
    /// A check was skipped or not selected.
    NotRun,
}

impl Claim {
    /// Returns the claim's state, based on the verdicts of the checks that ran.
    pub(crate) fn state(&self, verdict_of: impl Fn(&str) -> Option<Verdict>) -> ClaimState {
        let verdicts: Vec<_> = self.checks.iter().map(|check| verdict_of(check)).collect();
        if verdicts.contains(&Some(Verdict::Fail)) {
            ClaimState::Refuted
        } else if verdicts.iter().all(|verdict| *verdict == Some(Verdict::Pass)) {
            ClaimState::Shown
        } else {
            ClaimState::NotRun
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{CLAIMS, ClaimState, claim};
    use crate::{check::CHECKS, outcome::Verdict};

    const PAGE: &str = include_str!("../../../docs/UNPROVEN.md");

    #[test]
    fn the_page_names_the_kit_for_exactly_these_claims() {
        let named: Vec<_> = PAGE
            .split("\n* ")
            .filter(|line| line.contains("`tests/gpu`"))
            .filter_map(|line| line.strip_prefix("**")?.split_once("**:").map(|(key, _)| key))
            .collect();
        let ours: Vec<_> = CLAIMS.iter().map(|claim| claim.key).collect();
        assert_eq!(named, ours);
    }

    #[test]
    fn claims_name_checks_that_exist_and_every_check_is_named_once() {
        let keys: BTreeSet<_> = CHECKS.iter().map(|check| check.key).collect();
        assert_eq!(keys.len(), CHECKS.len());
        let named: BTreeSet<_> = CLAIMS.iter().flat_map(|claim| claim.checks).copied().collect();
        assert_eq!(named, keys);
    }

    #[test]
    fn a_claim_is_shown_by_all_of_its_checks() {
        let of_two = claim("claim", &["one", "two"], None);
        for (one, two, expected) in [
            (Some(Verdict::Pass), Some(Verdict::Pass), ClaimState::Shown),
            (Some(Verdict::Pass), Some(Verdict::Skip), ClaimState::NotRun),
            (Some(Verdict::Pass), None, ClaimState::NotRun),
            (Some(Verdict::Skip), Some(Verdict::Fail), ClaimState::Refuted),
        ] {
            let verdict_of = |key: &str| if key == "one" { one } else { two };
            assert_eq!(of_two.state(verdict_of), expected, "{one:?} {two:?}");
        }
    }
}
