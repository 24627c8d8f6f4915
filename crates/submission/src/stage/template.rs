//! Templates of system descriptions (`systems/`): what is known of a board or host before anybody asks it. What the device, its
//! doctor or the operator says wins over a template. Who submits, whether the system is available, and the software are not in it.

use regatta_config::known;
use regatta_types::documents::DeviceFacts;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A template.
#[derive(Debug, Deserialize)]
pub(super) struct Template {
    /// Its file's name without the ending.
    #[serde(skip)]
    pub(super) name: &'static str,
    #[serde(rename = "_template")]
    rule: MatchRule,
    /// Fields of the system description.
    #[serde(flatten)]
    pub(super) fields: Map<String, Value>,
}

/// The devices that a template describes. Without modules it describes those that the operator says.
#[derive(Debug, Deserialize)]
struct MatchRule {
    /// Part numbers of the compute module, as the device tree has them.
    #[serde(default)]
    modules: Vec<String>,
    /// Words in the board's own name, for a module that also sits on other carriers.
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

/// The template that the operator names, else the closest one for the device; the error is a sentence.
pub(super) fn choose(named: Option<&str>, facts: &DeviceFacts) -> Result<Option<Template>, String> {
    let mut templates = Vec::new();
    for (name, text) in known::description_texts() {
        let read = serde_json::from_str::<Template>(text);
        let read = read.map_err(|error| format!("the built-in template {name} does not read: {error}"))?;
        templates.push(Template { name, ..read });
    }
    let Some(named) = named else {
        let matching = templates.into_iter().filter(|template| template.rule.fits(facts));
        return Ok(matching.max_by_key(|template| template.rule.model.is_some()));
    };
    let names: Vec<&str> = templates.iter().map(|template| template.name).collect();
    let unknown = format!("there is no template `{named}`; there are {}", names.join(", "));
    let found = templates.into_iter().find(|template| template.name == named);
    found.map(Some).ok_or(unknown)
}
