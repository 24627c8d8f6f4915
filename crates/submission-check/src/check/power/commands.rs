//! Checks the messages between client, server and PTDaemon: versions, names and the replies of a regular session.

use serde_json::Value;

use super::{
    check_failure::CheckFailure,
    session::{CheckResult, Session, list, text},
};

/// PTDaemon's number of the meter that measures on two channels.
const TWO_CHANNELS: i64 = 77;

/// A command to PTDaemon and its reply.
#[derive(Debug, Clone, Copy)]
struct Exchange<'a> {
    command: &'a str,
    reply: &'a str,
}

fn exchanges(messages: &[Value]) -> Result<Vec<Exchange<'_>>, CheckFailure> {
    let exchange = |message| {
        Ok(Exchange {
            command: text(message, "cmd")?,
            reply: text(message, "reply")?,
        })
    };
    messages.iter().map(exchange).collect()
}

/// Checks PTDaemon's version, its meter and its replies, and that the meter's initial ranges were restored.
pub(super) fn ptd(session: &Session<'_>) -> CheckResult {
    let messages = exchanges(list(&session.server, "ptd_messages")?)?;
    identity(session, &messages)?;
    for (command, expected) in [
        ("SR,A", "Range A changed"),
        ("SR,V", "Range V changed"),
        (
            "Go,1000,",
            "Starting untimed measurement, maximum 500000 samples at 1000ms with 0 rampup samples",
        ),
        ("Stop", "Stopping untimed measurement"),
    ] {
        replies(&messages, command, expected)?;
    }
    let ranges = messages
        .get(2)
        .map(|exchange| exchange.reply)
        .ok_or("PTDaemon was not queried for its ranges")?;
    let numbered = |start: &str, number: usize| {
        let mut commands = messages
            .iter()
            .map(|exchange| exchange.command)
            .filter(|command| command.starts_with(start));
        commands
            .nth(number - 1)
            .ok_or_else(|| format!("there is no command {number} that begins with {start}"))
    };
    let amps = format!("SR,A,{}", initial(ranges, 1)?);
    let set: Vec<_> = session.rules.amps_restored_by.iter().collect();
    let set: Vec<_> = set
        .into_iter()
        .map(|&number| numbered("SR,A", number))
        .collect::<Result<_, _>>()?;
    if !set.contains(&amps.as_str()) {
        return Err(format!(
            "the range of amps is not set back to {amps}, but to {}",
            set.join(" and ")
        )
        .into());
    }
    let volts = format!("SR,V,{}", initial(ranges, 3)?);
    let set = numbered("SR,V", 3)?;
    if set != volts {
        return Err(format!("the range of volts is not set back to {volts}, but to {set}").into());
    }
    Ok(())
}

fn identity(session: &Session<'_>, messages: &[Exchange<'_>]) -> CheckResult {
    let answer = messages
        .iter()
        .find(|exchange| exchange.command == "Identify")
        .map_or("", |exchange| exchange.reply);
    if answer.is_empty() {
        return Err("PTDaemon does not answer to Identify".into());
    }
    let version = answer
        .split_once("version=")
        .and_then(|(_, rest)| {
            rest.get(1..)?
                .split_once('-')
                .map(|(more, _)| &rest[..=more.len()])
        })
        .unwrap_or_default();
    let rules = session.rules;
    if !rules.ptd_versions.iter().any(|known| known == version) {
        let known = rules.ptd_versions.join(", ");
        return Err(format!("PTDaemon's version is `{version}`; accepted are {known}").into());
    }
    let meter = answer.split(',').next().unwrap_or_default();
    if !rules.meters.contains_key(meter) {
        let known: Vec<_> = rules.meters.keys().map(String::as_str).collect();
        return Err(format!("the meter is `{meter}`; accepted are {}", known.join(", ")).into());
    }
    Ok(())
}

