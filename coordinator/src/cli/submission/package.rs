//! `regatta submission pack` and `unpack`: the encrypted package that is handed in, and back.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, BufRead as _, BufReader, Read as _},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use regatta_submission_stage::pack::{self, PackError, PackFinding, Password, UnpackLimits};
use regatta_text::escape;
use regatta_types::ExitCode;
use rustix::fs::{OFlags, fcntl_setfl};
use serde_json::json;

use super::{super::Context, inputs::expect_tree};
use crate::exit::{CommandResult, Failure};

/// Flags of `submission pack`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  regatta submission pack --input submission --submitter Example --output packed
      write packed/mlperf_submission_Example.tar.gz; openssl prompts for the password")]
pub(crate) struct PackArgs {
    /// The submission's root directory, with closed/, open/ or network/
    #[arg(long, value_name = "TREE")]
    input: PathBuf,
    /// The submitter's name, as in the package's file names
    #[arg(long, value_name = "NAME")]
    submitter: String,
    /// The directory for mlperf_submission_NAME.tar.gz and .sha1
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Replace an existing package
    #[arg(long)]
    force: bool,
    /// A file whose first line is the password [default: openssl prompts on the terminal]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

/// Flags of `submission unpack`.
#[derive(Debug, clap::Args)]
pub(crate) struct UnpackArgs {
    /// The directory with mlperf_submission_NAME.tar.gz and .sha1
    #[arg(long, value_name = "DIR")]
    input: PathBuf,
    /// The submitter's name, as in the package's file names
    #[arg(long, value_name = "NAME")]
    submitter: String,
    /// The new directory for the tree
    #[arg(long, value_name = "NEWTREE")]
    output: PathBuf,
    /// A file whose first line is the password [default: openssl prompts on the terminal]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Maximum unpacked size in GiB
    #[arg(long, value_name = "GIB", default_value_t = UnpackLimits::default().bytes >> 30)]
    max_gib: u64,
    /// Maximum number of files and directories in the package
    #[arg(long, value_name = "COUNT", default_value_t = UnpackLimits::default().entries)]
    max_entries: u64,
}

pub(super) fn pack(args: &PackArgs, context: &Context) -> CommandResult {
    expect_tree(&args.input)?;
    expect_submitter(&args.input, &args.submitter)?;
    if let Some(package) = pack::existing(&args.output, &args.submitter).map_err(failure)?
        && !args.force
    {
        return Err(Failure::misuse(format!("{} exists already", package.display()))
            .hint("name another directory with --output, or replace it with --force"));
    }
    let password = password(args.password_file.as_deref())?;
    let package = match pack::pack(&args.input, &args.submitter, &args.output, &password) {
        Ok(package) => package,
        Err(PackError::Unclean { findings }) => return refused(findings, context),
        Err(error) => return Err(failure(error)),
    };
    let document = json!({
        "tarball": package.tarball, "sha1_file": package.sha1_file, "sha1": package.sha1,
        "bytes": package.bytes, "files": package.files, "findings": [],
    });
    context.print(&document, || {
        format!(
            "{} files in {} ({} bytes){}\nSHA-1 {} in {}",
            package.files,
            package.tarball.display(),
            package.bytes,
            if args.input.join("REHEARSAL.md").exists() {
                ", without REHEARSAL.md"
            } else {
                ""
            },
            package.sha1,
            package.sha1_file.display()
        )
    })?;
    Ok(ExitCode::Success)
}

/// Checks that a tree has a directory of the submitter, if it has one of any.
fn expect_submitter(tree: &Path, submitter: &str) -> Result<(), Failure> {
    let divisions = ["closed", "open", "network"].map(|division| fs::read_dir(tree.join(division)));
    let entries = divisions.into_iter().flatten().flatten().flatten();
    let directories = entries.filter(|entry| entry.path().is_dir());
    let found: BTreeSet<String> = directories
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    if found.is_empty() || found.contains(submitter) {
        return Ok(());
    }
    let found: Vec<_> = found.iter().map(|name| escape(name)).collect();
    Err(
        Failure::misuse(format!("{} has no submission of `{submitter}`", tree.display()))
            .hint(format!("it has {}", found.join(", "))),
    )
}

pub(super) fn unpack(args: &UnpackArgs, context: &Context) -> CommandResult {
    let password = password(args.password_file.as_deref())?;
    let limits = UnpackLimits {
        bytes: args.max_gib.saturating_mul(1 << 30),
        entries: args.max_entries,
    };
    let files =
        pack::unpack(&args.input, &args.submitter, &args.output, &password, limits).map_err(failure)?;
    context.print(&json!({ "files": files, "output": args.output }), || {
        format!("{files} files in {}", args.output.display())
    })?;
    Ok(ExitCode::Success)
}

/// Prints every reason why the tree cannot be uploaded.
fn refused(findings: Vec<PackFinding>, context: &Context) -> CommandResult {
    let sentences: Vec<_> = findings.iter().map(ToString::to_string).collect();
    context.print(&json!({ "tarball": null, "findings": sentences }), || {
        PackError::Unclean { findings }.to_string()
    })?;
    Ok(ExitCode::Negative)
}

/// Bytes of a password file that are read.
const MAX_PASSWORD: u64 = 4096;

fn password(file: Option<&Path>) -> Result<Password, Failure> {
    let Some(file) = file else {
        return Ok(Password::Prompt);
    };
    let text = read_password(file).map_err(|error| {
        anyhow::Error::new(error).context(format!("cannot read the password file {}", file.display()))
    })?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(Password::Text(line.to_owned())),
        _ => Err(Failure::misuse(format!(
            "the first line of {} is empty, but must be the password",
            file.display()
        ))),
    }
}

/// Reads the first line of a file, or of a pipe from a password manager. A pipe without a writer is an error and not
/// waited for.
fn read_password(path: &Path) -> io::Result<String> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let mut input = BufReader::new((&file).take(MAX_PASSWORD));
    let mut line = Vec::new();
    match input.read_until(b'\n', &mut line) {
        // Somebody has the pipe open for writing: from here on the bytes are waited for.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            fcntl_setfl(&file, OFlags::empty())?;
            input.read_until(b'\n', &mut line)?;
        }
        read => drop(read?),
    }
    if line.is_empty() && file.metadata()?.file_type().is_fifo() {
        return Err(io::Error::other("it is a pipe without a writer"));
    }
    String::from_utf8(line).map_err(io::Error::other)
}

fn failure(error: PackError) -> Failure {
    Failure::of_kind(error.kind(), error)
}
