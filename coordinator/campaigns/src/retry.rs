//! Decides whether a cell is tried again after a failed attempt. Causes of a device or of the infrastructure are, as long as the plan's
//! `retries` last; a missing precondition only where another device may have it; INVALID runs only if their rate was a guess.

use regatta_types::documents::EndCause;

use regatta_lab_store::{AttemptRow, CampaignRow};

/// The changes that another attempt could make.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Alternatives {
    /// Whether the run is repeated at the measured rate ([`regatta_lab_runs::RateRetries`]).
    pub(super) repeats_rate: bool,
    /// Whether a device may take the cell on which it has not failed.
    pub(super) has_other_device: bool,
}

/// Returns whether another attempt follows one that failed by `cause`. `earlier` are the earlier attempts that count.
pub(super) fn is_tried_again(
    cause: EndCause,
    earlier: &[&AttemptRow],
    campaign: &CampaignRow,
    alternatives: Alternatives,
) -> bool {
    let failed = earlier.iter().filter_map(|attempt| attempt.cause);
    let used = failed.filter(|cause| retryable_on_another_device(*cause)).count() as u64;
    let has_retries = || used < campaign.retries;
    match cause {
        EndCause::Device | EndCause::Infrastructure => has_retries(),
        EndCause::Precondition => alternatives.has_other_device && has_retries(),
        EndCause::Invalid => alternatives.repeats_rate,
        EndCause::Workload | EndCause::Operator => false,
    }
}

/// Returns whether another device may do better.
pub(super) const fn retryable_on_another_device(cause: EndCause) -> bool {
    matches!(
        cause,
        EndCause::Device | EndCause::Infrastructure | EndCause::Precondition
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_lab_store::CampaignState;

    #[test]
    fn retries_are_bounded_and_only_where_another_attempt_may_differ() {
        use EndCause::{Device, Infrastructure, Invalid, Operator, Precondition, Workload};
        let campaign = CampaignRow {
            name: "a".to_owned(),
            plan_sha256: String::new(),
            seed: 0,
            retries: 2,
            rate_retries: 1,
            lose_after_s: 600,
            deadline: None,
            state: CampaignState::Running,
            started: String::new(),
            ended: None,
            revision: 0,
        };
        let attempt = |cause| AttemptRow {
            campaign: "a".to_owned(),
            cell: 1,
            number: 1,
            device: "ab".repeat(16).parse().unwrap(),
            run: None,
            session: None,
            requested: String::new(),
            ended: None,
            cause: Some(cause),
            reason: None,
            is_run_over: true,
        };
        for (cause, earlier, has_other, expected) in [
            (Device, &[][..], false, true),
            (Infrastructure, &[Device], false, true),
            (Device, &[Device, Infrastructure], false, false),
            (Device, &[Invalid, Invalid, Invalid], false, true),
            (Invalid, &[], true, true),
            (Invalid, &[], false, false),
            (Invalid, &[Device, Device], true, true),
            (Workload, &[], true, false),
            (Precondition, &[], false, false),
            (Precondition, &[], true, true),
            (Precondition, &[Precondition, Device], true, false),
            (Operator, &[], true, false),
        ] {
            let rows: Vec<AttemptRow> = earlier.iter().map(|&cause| attempt(cause)).collect();
            let rows: Vec<&AttemptRow> = rows.iter().collect();
            let alternatives = Alternatives {
                repeats_rate: has_other,
                has_other_device: has_other,
            };
            let found = is_tried_again(cause, &rows, &campaign, alternatives);
            assert_eq!(found, expected, "{cause} after {earlier:?}");
        }
    }
}
