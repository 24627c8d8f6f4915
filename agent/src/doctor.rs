//! `doctor`: prints what `regatta_board` finds on this board and whether it is fit to measure, with a command that fixes
//! each finding. It lists the libraries and engines that the agent finds. It does not change anything and needs no rights.

mod installed;

use std::{
    env,
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use regatta_board::{
    Root,
    examination::{self, Examination},
};
use regatta_text::{EscapedText, escape_json};
use regatta_types::{ExitCode, documents::GpuFacts};
use serde::Serialize;

use self::installed::InstalledParts;
use crate::{
    cli::{DoctorArgs, Format},
    exit::Failure,
    gpus,
};

/// The complete report.
#[derive(Serialize)]
struct DoctorReport {
    #[serde(flatten)]
    examination: Examination,
    /// `None` for another system's root.
    #[serde(skip_serializing_if = "Option::is_none")]
    installed: Option<InstalledParts>,
}

impl DoctorReport {
    /// Examines the board below `root`. `scratch` is where runs without assets find their files.
    fn of(root: &Path, gpus: Option<Vec<GpuFacts>>, scratch: Option<&Path>) -> Self {
        Self {
            examination: examination::examine(&Root::new(root), gpus),
            installed: is_this_system(root).then(|| InstalledParts::find(scratch)),
        }
    }

    fn write_text(&self, to: &mut impl Write) -> io::Result<()> {
        examination::write_text(&self.examination, to)?;
        self.installed
            .as_ref()
            .map_or(Ok(()), |installed| installed.write_text(to))
    }
}

fn is_this_system(root: &Path) -> bool {
    root == Path::new("/")
}

/// Examines the board below `root` with the given GPUs and scratch directory. Returns the results as JSON and as text.
pub(crate) fn examine(
    root: &Path,
    gpus: &[GpuFacts],
    scratch: Option<&Path>,
) -> io::Result<(String, String)> {
    let report = DoctorReport::of(root, Some(gpus.to_vec()), scratch);
    let json = serde_json::to_string(&report)?;
    let mut text = Vec::new();
    report.write_text(&mut text)?;
    Ok((json, String::from_utf8_lossy(&text).into_owned()))
}

/// Examines the board and prints the results.
///
/// # Errors
/// When `root` is not a directory (2), or standard output cannot be written (3).
pub(crate) fn doctor(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    if !args.root.is_dir() {
        let why = anyhow::anyhow!(
            "{} is not a directory; hint: --root is the root directory of a system",
            args.root.display()
        );
        return Err(Failure::usage(why));
    }
    let gpus = is_this_system(&args.root).then(|| gpus::probe().0);
    let scratch = env::var_os("MLPERF_SCRATCH_PATH").map(PathBuf::from);
    let report = DoctorReport::of(&args.root, gpus, scratch.as_deref());
    let mut out = io::stdout().lock();
    let printed = if args.json || args.format == Format::Json {
        serde_json::to_string_pretty(&report)
            .map_err(io::Error::from)
            .and_then(|document| writeln!(out, "{}", escape_json(&document)))
    } else {
        report.write_text(&mut EscapedText(out))
    };
    printed.context("the findings cannot be printed")?;
    Ok(if report.examination.is_fit() {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}
