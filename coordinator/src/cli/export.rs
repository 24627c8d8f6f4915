//! `regatta runs export`: copies a run's spec, record and files byte for byte, for verification elsewhere. It leaves a complete copy or
//! none. It does not judge the run, as [`super::verify`] does.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use regatta_types::documents::document_name;
use serde_json::json;

use regatta_fsutil::hash::{hex, sha256_hex, sha256_of_file};

use super::{
    Context as CommandContext,
    context::{Format, say},
};
use crate::exit::Failure;
use regatta_lab_runs::MANIFEST;
use regatta_lab_store::{RunRow, Store, workspace::Workspace};
use regatta_lab_views::{lookup, wording};

/// How to check a copy.
const CHECK_ADVICE: &str = "check them there with `sha256sum -c SHA256SUMS`";

/// A file to copy.
struct Copied {
    /// Its path in the copy.
    name: String,
    /// Its path in the workspace.
    from: PathBuf,
    /// The SHA-256 that the device stated, in hexadecimal. `None` for files that the coordinator wrote.
    stated: Option<String>,
}

/// Flags of `runs export`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta runs export last --output exported
      the newest run; `regatta runs show exported` and `runs verify exported` read it on any machine
  regatta runs export --campaign weekend --output weekend
      every recorded run of a campaign, in a directory each")]
pub(super) struct ExportArgs {
    /// Run ids, their beginnings or ends, or `last`; several get a directory each below DIR
    #[arg(value_name = "RUN", required_unless_present = "campaign")]
    runs: Vec<String>,
    /// The recorded runs of this campaign, or of a variant of it: NAME/VARIANT
    #[arg(long, value_name = "CAMPAIGN", conflicts_with = "runs")]
    campaign: Option<String>,
    /// The directory to create
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
}

/// Exports the runs.
pub(super) fn run(
    args: &ExportArgs,
    context: &CommandContext,
    workspace: &Workspace,
    store: &Store,
) -> Result<(), Failure> {
    let rows = match &args.campaign {
        None => lookup::runs(store, &args.runs)?,
        Some(name) => {
            let campaign = lookup::campaign_runs(store, name)?;
            let mut rows = store.runs().all()?;
            rows.retain(|row| row.recorded.is_some() && campaign.contains(row));
            if rows.is_empty() {
                return Err(Failure::misuse(format!("campaign {name} has no recorded run")));
            }
            rows
        }
    };
    let is_alone = args.campaign.is_none() && rows.len() == 1;
    let mut exported = Vec::new();
    for row in &rows {
        let directory = match is_alone {
            true => args.output.clone(),
            false => args.output.join(row.id.to_string()),
        };
        for line in export(workspace, store, row, &directory)? {
            if context.format == Format::Text && (is_alone || !line.ends_with(CHECK_ADVICE)) {
                say(&line)?;
            }
        }
        exported.push(json!({ "run": row.id, "directory": directory }));
    }
    if is_alone && context.format == Format::Text {
        return Ok(());
    }
    context.print(&json!({ "exported": exported }), || {
        format!(
            "exported {} to {}",
            wording::count_of_runs(exported.len()),
            args.output.display()
        )
    })?;
    Ok(())
}

/// Exports a recorded run: `spec.json`, `record.json`, `files/`, the device's public key, and `SHA256SUMS` for `sha256sum -c`.
/// Returns what to tell the user about the copy.
pub(super) fn export(
    workspace: &Workspace,
    store: &Store,
    row: &RunRow,
    out: &Path,
) -> Result<Vec<String>, Failure> {
    if row.recorded.is_none() {
        return Err(Failure::could_not(format!(
            "run {} is {}: it has no record yet",
            row.id,
            row.shown_phase().as_str()
        ))
        .hint("export it once it is done"));
    }
    if out.exists() {
        return Err(Failure::misuse(format!(
            "{} exists already: name a new directory",
            out.display()
        )));
    }
    let dir = workspace.run(row.id);
    let own = |name: &str, from| Copied {
        name: name.to_owned(),
        from,
        stated: None,
    };
    let mut files = vec![
        own(document_name::SPEC, dir.spec()),
        own(document_name::RECORD, dir.record()),
    ];
    let mut left_out = Vec::new();
    for stream in store.streams().of_run(row.id)? {
        if stream.is_complete {
            files.push(Copied {
                name: format!("files/{}", stream.name),
                from: dir.file(&stream.name),
                stated: stream.stated_sha256,
            });
        } else {
            left_out.push(format!("{} was not received completely; skipped", stream.name));
        }
    }
    let key = store.devices().public_key(&row.device)?;
    if key.is_none() {
        left_out
            .push("the device's public key is not known: the copy's signature cannot be checked".to_owned());
    }
    let copied = copy(&files, key.as_ref(), out).map_err(|error| undo(error, &files, row, out))?;
    left_out.push(format!("{copied} files in {}; {CHECK_ADVICE}", out.display()));
    Ok(left_out)
}

fn copy(files: &[Copied], key: Option<&[u8; 32]>, out: &Path) -> anyhow::Result<usize> {
    let directory = out.join("files");
    fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let mut manifest = String::new();
    if let Some(key) = key {
        // With the key, anyone can verify the copy with `regatta runs verify DIR`.
        let name = document_name::DEVICE_KEY;
        let text = format!("{}\n", hex(key));
        write(&out.join(name), &text)?;
        manifest.push_str(&format!("{}  {name}\n", sha256_hex(text.as_bytes())));
    }
    for Copied { name, from, stated } in files {
        let to = out.join(name);
        fs::copy(from, &to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
        let hash = |path: &Path| {
            let hashed = sha256_of_file(path).with_context(|| format!("cannot read {}", path.display()));
            hashed.map(|hash| hash.hex())
        };
        let (copied, original) = (hash(&to)?, hash(from)?);
        if stated.as_ref().is_some_and(|stated| *stated != original) {
            anyhow::bail!("{} has changed since the device delivered it", from.display());
        }
        if copied != original {
            anyhow::bail!(
                "{} differs from the file that was copied: the disk is faulty",
                to.display()
            );
        }
        manifest.push_str(&format!("{copied}  {name}\n"));
    }
    write(&out.join(MANIFEST), &manifest)?;
    Ok(files.len())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Removes an incomplete copy that this command created.
fn undo(error: anyhow::Error, files: &[Copied], row: &RunRow, out: &Path) -> Failure {
    let cause = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let advice = match cause {
        Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            let sizes = files.iter().filter_map(|file| fs::metadata(&file.from).ok());
            let bytes: u64 = sizes.map(|file| file.len()).sum();
            format!(
                "name a directory on a disk with {} MiB free",
                bytes.div_ceil(1 << 20)
            )
        }
        _ => format!(
            "`regatta runs verify {}` lists the files that are unchanged since delivery",
            row.id
        ),
    };
    let left = match fs::remove_dir_all(out) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            format!(
                "; an incomplete copy is left in {}, which cannot be removed: {error}",
                out.display()
            )
        }
        _ => String::new(),
    };
    Failure::from(error).hint(format!("the run itself is untouched; {advice}{left}"))
}
