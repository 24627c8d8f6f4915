//! Formats the device's state around a run: the requested and proven values, observations during the run, and the energy from the board's
//! sensors. The format is a table if a state was set, otherwise a line or two.

use regatta_text::escape;
use regatta_types::documents::{StateProof, celsius};

use super::{cell, right, table};
use crate::store::RunRow;

/// Returns the lines for one run. Returns none if its agent gave no proof.
pub(super) fn of(row: &RunRow) -> Vec<String> {
    let Some(outcome) = &row.outcome else {
        return Vec::new();
    };
    let Some(proof) = &outcome.device_state else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    match &proof.requested {
        Some(requested) => lines.push(format!(
            "board      set to {} ({})",
            escape(&requested.name),
            escape(&requested.source)
        )),
        None => lines.push("board      state not changed".to_owned()),
    }
    lines.extend(
        proof
            .not_put_back
            .iter()
            .map(|why| format!("           not restored: {}", escape(why))),
    );
    for finding in &proof.findings {
        lines.push(format!(
            "finding    {} (from {:.0} s on, in {} samples)",
            escape(&finding.what),
            finding.seconds,
            finding.samples
        ));
    }
    if let Some(gate) = &proof.gate {
        let hottest = gate
            .hottest_millicelsius
            .map_or_else(String::new, |now| format!(" at {}", celsius(now)));
        lines.push(format!(
            "gate       opened after {:.0} s{hottest}",
            gate.waited_ms as f64 / 1_000.0
        ));
    }
    lines.extend(telemetry(proof));
    lines.extend(energy(proof, outcome.samples));
    if !proof.set.is_empty() {
        lines.push(String::new());
        lines.push(controls(proof));
    }
    lines
}

fn telemetry(proof: &StateProof) -> Option<String> {
    let seen = &proof.telemetry;
    let hottest = seen.hottest_millicelsius?;
    let degrees = hottest as f64 / 1_000.0;
    Some(format!(
        "sensors    {} samples, {} missing, at most {degrees:.1} C while LoadGen ran",
        seen.samples, seen.gaps
    ))
}

/// Energy per sample of the data set, for orientation only. An official figure requires a power meter at the wall.
fn energy(proof: &StateProof, samples: Option<u64>) -> Option<String> {
    let seen = &proof.telemetry;
    let (milliwatts, millijoules) = (seen.milliwatts?, seen.millijoules?);
    let each = samples
        .filter(|count| *count > 0)
        .map_or_else(String::new, |count| {
            format!(", {:.3} mJ for each sample", millijoules as f64 / count as f64)
        });
    Some(format!(
        "energy     {:.2} W on {} while LoadGen ran{each} (informative: the board's own sensors)",
        milliwatts as f64 / 1_000.0,
        escape(&seen.rails.join(" + "))
    ))
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
    use regatta_types::documents::{ControlProof, StateFinding, StateSpec, Telemetry};

    use super::*;

    #[test]
    fn a_state_that_was_set_is_a_short_table() {
        let proof = StateProof {
            requested: Some(StateSpec {
                name: "MaxP".to_owned(),
                source: "nvpmodel's MAXN".to_owned(),
                controls: [].into(),
            }),
            set: vec![ControlProof {
                control: "gpu-min".to_owned(),
                before: Some("306000000".to_owned()),
                requested: "1300500000".to_owned(),
                read: Some("1300500000".to_owned()),
            }],
            after: [("gpu-min".to_owned(), "306000000".to_owned())].into(),
            findings: vec![StateFinding {
                seconds: 12.0,
                what: "the supply was too weak: oc3 counted events".to_owned(),
                samples: 3,
            }],
            telemetry: Telemetry {
                samples: 62,
                hottest_millicelsius: Some(51_250),
                rails: vec!["VDD_IN".to_owned()],
                milliwatts: Some(23_100),
                window_ms: 60_000,
                millijoules: Some(1_386_000),
                ..Telemetry::default()
            },
            ..StateProof::default()
        };
        let printed = [
            telemetry(&proof),
            energy(&proof, Some(210_000)),
            Some(controls(&proof)),
        ];
        insta::assert_snapshot!(printed.map(Option::unwrap).join("\n"), @r"
        sensors    62 samples, 0 missing, at most 51.2 C while LoadGen ran
        energy     23.10 W on VDD_IN while LoadGen ran, 6.600 mJ for each sample (informative: the board's own sensors)
         control   before      requested    read         after
        ───────────────────────────────────────────────────────────
         gpu-min   306000000   1300500000   1300500000   306000000
        ");
    }
}
