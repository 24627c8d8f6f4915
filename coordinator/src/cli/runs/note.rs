//! `regatta runs note`: a user's note on a run.

use super::super::Context;
use crate::exit::Failure;
use regatta_lab_store::Store;
use regatta_lab_views::lookup;

/// Flags of `runs note`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta runs note last \"fan unplugged\"
      remember the circumstances of the newest run
  regatta runs note last --remove
      remove its note")]
pub(in crate::cli) struct NoteArgs {
    /// The run's id, its beginning or end, or `last`
    run: String,
    /// The note, which replaces an earlier one [default: print the note]
    #[arg(conflicts_with = "remove")]
    text: Option<String>,
    /// Remove the note
    #[arg(long)]
    remove: bool,
}

/// Sets, removes or prints the note.
pub(super) fn run(args: &NoteArgs, context: &Context, store: &Store) -> Result<(), Failure> {
    let row = lookup::run(store, &args.run)?;
    let note = args
        .text
        .as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty());
    let note = match (note, args.remove) {
        (None, false) => row.note.as_deref(),
        _ => {
            store.runs().set_note(row.id, note)?;
            note
        }
    };
    context.print(&serde_json::json!({ "run": row.id, "note": note }), || {
        note.map_or_else(|| format!("run {} has no note", row.id), str::to_owned)
    })?;
    Ok(())
}