/// Checks that all commands with this prefix have the expected reply. The third `Stop` has no measurement to stop.
fn replies(messages: &[Exchange<'_>], start: &str, expected: &str) -> CheckResult {
    let mut expected = expected;
    let mut stops = 0;
    for exchange in messages
        .iter()
        .filter(|exchange| exchange.command.starts_with(start))
    {
        if exchange.command == "Stop" {
            if stops == 2 {
                expected = "Error: no measurement to stop";
            }
            stops += 1;
        }
        if exchange.reply != expected {
            let Exchange { command, reply } = exchange;
            return Err(format!("the reply to {command} is `{reply}`, not `{expected}`").into());
        }
    }
    Ok(())
}

/// Returns the meter's initial range from PTDaemon's reply, or `Auto` if the meter selected it.
fn initial(ranges: &str, field: usize) -> Result<&str, CheckFailure> {
    let unreadable = || format!("the meter's ranges are not in `{ranges}`");
    let mut fields = ranges.split(',').skip(field);
    if fields.next().ok_or_else(unreadable)? != "0" {
        return Ok("Auto");
    }
    let range = fields.next().ok_or_else(unreadable)?;
    let size: f64 = range.trim().parse().map_err(|_| unreadable())?;
    Ok(if size > 0.0 { range } else { "Auto" })
}

/// Checks that both descriptions name the same client and the same server.
pub(super) fn uuids(session: &Session<'_>) -> CheckResult {
    for side in ["client", "server"] {
        let uuid = |description: &serde_json::Map<String, Value>| {
            let text = description
                .get("uuid")
                .and_then(|uuids| uuids.get(side))
                .and_then(Value::as_str);
            let digits = text.map(|text| {
                text.replace("urn:", "")
                    .replace("uuid:", "")
                    .trim_matches(['{', '}'])
                    .replace('-', "")
                    .to_ascii_lowercase()
            });
            digits.filter(|digits| digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
        };
        match (uuid(&session.client), uuid(&session.server)) {
            (Some(client), Some(server)) if client == server => {}
            (Some(_), Some(_)) => return Err(format!("the {side}'s UUID differs between both files").into()),
            _ => return Err(format!("the {side}'s UUID is missing, or none").into()),
        }
    }
    Ok(())
}

/// Checks that both descriptions name the same session.
pub(super) fn names(session: &Session<'_>) -> CheckResult {
    let (client, server) = (
        session.client.get("session_name"),
        session.server.get("session_name"),
    );
    if client == server {
        return Ok(());
    }
    let shown = |name: Option<&Value>| name.map_or_else(String::new, Value::to_string);
    Err(format!(
        "the client's session is {}, the server's {}",
        shown(client),
        shown(server)
    )
    .into())
}

/// Checks that both sides recorded the same messages and have the same version.
pub(super) fn messages(session: &Session<'_>) -> CheckResult {
    let (client, server) = (
        list(&session.client, "messages")?,
        list(&session.server, "messages")?,
    );
    if client.len() != server.len() {
        return Err(format!(
            "the client has {} messages, the server {}",
            client.len(),
            server.len()
        )
        .into());
    }
    for (number, (one, other)) in client.iter().zip(server).enumerate() {
        let (command, same) = (text(one, "cmd")?, text(other, "cmd")?);
        if command != same {
            return Err(format!("message {number} is {command} of the client, {same} of the server").into());
        }
        if command != "time" && one.get("reply") != other.get("reply") {
            return Err(format!("the replies to message {number}, {command}, differ").into());
        }
    }
    let first = server.first().ok_or("there are no messages")?;
    let version = |text: &str, side: &str| {
        let start = format!("mlcommons/power {side} v");
        let digits = text
            .trim_end_matches('\n')
            .rsplit_once(start.as_str())
            .map(|(_, digits)| digits.to_owned());
        digits
            .filter(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
            .ok_or_else(|| format!("the {side}'s version is not in `{text}`"))
    };
    let client = version(text(first, "cmd")?, "client")?;
    let server = version(text(first, "reply")?, "server")?;
    if client != server {
        return Err(format!("the client has version {client}, the server {server}").into());
    }
    Ok(())
}

/// Checks that the analyzers are accepted ones, and that one with two channels uses both.
pub(super) fn configuration(session: &Session<'_>) -> CheckResult {
    let configuration = session.server.get("ptd_config").ok_or("ptd_config is missing")?;
    let analyzers = match configuration {
        Value::Array(list) if session.rules.analyzers_listed => list.as_slice(),
        Value::Object(_) if !session.rules.analyzers_listed => std::slice::from_ref(configuration),
        _ => return Err("ptd_config is not in the form of this round".into()),
    };
    for analyzer in analyzers {
        let number = analyzer.get("device_type").and_then(Value::as_i64);
        let number = number.ok_or("device_type is missing, or no number")?;
        if !session.rules.meters.values().any(|&known| known == number) {
            return Err(format!("PTDaemon's number {number} is none of an accepted meter").into());
        }
        if number == TWO_CHANNELS && !two_channels(analyzer) {
            return Err("a meter with two channels is used with one".into());
        }
    }
    Ok(())
}

fn two_channels(analyzer: &Value) -> bool {
    let command = analyzer.get("command").and_then(Value::as_array);
    let mut words = command.into_iter().flatten().map(Value::as_str);
    let ranges = words
        .find(|word| *word == Some("-c"))
        .and_then(|_| words.next().flatten());
    let channel = analyzer.get("channel").and_then(Value::as_array);
    ranges.is_some_and(|ranges| ranges.split(',').count() == 2) && channel.is_some_and(|list| list.len() == 2)
}

/// Checks that the server did not run in debug mode.
pub(super) fn debug(session: &Session<'_>) -> CheckResult {
    match session.server.get("debug") {
        None | Some(Value::Bool(false)) => Ok(()),
        Some(_) => Err("the server ran in debug mode".into()),
    }
}
