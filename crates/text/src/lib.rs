//! Text for users: error chains, durations, and untrusted text that is escaped for terminals, logs, JSON and shells.
//!
//! The crate only formats text. It reads and writes nothing.

mod error_chain;
mod escaped_output;
mod escaped_text;
mod figure;
mod human_duration;
mod nearest;
mod shell_word;
mod significant;
mod wrapped_text;

pub use error_chain::ErrorChain;
pub use escaped_output::{EscapedLog, EscapedText};
pub use escaped_text::{Escaped, escape, escape_json, escape_lines, escape_start};
pub use figure::figure;
pub use human_duration::{HumanDuration, InvalidDuration};
pub use nearest::nearest;
pub use shell_word::{quote_for_shell, quote_for_shell_if_needed};
pub use significant::significant;
pub use wrapped_text::wrap;
