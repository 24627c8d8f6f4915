//! `regatta device doctor`: requests a device's facts and whether it is fit to measure, over the channel that carries its runs.
//! The device judges; here its words are shown.

use std::time::{Duration, Instant};

use regatta_catalogue::catalogue::Catalogue;
use regatta_text::HumanDuration;
use regatta_types::{ExitCode, documents::RunPhase};
use serde_json::{Value, json};

use super::{Context, power::ClientFitnessArgs};
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_power::PreflightLine;
use regatta_lab_store::{DeviceRow, Examination, Store, workspace::Workspace};
use regatta_lab_views::{lookup, wording};

/// The interval of looking for the answer.
const LOOK: Duration = Duration::from_millis(100);

/// Flags of `device doctor`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Devices by name or id, comma separated, or `all` [default: the only device]
    #[arg(value_name = "DEVICE", value_delimiter = ',')]
    devices: Vec<String>,
    /// Devices with one of these labels, comma separated (see `device label`)
    #[arg(long, value_name = "LABEL", value_delimiter = ',', conflicts_with = "devices")]
    device_label: Vec<String>,
    /// How long to wait for the device's report
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    timeout: HumanDuration,
    #[command(flatten)]
    power: ClientFitnessArgs,
}

pub(super) fn run(args: &Args, context: &Context, workspace: &Workspace, store: &Store) -> CommandResult {
    let devices = match args.devices.as_slice() {
        [] if !args.device_label.is_empty() => lookup::labelled_devices(store, &args.device_label)?,
        [] => vec![lookup::device(store, None)?],
        names => lookup::devices(store, names)?,
    };
    if !workspace.is_served() {
        return Err(
            Failure::could_not(format!("no coordinator serves {}", workspace.root().display()))
                .hint(format!("start it: {}", context.command("serve"))),
        );
    }
    if devices.len() > 1 && args.power.is_requested() {
        return Err(Failure::misuse("--power-dev checks one device").hint("name that one"));
    }
    let longest = Duration::from_millis(args.timeout.millis());
    if let [device] = devices.as_slice() {
        let mut found = examine(device, longest, store)?;
        let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
        let rules = catalogue.round(None).map_err(Failure::usage)?.power.as_ref();
        found.add(&args.power.check(&device.id, rules, store)?);
        context.print(&found.document, || found.text.clone())?;
        return Ok(found.code());
    }
    let mut code = ExitCode::Success;
    let (mut documents, mut texts) = (Vec::new(), Vec::new());
    for device in &devices {
        let (document, text, own) = match examine(device, longest, store) {
            Ok(found) => (
                json!({ "name": device.name, "found": found.document }),
                found.text.clone(),
                found.code(),
            ),
            Err(failure) => (
                json!({ "name": device.name, "failure": failure.to_string() }),
                failure.to_string(),
                failure.code(),
            ),
        };
        documents.push(document);
        texts.push(format!("{}\n{text}", device.name));
        code = code.max(own);
    }
    context.print(&json!({ "devices": documents }), || texts.join("\n\n"))?;
    Ok(code)
}

/// The findings of a device about itself.
pub(super) struct DeviceFindings {
    pub(super) document: Value,
    text: String,
}

impl DeviceFindings {
    /// Adds whether the official power client can run there.
    fn add(&mut self, lines: &[PreflightLine]) {
        if lines.is_empty() {
            return;
        }
        if let Value::Object(fields) = &mut self.document {
            let is_fit = lines.iter().all(|line| line.passed);
            fields.insert("power_client".to_owned(), json!(lines));
            if !is_fit {
                fields.insert("fit".to_owned(), json!(false));
            }
        }
        self.text
            .push_str(&format!("\n\npower client\n{}", tables::preflight(lines)));
    }

    /// Returns the exit code: whether the device is fit to measure.
    fn code(&self) -> ExitCode {
        match self.document.get("fit").and_then(Value::as_bool) {
            Some(true) => ExitCode::Success,
            _ => ExitCode::Negative,
        }
    }
}

/// Lets a device examine itself.
///
/// # Errors
/// Returns an error when the device is offline, refuses, or does not answer in time.
pub(super) fn examine(
    device: &DeviceRow,
    longest: Duration,
    store: &Store,
) -> Result<DeviceFindings, Failure> {
    if !device.online {
        return Err(
            Failure::could_not(format!("{} is offline", device.name)).hint(format!(
                "it was last seen at {}; `regatta-agent doctor` on the device needs no coordinator",
                wording::time(&device.last_seen)
            )),
        );
    }
    let question = store.examinations().request(&device.id)?;
    let begun = Instant::now();
    loop {
        match store.examinations().answer(question)? {
            Some(Examination::Found { json, text }) => {
                let document = serde_json::from_str(&json).map_err(|e| {
                    Failure::could_not(format!("the answer of {} is not JSON: {e}", device.name))
                })?;
                let text = text.trim_end().to_owned();
                return Ok(DeviceFindings { document, text });
            }
            Some(Examination::Refused(why)) => {
                return Err(
                    Failure::could_not(format!("{} refused the examination: {why}", device.name)).hint(
                        format!(
                            "its agent is `{}`; upgrade it (docs/headless.md, Upgrade)",
                            device.agent
                        ),
                    ),
                );
            }
            None if begun.elapsed() >= longest => return Err(no_answer(store, device)?),
            None => std::thread::sleep(LOOK),
        }
    }
}

fn no_answer(store: &Store, device: &DeviceRow) -> Result<Failure, Failure> {
    let runs = store.runs().open()?;
    let on = [RunPhase::Preparing, RunPhase::Ready, RunPhase::Running];
    let busy = runs
        .iter()
        .find(|run| run.device == device.id && on.contains(&run.state.phase));
    let failure = Failure::could_not(format!("{} did not answer in time", device.name));
    Ok(match busy {
        Some(run) => failure.hint(format!(
            "run {} is executing, and the device answers between runs; --timeout waits longer",
            run.id
        )),
        None => failure.hint("`regatta device list` shows whether it is online"),
    })
}
