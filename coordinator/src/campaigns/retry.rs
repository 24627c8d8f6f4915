//! Whether a cell is tried again after a failed attempt. Only causes of a device or of the infrastructure are tried again by themselves, and
//! runs that are INVALID because their rate was a guess.

use regatta_types::documents::EndCause;

use crate::store::{AttemptRow, CampaignRow};

/// Returns whether another attempt follows one that failed by `cause`. `earlier` are the earlier attempts that count. `has_other_rate` says
/// whether another rate can make the run VALID.
pub(super) fn is_tried_again(
    cause: EndCause,
    earlier: &[&AttemptRow],
    campaign: &CampaignRow,
    has_other_rate: bool,
) -> bool {
    let count = |counts: fn(EndCause) -> bool| {
        let failed = earlier.iter().filter_map(|attempt| attempt.cause);
        failed.filter(|cause| counts(*cause)).count() as u64
    };
    match cause {
        EndCause::Device | EndCause::Infrastructure => count(is_of_a_place) < campaign.retries,
        EndCause::Invalid => {
            has_other_rate && count(|cause| cause == EndCause::Invalid) < campaign.rate_retries
        }
        EndCause::Precondition | EndCause::Workload | EndCause::Operator => false,
    }
}

/// Returns whether another device may do better.
pub(super) const fn is_of_a_place(cause: EndCause) -> bool {
    matches!(cause, EndCause::Device | EndCause::Infrastructure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::CampaignState;

    #[test]
    fn retries_are_bounded_and_only_of_two_kinds() {
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
            requested: String::new(),
            ended: None,
            cause: Some(cause),
            reason: None,
            is_run_over: true,
        };
        for (cause, earlier, has_other_rate, expected) in [
            (Device, &[][..], false, true),
            (Infrastructure, &[Device], false, true),
            (Device, &[Device, Infrastructure], false, false),
            (Device, &[Invalid, Invalid, Invalid], false, true),
            (Invalid, &[], true, true),
            (Invalid, &[], false, false),
            (Invalid, &[Invalid], true, false),
            (Invalid, &[Device, Device], true, true),
            (Workload, &[], true, false),
            (Precondition, &[], true, false),
            (Operator, &[], true, false),
        ] {
            let rows: Vec<AttemptRow> = earlier.iter().map(|&cause| attempt(cause)).collect();
            let rows: Vec<&AttemptRow> = rows.iter().collect();
            let found = is_tried_again(cause, &rows, &campaign, has_other_rate);
            assert_eq!(found, expected, "{cause} after {earlier:?}");
        }
    }
}
