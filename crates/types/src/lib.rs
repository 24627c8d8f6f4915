//! MLPerf Inference's vocabulary, the settings of engines, and the documents of a run (request, evidence, record), as types.
//!
//! Agent and coordinator exchange these types. The crate reads no files, touches no network and starts no run.

pub mod accuracy_line;
pub mod assets;
pub mod benchmark;
mod broker_address;
pub mod documents;
mod engine_kind;
pub mod engine_settings;
mod error_kind;
mod exit_code;
mod ids;
pub mod layout;
mod mode;
pub mod npy;
pub mod response_units;
pub mod samples;
mod scenario;
mod submission_words;
mod unknown_word;

pub use broker_address::{BrokerAddress, BrokerAddressError};
pub use engine_kind::EngineKind;
pub use error_kind::ErrorKind;
pub use exit_code::ExitCode;
pub use ids::{DeviceId, InvalidName, RunId, StreamName};
pub use mode::Mode;
pub use scenario::Scenario;
pub use submission_words::{Category, Division};
pub use unknown_word::UnknownWord;
