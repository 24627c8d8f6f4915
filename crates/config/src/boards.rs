//! The built-in modelled boards (`configs/simulated-boards`), as texts. The schedule crate parses them.

use crate::packed::Packed;

static BOARDS: Packed = Packed::new(include_bytes!(concat!(env!("OUT_DIR"), "/boards")));

/// Returns names and file texts of the modelled boards, ordered by name.
pub fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    BOARDS
        .files()
        .iter()
        .map(|file| (file.name.as_str(), file.text.as_str()))
}
