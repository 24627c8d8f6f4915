//! The proof of a run's device state in sentences: the requested state, observations during the run, and the energy from the board's
//! sensors.

use regatta_text::escape;
use regatta_types::documents::{StateProof, celsius};

use regatta_lab_store::RunRow;

/// Returns the parts of the proof of a run's device state besides the single controls: a name and a text each. A text without a name
/// belongs to the one before it.
pub fn device_state_facts(row: &RunRow) -> Vec<(&'static str, String)> {
    let Some((outcome, proof)) = row
        .outcome
        .as_ref()
        .and_then(|outcome| Some((outcome, outcome.device_state.as_ref()?)))
    else {
        return Vec::new();
    };
    let mut facts = vec![match &proof.requested {
        Some(requested) => (
            "board",
            format!(
                "set to {} ({})",
                escape(&requested.name),
                escape(&requested.source)
            ),
        ),
        None => ("board", "state not changed".to_owned()),
    }];
    let not_restored = proof.not_restored.iter();
    facts.extend(not_restored.map(|why| ("", format!("not restored: {}", escape(why)))));
    for finding in &proof.findings {
        let (what, seconds) = (escape(&finding.what), finding.seconds);
        let text = format!("{what} (from {seconds:.0} s on, in {} samples)", finding.samples);
        facts.push(("finding", text));
    }
    if let Some(gate) = &proof.gate {
        let hottest = gate
            .hottest_millicelsius
            .map_or_else(String::new, |now| format!(" at {}", celsius(now)));
        let seconds = gate.waited_ms as f64 / 1_000.0;
        facts.push(("gate", format!("opened after {seconds:.0} s{hottest}")));
    }
    facts.extend(telemetry(proof).map(|text| ("sensors", text)));
    facts.extend(energy(proof, outcome.judgement.samples).map(|text| ("energy", text)));
    facts.extend(wall_power(proof).map(|text| ("wall", text)));
    facts
}

fn telemetry(proof: &StateProof) -> Option<String> {
    let seen = &proof.telemetry;
    let hottest = seen.hottest_millicelsius?;
    let degrees = hottest as f64 / 1_000.0;
    Some(format!(
        "{} samples, {} missing, at most {degrees:.1} C while LoadGen ran",
        seen.samples, seen.gaps
    ))
}

/// Returns the energy per sample of the data set, for orientation only. An official figure requires a power meter at the wall.
fn energy(proof: &StateProof, samples: Option<u64>) -> Option<String> {
    let seen = &proof.telemetry;
    let (milliwatts, millijoules) = (seen.milliwatts?, seen.millijoules?);
    let each = samples
        .filter(|count| *count > 0)
        .map_or_else(String::new, |count| {
            format!(", {:.3} mJ for each sample", millijoules as f64 / count as f64)
        });
    Some(format!(
        "{:.2} W on {} while LoadGen ran{each} (informative: the board's own sensors)",
        milliwatts as f64 / 1_000.0,
        escape(&seen.rails.join(" + "))
    ))
}

/// Returns the power at the wall, from a meter that is not a listed one.
fn wall_power(proof: &StateProof) -> Option<String> {
    let watts = proof.telemetry.wall_milliwatts? as f64 / 1_000.0;
    let rails = proof.telemetry.milliwatts.filter(|rails| *rails > 0);
    let ratio = rails.map_or_else(String::new, |rails| {
        format!(", {:.3} times the rails", watts * 1_000.0 / rails as f64)
    });
    Some(format!(
        "{watts:.2} W at the wall while LoadGen ran{ratio} (informative: not a listed meter)"
    ))
}

#[cfg(test)]
mod tests {
    use regatta_types::documents::Telemetry;

    use super::*;

    #[test]
    fn sensors_rails_and_wall_are_a_line_each() {
        let proof = StateProof {
            telemetry: Telemetry {
                samples: 62,
                hottest_millicelsius: Some(51_250),
                rails: vec!["VDD_IN".to_owned()],
                milliwatts: Some(23_100),
                wall_milliwatts: Some(28_875),
                window_ms: 60_000,
                millijoules: Some(1_386_000),
                ..Telemetry::default()
            },
            ..StateProof::default()
        };
        let lines = [
            telemetry(&proof),
            energy(&proof, Some(210_000)),
            wall_power(&proof),
        ];
        insta::assert_snapshot!(lines.map(Option::unwrap).join("\n"), @r"
        62 samples, 0 missing, at most 51.2 C while LoadGen ran
        23.10 W on VDD_IN while LoadGen ran, 6.600 mJ for each sample (informative: the board's own sensors)
        28.88 W at the wall while LoadGen ran, 1.250 times the rails (informative: not a listed meter)
        ");
    }
}
