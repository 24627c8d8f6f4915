//! The built-in drivers of model servers (`configs/servers`), as texts. The engine parses them.

use regatta_types::{
    benchmark::{Model, Response},
    engine_settings::{EngineSettingError, EngineSettings, Setting},
};

use crate::packed::Packed;

static SERVERS: Packed = Packed::new(include_bytes!(concat!(env!("OUT_DIR"), "/servers")));

/// Returns names and file texts of the drivers, ordered by name.
pub fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    SERVERS
        .files()
        .iter()
        .map(|file| (file.name.as_str(), file.text.as_str()))
}

/// Returns whether a driver's name is the path of a file on the device.
#[must_use]
pub fn is_path(name: &str) -> bool {
    name.contains('/')
}

/// What a server computes for LoadGen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServedWork {
    /// The outputs of a network.
    Networks,
    /// The tokens that follow a prompt.
    Prompts,
    /// The transcript of speech.
    Speech,
}

impl ServedWork {
    /// Returns what a server must compute for the responses of a model.
    #[must_use]
    pub const fn of(model: &Model) -> Self {
        match model.response {
            Response::Tokens => Self::Prompts,
            Response::Transcript => Self::Speech,
            _ => Self::Networks,
        }
    }

    /// The line that begins the driver's table.
    const fn table(self) -> &'static str {
        match self {
            Self::Networks => "\n[kserve]\n",
            Self::Prompts => "\n[generate]\n",
            Self::Speech => "\n[transcribe]\n",
        }
    }
}

/// Returns the text of a built-in driver.
fn text(name: &str) -> Option<&'static str> {
    let mut texts = texts();
    texts.find(|(known, _)| *known == name).map(|(_, text)| text)
}

/// Returns whether LoadGen can use the server of a built-in driver. Of a user's file, only the device knows it.
#[must_use]
pub fn is_for_loadgen(name: &str) -> bool {
    let work = [ServedWork::Networks, ServedWork::Prompts, ServedWork::Speech];
    text(name).is_none_or(|text| work.iter().any(|work| text.contains(work.table())))
}

/// Returns whether the server of a built-in driver computes the work. `None` of a user's file.
#[must_use]
pub fn computes(name: &str, work: ServedWork) -> Option<bool> {
    text(name).map(|text| text.contains(work.table()))
}

/// Returns whether the server of a built-in driver decodes with beam search. `None` of a user's file.
#[must_use]
pub fn has_beam_search(name: &str) -> Option<bool> {
    text(name).map(|text| text.contains("\nbeam_body = "))
}

/// Returns whether the server of a driver may take texts as prompts, which the benchmark's tokenizer makes of token ids.
#[must_use]
pub fn may_take_texts(name: &str) -> bool {
    text(name).is_none_or(|text| text.contains("{text}"))
}

/// Checks that the driver of the settings, if any, is a built-in one or the path of a file, which only the device can read, and that the
/// settings have an effect with it.
///
/// # Errors
/// [`EngineSettingError`] for the first setting that cannot be used.
pub fn check(settings: &EngineSettings) -> Result<(), EngineSettingError> {
    settings.check_server_address()?;
    let Some((server, setting)) = settings.server.as_ref().zip(Setting::named("server")) else {
        return Ok(());
    };
    if !is_path(server) && !texts().any(|(name, _)| name == server) {
        return Err(setting.refuse(server));
    }
    computes(server, ServedWork::Networks).map_or(Ok(()), |of_networks| check_work(settings, of_networks))
}

/// Checks that the settings have an effect with a driver whose server computes networks, or with one whose server does not.
///
/// # Errors
/// [`EngineSettingError::OtherDriver`] for the first setting without an effect.
pub fn check_work(settings: &EngineSettings, of_networks: bool) -> Result<(), EngineSettingError> {
    let (without_effect, drivers): (&[&str], _) = if of_networks {
        (
            &["server_context"],
            "servers that generate tokens, such as llama-cpp, keep tokens",
        )
    } else {
        (
            &EngineSettings::OF_MODEL_REPOSITORY,
            "a driver with `kserve`, such as triton, writes a model repository",
        )
    };
    let mut set = settings.iter().map(|(setting, _)| setting.name);
    set.find(|name| without_effect.contains(name))
        .map_or(Ok(()), |name| {
            Err(EngineSettingError::OtherDriver { name, drivers })
        })
}
