//! What `bench` takes from a system's file: settings under those of the command line, and expected rates under those of the
//! conf files. Which file applies is `regatta_config::system`'s choice.

use std::collections::BTreeMap;

use anyhow::anyhow;
use regatta_conf::Conf;
use regatta_config::system::{Chosen, SystemCatalogue, SystemChoiceError, Wanted};
use regatta_loadgen::request::ConfText;
use regatta_types::documents::DeviceFacts;

use crate::{
    exit::Failure,
    facts::{FactsReader, gpu},
};

/// The word for this board's own system.
const AUTO: &str = "auto";

/// The values that the named system has for a run.
///
/// # Errors
/// [`Failure`] when there is no such system, its file does not read, or it has nothing for the run.
pub(crate) fn chosen(given: &str, wanted: &Wanted<'_>) -> Result<Chosen, Failure> {
    let systems = SystemCatalogue::read(None).map_err(Failure::could_not)?;
    if given != AUTO {
        return systems.named(given, AUTO, wanted).map_err(|error| match error {
            SystemChoiceError::Io(..) => Failure::could_not(error),
            error => Failure::usage(error),
        });
    }
    let facts = FactsReader::of_this_machine().read();
    let module = facts.module.clone();
    let facts = || DeviceFacts {
        gpus: gpu::ask_here(),
        ..facts
    };
    systems.of_device(module.as_deref(), facts, wanted).ok_or_else(|| {
        Failure::usage(anyhow!(
            "no system's file is for this board, and the generic rule is for tensorrt alone: leave out --system"
        ))
    })
}

/// The conf with the lines that it does not have itself.
///
/// # Errors
/// [`Failure`] when the conf does not read.
pub(crate) fn conf_over(
    lines: &BTreeMap<String, String>,
    model: &str,
    wanted: &Wanted<'_>,
    conf: ConfText,
) -> Result<ConfText, Failure> {
    let own = Conf::parse(&conf.name, &conf.text).map_err(Failure::usage)?;
    let scenario = wanted.scenario.as_str();
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
