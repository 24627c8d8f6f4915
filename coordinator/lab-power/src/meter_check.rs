//! The lines about a meter before a session: PTDaemon's version, the meter's identity, and the idle load.

use regatta_catalogue::round::{PowerRules, SIMULATION_MARK};
use regatta_text::ErrorChain;
use regatta_types::documents::MeterSettings;

use super::{
    machine::{IdleLoad, MachineError, MeterReading},
    preflight_line::PreflightLine,
};

/// Amperes below which users of power-dev report that ranging is unreliable (power-dev issues 253 and 280).
const LOW_AMPS: f64 = 0.2;

/// Judges PTDaemon's report, by a round's rules if there are any.
pub(super) fn lines(
    reading: &Result<MeterReading, MachineError>,
    settings: &MeterSettings,
    rules: Option<&PowerRules>,
) -> Vec<PreflightLine> {
    let subject = "meter reading";
    let off = "switch the meter on, and check its cable, device type, interface and device port";
    match reading {
        Err(error) => vec![PreflightLine::failed(
            subject,
            ErrorChain(error).to_string(),
            "check the director's Python",
        )],
        Ok(MeterReading::Failed { error }) => vec![PreflightLine::failed(subject, error, off)],
        Ok(MeterReading::Read { identity, samples }) => {
            let load = match IdleLoad::of(samples) {
                Some(load) => idle(load),
                None => PreflightLine::failed(subject, "the meter gave no sample in 4 s", off),
            };
            vec![version(identity, rules), model(identity, settings, rules), load]
        }
    }
}

fn version(identity: &str, rules: Option<&PowerRules>) -> PreflightLine {
    let subject = "PTDaemon version";
    let version = identity.split_once("version=").map(|(_, rest)| rest);
    let version = version
        .and_then(|rest| rest.split('-').next())
        .unwrap_or("unknown");
    match rules {
        Some(rules) if !rules.ptd_versions.iter().any(|accepted| accepted == version) => {
            PreflightLine::failed(
                subject,
                format!("{version}; the round accepts {}", rules.ptd_versions.join(", ")),
                "install the round's PTDaemon, and name it with `regatta meter add --replace --ptd`",
            )
        }
        _ => PreflightLine::passed(subject, version),
    }
}

fn model(identity: &str, settings: &MeterSettings, rules: Option<&PowerRules>) -> PreflightLine {
    let subject = "meter identity";
    let model = identity.split(',').next().unwrap_or_default();
    let simulated = match identity.contains(SIMULATION_MARK) {
        true => " (FAKEPTD: simulated, no measurement)",
        false => "",
    };
    let Some(rules) = rules else {
        return PreflightLine::passed(subject, format!("{model}{simulated}"));
    };
    match rules.meters.get(model) {
        Some(kind) if *kind == settings.device_type => {
            PreflightLine::passed(subject, format!("{model}{simulated}"))
        }
        Some(kind) => PreflightLine::failed(
            subject,
            format!(
                "{model}{simulated} has device type {kind}, not {}",
                settings.device_type
            ),
            "correct it with `regatta meter add --replace --device-type`",
        ),
        None => PreflightLine::failed(
            subject,
            format!("the round accepts no meter {model}{simulated}"),
            format!(
                "accepted are {}",
                rules.meters.keys().cloned().collect::<Vec<_>>().join(", ")
            ),
        ),
    }
}

fn idle(load: IdleLoad) -> PreflightLine {
    let subject = "idle load";
    // A meter with several channels reports only their sum.
    if load.volts < 0.0 {
        return PreflightLine::passed(subject, format!("{:.2} W", load.watts));
    }
    let found = format!(
        "{:.2} W, {:.1} V, {:.3} A, power factor {:.2}",
        load.watts, load.volts, load.amps, load.power_factor
    );
    match load.amps {
        amps if amps <= 0.0 || load.volts <= 0.0 => PreflightLine::failed(
            subject,
            format!("{found}: no current or no voltage passes through the meter"),
            "wire the board's supply through the meter, and switch the board on",
        ),
        amps if amps < LOW_AMPS => PreflightLine::passed(
            subject,
            format!("{found}; users report unreliable ranging under {LOW_AMPS} A (power-dev issue 253)"),
        ),
        _ => PreflightLine::passed(subject, found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(identity: &str, sample: &str) -> Vec<bool> {
        judged(identity, sample, true)
    }

    fn judged(identity: &str, sample: &str, has_rules: bool) -> Vec<bool> {
        let settings: MeterSettings = serde_json::from_str(
            r#"{"power_dev": "", "ptd": "", "python": "", "device_type": 49, "interface": "", "device_port": "", "channel": [],
                "gpib_board": null, "port": 1, "ptd_port": 2, "ntp": ""}"#,
        )
        .unwrap();
        let rounds = regatta_catalogue::known::rounds().unwrap();
        let rules = rounds.last().unwrap().power.clone().filter(|_| has_rules);
        let reading = MeterReading::Read {
            identity: identity.to_owned(),
            samples: vec![sample.to_owned()],
        };
        let lines = lines(&Ok(reading), &settings, rules.as_ref());
        lines.iter().map(|line| line.passed).collect()
    }

    #[test]
    fn version_model_and_load_are_judged() {
        let good = "Time,x,Watts,11.5,Volts,230,Amps,0.1,PF,0.5,Mark,preflight";
        let identity = |model: &str, version: &str| format!("{model},1000,1,version={version}-1-2,OS=x");
        assert_eq!(
            read(&identity("YokogawaWT310E", "1.11.1"), good),
            [true, true, true]
        );
        assert_eq!(
            read(&identity("YokogawaWT310E", "1.10.0"), good),
            [false, true, true]
        );
        assert_eq!(
            read(&identity("YokogawaWT330E", "1.11.1"), good),
            [true, false, true]
        );
        assert_eq!(read(&identity("Dummy", "1.11.1"), ""), [true, false, false]);
        assert_eq!(
            judged("Plug,version=1", good, false),
            [true, true, true],
            "informative"
        );
        let unplugged = "Time,x,Watts,0,Volts,230,Amps,0,PF,0,Mark,preflight";
        assert_eq!(
            read(&identity("YokogawaWT310E", "1.11.1"), unplugged),
            [true, true, false]
        );
    }
}
