//! `doctor`: describes this board and judges whether it is fit to measure, with a command that fixes each finding. It
//! does not change anything and needs no rights.

mod description;
mod examination;
mod findings;
mod text;

use std::{
    io::{self, Write as _},
    path::Path,
};

use anyhow::Context as _;
use regatta_text::{EscapedText, escape_json};
use regatta_types::documents::GpuFacts;

use self::{
    description::SystemDescription,
    examination::{Examination, Severity},
};
use crate::{
    cli::{DoctorArgs, Format},
    exit::{self, Failure},
    facts::{
        board::Board, gpu, power::Power, root::Root, sensors::Sensors, software::Software, system::System,
    },
};

/// Schema number of the JSON output.
const SCHEMA: u32 = 1;

/// Examines the board below `root`. The caller provides the GPUs, because files do not describe them.
fn examination_of(root: &Root, gpus: Option<Vec<GpuFacts>>) -> Examination {
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
/// Examines the board below `root` with the given GPUs. Returns the results as JSON and as text.
pub(crate) fn examine(root: &Path, gpus: &[GpuFacts]) -> io::Result<(String, String)> {
    let examination = examination_of(&Root::new(root), Some(gpus.to_vec()));
    let json = serde_json::to_string(&examination)?;
    let mut text = Vec::new();
    text::print(&examination, &mut text)?;
    Ok((json, String::from_utf8_lossy(&text).into_owned()))
}

/// Examines the board and prints the results.
///
/// # Errors
/// When `root` is not a directory (2), or standard output cannot be written (3).
pub(crate) fn doctor(args: &DoctorArgs) -> Result<u8, Failure> {
    if !args.root.is_dir() {
        let why = anyhow::anyhow!(
            "{} is no directory: --root names a system's root",
            args.root.display()
        );
        return Err(Failure::usage(why));
    }
    let gpus = (args.root == Path::new("/")).then(gpu::probe);
    let examination = examination_of(&Root::new(&args.root), gpus);
    let mut out = io::stdout().lock();
    let printed = if args.json || args.format == Format::Json {
        serde_json::to_string_pretty(&examination)
            .map_err(io::Error::from)
            .and_then(|document| writeln!(out, "{}", escape_json(&document)))
    } else {
        text::print(&examination, &mut EscapedText(out))
    };
    printed.context("the findings cannot be printed")?;
    Ok(if examination.fit { exit::OK } else { exit::NO })
}
