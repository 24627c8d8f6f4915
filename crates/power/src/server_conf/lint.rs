//! Finds errors of a configuration before anything is started: what the official server refuses or ignores, or only its checker
//! finds in the finished session.

use std::{collections::BTreeMap, net::IpAddr, path::Path};

use regatta_catalogue::round::PowerRules;

use super::{AnalyzerConf, ConfError, RangingMode, ServerConf, ini::Ini};
use crate::ptd;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfSeverity {
    /// A session can succeed, but not as the file suggests.
    Warning,
    /// The server does not start, or the checker refuses every session.
    Error,
}

/// Something that was found in a configuration.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ConfFinding {
    /// How bad it is.
    pub severity: ConfSeverity,
    /// The line, counted from 1, where it is about one.
    pub line: Option<usize>,
    /// What was found.
    pub text: String,
    /// What can be done.
    pub hint: String,
}

const KNOWN: [(&str, &[&str]); 2] = [
    ("server", &["ntpserver", "listen", "rangingmode"]),
    ("ptd", &["ptd", "analyzercount"]),
];
const ANALYZER: &[&str] = &[
    "channel",
    "networkport",
    "devicetype",
    "dcflag",
    "interfaceflag",
    "deviceport",
    "gpibboard",
];
/// Flags that PTDaemon has for interfaces.
const INTERFACES: [&str; 5] = ["", "-n", "-g", "-y", "-U"];

/// Reads a file and lists all its errors; `rules` are the power rules of the round that the session is for.
/// Only the text is looked at: no program is started and no port is tried.
#[must_use]
pub fn lint(text: &str, rules: Option<&PowerRules>) -> (Option<ServerConf>, Vec<ConfFinding>) {
    let mut findings = Vec::new();
    let conf = collect(text, rules, &mut findings);
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.line));
    (conf, findings)
}

fn collect(text: &str, rules: Option<&PowerRules>, findings: &mut Vec<ConfFinding>) -> Option<ServerConf> {
    let ini = match Ini::read(text) {
        Ok(ini) => ini,
        Err(fault) => {
            findings.push(error(
                Some(fault.line),
                fault.fault.to_string(),
                "docs/power.md shows a complete server.conf",
            ));
            return None;
        }
    };
    ignored(&ini, findings);
    let conf = match ServerConf::read(text) {
        Ok(conf) => conf,
        Err(fault) => {
            let line = match &fault {
                ConfError::Line { line, .. } => Some(*line),
                _ => None,
            };
            let reason = match &fault {
                ConfError::Line { reason, .. } => reason.clone(),
                other => other.to_string(),
            };
            findings.push(error(line, reason, fault.hint()));
            return None;
        }
    };
    server(&ini, &conf, findings);
    ports(&conf, findings);
    for (number, analyzer) in (1..).zip(&conf.analyzers) {
        meter(&ini, &format!("analyzer{number}"), analyzer, rules, findings);
    }
    if conf.analyzers.len() > 1 {
        findings.push(error(
            ini.line("ptd", "analyzerCount"),
            format!(
                "{} analyzers: the official checker refuses every session with several analyzers (it counts the commands of all together)",
                conf.analyzers.len()
            ),
            "measure with one meter, or with a multichannel meter",
        ));
    }
    Some(conf)
}

fn error(line: Option<usize>, text: impl Into<String>, hint: impl Into<String>) -> ConfFinding {
    ConfFinding {
        severity: ConfSeverity::Error,
        line,
        text: text.into(),
        hint: hint.into(),
    }
}

fn warning(line: Option<usize>, text: impl Into<String>, hint: impl Into<String>) -> ConfFinding {
    ConfFinding {
        severity: ConfSeverity::Warning,
        ..error(line, text, hint)
    }
}

/// Why the channels do not fit the meter, as the official server has it.
pub(super) fn channel_error(analyzer: &AnalyzerConf) -> Option<String> {
    let device = analyzer.device_type;
    let expected = match device {
        ptd::WT500_MULTICHANNEL => 1..=1,
        device if ptd::is_multichannel(device) => 2..=2,
        _ => 0..=1,
    };
    let count = analyzer.channel.len();
    (!expected.contains(&count)).then(|| match (device, count) {
        (ptd::WT500_MULTICHANNEL, _) => format!("device {device} needs `channel` with one number, the count"),
        (device, _) if ptd::is_multichannel(device) => {
            format!("device {device} needs `channel` with two numbers, first and count")
        }
        _ => format!("device {device} has one channel, `channel` names {count}"),
    })
}

/// Keys and sections that the server does not look at.
fn ignored(ini: &Ini, findings: &mut Vec<ConfFinding>) {
    for section in ini.sections() {
        let known = KNOWN.iter().find(|(name, _)| *name == section);
        let number = section.strip_prefix("analyzer");
        let keys = match (known, number) {
            (Some((_, keys)), _) => *keys,
            (None, Some(number)) if number.parse::<usize>().is_ok_and(|number| number > 0) => ANALYZER,
            _ => {
                findings.push(warning(
                    None,
                    format!("section [{section}] is ignored"),
                    "sections are [server], [ptd], [analyzer1]",
                ));
                continue;
            }
        };
        for (key, entry) in ini.keys(section) {
            if keys.contains(&key) {
                continue;
            }
            let line = Some(entry.line);
            if section == "ptd" && ANALYZER.contains(&key) {
                findings.push(warning(
                    line,
                    format!("`{key}` is ignored in [ptd]: power-dev's template is out of date"),
                    "move it into [analyzer1]",
                ));
            } else {
                findings.push(warning(
                    line,
                    format!("`{key}` is ignored in [{section}]"),
                    "remove it",
                ));
            }
        }
    }
}

