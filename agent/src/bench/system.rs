//! What `bench` takes from a system's file: settings under those of the command line, and expected rates under those of the
//! conf files.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, anyhow};
use regatta_loadgen::request::ConfText;
use regatta_rules::{
    conf::Conf,
    documents::DeviceFacts,
    known,
    system::{BoardFacts, Chosen, System, Wanted, generic},
};

use crate::{
    digest,
    exit::Failure,
    facts::{FactsReader, gpu},
};

/// The word for this board's own system.
const AUTO: &str = "auto";

/// What the named system has for a run.
///
/// # Errors
/// [`Failure`] when there is no such system, its file does not read, or it has nothing for the run.
pub(crate) fn chosen(given: &str, wanted: &Wanted<'_>) -> Result<Chosen, Failure> {
    if given == AUTO {
        return of_this_board(wanted);
    }
    let (file, text) = if given.ends_with(".toml") {
        let text = fs::read_to_string(Path::new(given));
        (
            given.to_owned(),
            text.with_context(|| format!("cannot read {given}"))?,
        )
    } else {
        let found = known::system_texts().find(|(name, _)| *name == given);
        let (name, text) = found.ok_or_else(|| Failure::usage(unknown(given)))?;
        (built_in(name), text.to_owned())
    };
    in_file(&file, &text, wanted)?.ok_or_else(|| {
        let (benchmark, scenario, engine) = (&wanted.benchmark.name, wanted.scenario, wanted.engine);
        Failure::usage(anyhow!(
            "{file} has nothing for {benchmark} {scenario} on {engine}"
        ))
    })
}

/// By this board's module; by the generic rule where no file is for it.
fn of_this_board(wanted: &Wanted<'_>) -> Result<Chosen, Failure> {
    let facts = FactsReader::of_this_machine().read();
    for (name, text) in known::system_texts() {
        let system = System::from_toml(text).map_err(Failure::could_not)?;
        let is_this = facts
            .module
            .as_deref()
            .is_some_and(|module| system.is_for(module));
        if is_this && let Some(chosen) = in_file(&built_in(name), text, wanted)? {
            return Ok(chosen);
        }
    }
    let facts = DeviceFacts {
        gpus: gpu::ask_here(),
        ..facts
    };
    generic(&BoardFacts::from(&facts), wanted.benchmark, wanted.scenario)
        .choose(wanted, "generic", None)
        .ok_or_else(|| {
            Failure::usage(anyhow!(
                "no system's file is for this board, and the generic rule is for tensorrt alone: leave out --system"
            ))
        })
}

fn in_file(file: &str, text: &str, wanted: &Wanted<'_>) -> Result<Option<Chosen>, Failure> {
    let system = System::from_toml(text)
        .with_context(|| file.to_owned())
        .map_err(Failure::usage)?;
    Ok(system.choose(wanted, file, Some(&digest::of_bytes(text.as_bytes()))))
}

fn built_in(name: &str) -> String {
    format!("configs/systems/{name}.toml")
}

fn unknown(given: &str) -> anyhow::Error {
    let known: Vec<&str> = known::system_texts().map(|(name, _)| name).collect();
    anyhow!(
        "unknown system `{given}`; known are {}, {AUTO}, or the path of a file that ends in .toml",
        known.join(", ")
    )
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
