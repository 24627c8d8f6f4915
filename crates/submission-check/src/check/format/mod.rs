//! Formats reports for programs, spreadsheets and people.

mod csv;
mod group;
mod html;
mod json;
mod number;
mod text;

pub use csv::{csv_field, strict_csv};
pub use html::{official_html, strict_html};
pub use json::{official_json, strict_json};
pub use text::{official_text, strict_text};
