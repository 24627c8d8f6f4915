//! The table of a device's state around a run: the requested and proven values of each control. Without a set state, only its facts.

use regatta_types::documents::StateProof;

use super::{cell, right, table};
use regatta_lab_store::RunRow;
use regatta_lab_views::wording::device_state_facts;

/// Returns the lines for one run. Returns none if its agent gave no proof.
pub(super) fn of(row: &RunRow) -> Vec<String> {
    let facts = device_state_facts(row).into_iter();
    let mut lines: Vec<String> = facts.map(|(name, text)| format!("{name:<10} {text}")).collect();
    let proof = row
        .outcome
        .as_ref()
        .and_then(|outcome| outcome.device_state.as_ref());
    if let Some(proof) = proof.filter(|proof| !proof.set.is_empty()) {
        lines.push(String::new());
        lines.push(controls(proof));
    }
    lines
}

fn controls(proof: &StateProof) -> String {
    let mut table = table(["control", "before", "requested", "read", "after"]);
    for setting in &proof.set {
        let value = |value: Option<&String>| right(value.map_or("-", String::as_str));
        table.add_row([
            cell(&setting.control),
            value(setting.before.as_ref()),
            right(&setting.requested),
            value(setting.read.as_ref()),
            value(proof.after.get(&setting.control)),
        ]);
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use regatta_types::documents::ControlProof;

    use super::*;

    #[test]
    fn applied_device_state_is_shown_as_a_short_table() {
        let proof = StateProof {
            set: vec![ControlProof {
                control: "gpu-min".to_owned(),
                before: Some("306000000".to_owned()),
                requested: "1300500000".to_owned(),
                read: Some("1300500000".to_owned()),
            }],
            after: [("gpu-min".to_owned(), "306000000".to_owned())].into(),
            ..StateProof::default()
        };
        insta::assert_snapshot!(controls(&proof), @r"
         control   before      requested    read         after
        ───────────────────────────────────────────────────────────
         gpu-min   306000000   1300500000   1300500000   306000000
        ");
    }
}
