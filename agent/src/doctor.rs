//! `doctor`: prints what `regatta_board` finds on this board and whether it is fit to measure, with a command that fixes
//! each finding. It does not change anything and needs no rights.

use std::{
    io::{self, Write as _},
    path::Path,
};

use anyhow::Context as _;
use regatta_board::{Root, examination};
use regatta_text::{EscapedText, escape_json};
use regatta_types::documents::GpuFacts;

use crate::{
    cli::{DoctorArgs, Format},
    exit::{self, Failure},
    gpus,
};

/// Examines the board below `root` with the given GPUs. Returns the results as JSON and as text.
pub(crate) fn examine(root: &Path, gpus: &[GpuFacts]) -> io::Result<(String, String)> {
    let examination = examination::examine(&Root::new(root), Some(gpus.to_vec()));
    let json = serde_json::to_string(&examination)?;
    let mut text = Vec::new();
    examination::write_text(&examination, &mut text)?;
    Ok((json, String::from_utf8_lossy(&text).into_owned()))
}

/// Examines the board and prints the results.
///
/// # Errors
/// When `root` is not a directory (2), or standard output cannot be written (3).
pub(crate) fn doctor(args: &DoctorArgs) -> Result<u8, Failure> {
    if !args.root.is_dir() {
        let why = anyhow::anyhow!(
            "{} is not a directory; hint: --root is the root directory of a system",
            args.root.display()
        );
        return Err(Failure::usage(why));
    }
    let gpus = (args.root == Path::new("/")).then(gpus::probe);
    let examination = examination::examine(&Root::new(&args.root), gpus);
    let mut out = io::stdout().lock();
    let printed = if args.json || args.format == Format::Json {
        serde_json::to_string_pretty(&examination)
            .map_err(io::Error::from)
            .and_then(|document| writeln!(out, "{}", escape_json(&document)))
    } else {
        examination::write_text(&examination, &mut EscapedText(out))
    };
    printed.context("the findings cannot be printed")?;
    Ok(if examination.is_fit() { exit::OK } else { exit::NO })
}