fn server(ini: &Ini, conf: &ServerConf, findings: &mut Vec<ConfFinding>) {
    if conf.ntp_server.is_empty() {
        findings.push(error(
            ini.line("server", "ntpServer"),
            "ntpServer is empty: the server cannot compare its clock",
            "name an NTP server that the director and the SUT both reach",
        ));
    }
    if let Ok(Some(mode)) = ini.get("server", "rangingMode") {
        let line = ini.line("server", "rangingMode");
        if mode != "AUTO" && mode != "MAX" {
            findings.push(warning(
                line,
                format!("rangingMode `{mode}` is unknown and taken for AUTO"),
                "write AUTO, or remove the line",
            ));
        } else if conf.ranging_mode == RangingMode::Max {
            findings.push(warning(
                line,
                "rangingMode MAX has no effect: the official server sets the automatic range over it",
                "remove the line",
            ));
        }
    }
    let line = ini.line("ptd", "ptd");
    if conf.ptd.is_empty() {
        findings.push(error(line, "ptd is empty", "name PTDaemon's executable"));
    } else if conf.ptd.contains(" -") && !Path::new(&conf.ptd).exists() {
        findings.push(error(
            line,
            format!(
                "`{}` looks like a program with arguments, but is used as the name of one file",
                conf.ptd
            ),
            "name the executable alone: the server adds the arguments",
        ));
    }
    if conf.analyzers.is_empty() {
        findings.push(error(
            ini.line("ptd", "analyzerCount"),
            "analyzerCount is 0",
            "remove the line",
        ));
    }
}

/// Ports that are wanted twice.
fn ports(conf: &ServerConf, findings: &mut Vec<ConfFinding>) {
    let mut taken: BTreeMap<u16, String> = BTreeMap::new();
    let (address, port) = conf.listen;
    if address.is_unspecified() || address.is_loopback() {
        taken.insert(port, "the server".to_owned());
    }
    for (number, analyzer) in (1..).zip(&conf.analyzers) {
        let name = format!("analyzer {number}");
        if let Some(other) = taken.insert(analyzer.port(), name.clone()) {
            findings.push(error(
                None,
                format!("{other} and {name} both use port {}", analyzer.port()),
                "give each analyzer a different networkPort",
            ));
        }
    }
    if address == IpAddr::from([127, 0, 0, 1]) {
        findings.push(warning(
            None,
            "the server listens on loopback only: no other machine reaches it",
            "listen on 0.0.0.0 unless the SUT is this machine",
        ));
    }
}

fn meter(
    ini: &Ini,
    section: &str,
    analyzer: &AnalyzerConf,
    rules: Option<&PowerRules>,
    findings: &mut Vec<ConfFinding>,
) {
    let device = analyzer.device_type;
    let line = |key: &str| ini.line(section, key);
    if let Some(rules) = rules
        && !rules.meters.values().any(|&known| known == device)
    {
        let mut known: Vec<_> = rules
            .meters
            .iter()
            .map(|(name, number)| (*number, name))
            .collect();
        known.sort_unstable();
        let known: Vec<_> = known
            .iter()
            .map(|(number, name)| format!("{number} {name}"))
            .collect();
        let text = match device {
            0 => "device 0 is PTDaemon's dummy, no meter".to_owned(),
            _ => format!("device {device} is not a meter that this round accepts"),
        };
        findings.push(error(
            line("deviceType"),
            text,
            format!("accepted are {}", known.join(", ")),
        ));
    }
    if ptd::DC.contains(&device) != analyzer.dc_flag.is_some() {
        let (text, hint) = match &analyzer.dc_flag {
            Some(flag) => (
                format!("dcFlag `{flag}` with device {device}, which measures alternating current"),
                "remove it, or name 508, 549 or 586",
            ),
            None => (
                format!("device {device} measures direct current, and dcFlag is missing"),
                "add `dcFlag: -D`",
            ),
        };
        findings.push(warning(line("dcFlag").or(line("deviceType")), text, hint));
    }
    if !INTERFACES.contains(&analyzer.interface_flag.as_str()) {
        findings.push(warning(
            line("interfaceFlag"),
            format!("`{}` is not an interface of PTDaemon", analyzer.interface_flag),
            "leave it empty for serial and for USB on Linux; -n TCP/IP, -g GPIB, -y TMCTL, -U USB",
        ));
    }
    if analyzer.device_port.is_empty() {
        findings.push(error(
            line("devicePort"),
            "devicePort is empty",
            "name the meter's device file, address or serial number",
        ));
    }
}
