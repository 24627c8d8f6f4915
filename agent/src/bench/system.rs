//! The values that `bench` takes from a system's file. Settings of the command line and values of the conf files take
//! precedence. `regatta_catalogue::system` selects the file.

use std::collections::BTreeMap;

use anyhow::anyhow;
use regatta_board::FactsReader;
use regatta_catalogue::{
    catalogue::SystemCatalogue,
    system::{SystemRequest, SystemValues},
};
use regatta_loadgen::request::ConfText;
use regatta_loadgen_conf::Conf;
use regatta_types::documents::DeviceFacts;

use crate::{exit::Failure, gpus};

/// The name that selects this board's own system.
const AUTO: &str = "auto";

/// Returns the named system's values for a run.
///
/// # Errors
/// [`Failure`] when the system does not exist, its file does not parse, or it has no values for the run.
pub(crate) fn chosen(name: &str, request: &SystemRequest<'_>) -> Result<SystemValues, Failure> {
    let systems = SystemCatalogue::read(None)?;
    if name != AUTO {
        return Ok(systems.named(name, AUTO, request)?);
    }
    let facts = FactsReader::of_this_machine().read();
    let module = facts.module.clone();
    let facts = || DeviceFacts {
        gpus: gpus::read_gpus(),
        ..facts
    };
    systems.of_device(module.as_deref(), facts, request).ok_or_else(|| {
        Failure::usage(anyhow!(
            "no system file is for this board, and the generic rule is only for tensorrt; hint: leave out --system"
        ))
    })
}

/// Returns the conf with its missing lines added.
///
/// # Errors
/// [`Failure`] when the conf does not parse.
pub(crate) fn conf_over(
    lines: &BTreeMap<String, String>,
    model: &str,
    request: &SystemRequest<'_>,
    conf: ConfText,
) -> Result<ConfText, Failure> {
    let own = Conf::parse(&conf.name, &conf.text).map_err(Failure::usage)?;
    let scenario = request.scenario.as_str();
    let mut text = conf.text;
    for (key, value) in lines {
        if own.lookup(model, scenario, key).is_none() {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("{model}.{scenario}.{key} = {value}\n"));
        }
    }
    Ok(ConfText::new(conf.name, text))
}
