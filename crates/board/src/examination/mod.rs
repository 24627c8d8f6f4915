//! The report of `doctor` about a board, as JSON and as text: its facts, the findings that make a measurement unrepresentative,
//! and a draft of the official system description. `findings.rs` judges the facts.

mod description;
mod findings;
mod report;
mod text;

use regatta_types::documents::GpuFacts;

use self::{description::SystemDescription, report::Severity};
pub use self::{report::Examination, text::write_text};
use crate::{board::Board, power::Power, root::Root, sensors::Sensors, software::Software, system::System};

/// Schema number of the JSON output.
const SCHEMA: u32 = 1;

/// Examines the board below `root`. The caller provides the GPUs, because files do not describe them; `None` if CUDA was
/// not queried.
pub fn examine(root: &Root, gpus: Option<Vec<GpuFacts>>) -> Examination {
    let (board, software, system) = (Board::read(root), Software::read(root), System::read(root));
    let power = Power::read(root);
    let mut examination = Examination {
        schema: SCHEMA,
        fit: false,
        findings: Vec::new(),
        system_description: SystemDescription::draft(&board, &software, &power, &system),
        power,
        sensors: Sensors::read(root),
        board,
        gpus,
        software,
        system,
    };
    examination.findings = findings::of(&examination);
    examination.fit = examination
        .findings
        .iter()
        .all(|finding| finding.severity != Severity::Unfit);
    examination
}
