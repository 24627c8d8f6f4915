//! Templates of system descriptions (`systems/`): the known properties of a board or host.
//!
//! Values from the device, its doctor or the operator override a template. Templates do not contain the submitter, the
//! availability or the software.

use regatta_catalogue::known;
use regatta_types::documents::DeviceFacts;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A template and the devices that it describes.
#[derive(Debug, Deserialize)]
pub(super) struct Template {
    /// The template's file name without the extension.
    #[serde(skip)]
    pub(super) name: &'static str,
    #[serde(rename = "_template")]
    rule: MatchRule,
    /// Fields of the system description.
    #[serde(flatten)]
    pub(super) fields: Map<String, Value>,
}

/// The devices that a template describes. A template without modules is only used if the operator names it.
#[derive(Debug, Deserialize)]
struct MatchRule {
    /// Part numbers of the compute module, as in the device tree.
    #[serde(default)]
    modules: Vec<String>,
    /// A part of the board's model name, for a module that is also used on other carrier boards.
    #[serde(default)]
    model: Option<String>,
}

impl MatchRule {
    fn fits(&self, facts: &DeviceFacts) -> bool {
        let module = facts.module.as_ref();
        let model = self.model.as_ref();
        module.is_some_and(|module| self.modules.contains(module))
            && model.is_none_or(|model| facts.model.contains(model.as_str()))
    }
}

/// Why no template can be chosen.
#[derive(Debug, thiserror::Error)]
pub(super) enum TemplateError {
    #[error("the built-in template {name} cannot be parsed: {source}")]
    BuiltIn {
        name: &'static str,
        source: serde_json::Error,
    },
    #[error("there is no template `{name}`; there are {known}")]
    Unknown { name: String, known: String },
}

/// Returns the template that the operator names, else the most specific one for the device.
pub(super) fn choose(named: Option<&str>, facts: &DeviceFacts) -> Result<Option<Template>, TemplateError> {
    let mut templates = Vec::new();
    for (name, text) in known::description_texts() {
        let read = serde_json::from_str::<Template>(text);
        let read = read.map_err(|source| TemplateError::BuiltIn { name, source })?;
        templates.push(Template { name, ..read });
    }
    let Some(named) = named else {
        let matching = templates.into_iter().filter(|template| template.rule.fits(facts));
        return Ok(matching.max_by_key(|template| template.rule.model.is_some()));
    };
    let names: Vec<&str> = templates.iter().map(|template| template.name).collect();
    let unknown = || TemplateError::Unknown {
        name: named.to_owned(),
        known: names.join(", "),
    };
    let found = templates.into_iter().find(|template| template.name == named);
    found.map(Some).ok_or_else(unknown)
}
