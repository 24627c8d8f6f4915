//! The monolith's checks of files and names, independent of their contents. The first error ends the check of a submitter.

use std::fs;

use regatta_catalogue::round::{OfficialCheck, Trait};

use super::super::{Context, crash::Crash, path_fault::PathFault};
use crate::tree::{Kind, Node};

/// Describes files in the root that belong in a division.
pub(super) fn root(context: &Context<'_>) -> Option<String> {
    if !context.checker.looks_at(OfficialCheck::RootFiles) {
        return None;
    }
    let files = context.tree.files("").unwrap_or_default();
    let extra: Vec<_> = files
        .into_iter()
        .filter(|name| !name.ends_with(".md") && !name.ends_with(".pdf"))
        .collect();
    (!extra.is_empty()).then(|| format!("files outside the divisions: {}", extra.join(", ")))
}

/// Describes files in a division that belong to a submitter.
pub(super) fn division(context: &Context<'_>, division: &str) -> Option<String> {
    if !context.checker.looks_at(OfficialCheck::DivisionFiles) {
        return None;
    }
    let files = context.tree.files(division).unwrap_or_default();
    (!files.is_empty()).then(|| format!("files outside the submitters: {}", files.join(", ")))
}

/// Returns the first kind of error below a submitter's directory, with one path as an example.
///
/// The error is the reason why the official program ends: it reads the size of a broken link.
pub(super) fn submitter(context: &Context<'_>, home: &str) -> Result<Option<PathFault>, Crash> {
    let looks_at = |check| context.checker.looks_at(check);
    // Python's `os.walk` lists a link to a directory but does not enter it.
    let entries: Vec<&Node> = std::iter::once(context.tree.get(home))
        .flatten()
        .chain(context.tree.below_without_links(home))
        .collect();
    let directories = || {
        entries
            .iter()
            .copied()
            .filter(|node| node.kind == Kind::Directory && !node.link)
    };
    let files = || {
        entries
            .iter()
            .copied()
            .filter(|node| node.kind != Kind::Directory)
    };
    let any_link = context.checker.has(Trait::AnyLink);
    let rules: [(OfficialCheck, &str, Option<&Node>); 6] = [
        (
            OfficialCheck::Links,
            "is a symbolic link that the official checker refuses",
            files().find(|node| node.link && (any_link || looks_broken(context, node))),
        ),
        (
            OfficialCheck::LargeFiles,
            "is larger than the limit",
            files().find(|node| node.size > context.round.submission.max_file_bytes),
        ),
        (
            OfficialCheck::DotNames,
            "has a name that begins with a dot",
            directories()
                .chain(files())
                .find(|node| node.name().starts_with('.')),
        ),
        (
            OfficialCheck::Spaces,
            "has a space in its name",
            directories()
                .chain(files())
                .find(|node| node.name().contains(' ')),
        ),
        (
            OfficialCheck::Pycache,
            "is a __pycache__ directory",
            directories().find(|node| node.name().ends_with("__pycache__")),
        ),
        (
            OfficialCheck::EmptyDirectories,
            "is an empty directory",
            directories().find(|node| node.is_empty_directory()),
        ),
    ];
    for (check, text, found) in rules {
        if !looks_at(check) {
            continue;
        }
        if let Some(node) = found {
            return Ok(Some(PathFault::new(&node.path, text)));
        }
        let broken = files().find(|node| node.kind == Kind::BrokenLink);
        if let (OfficialCheck::Links, Some(node)) = (check, broken) {
            return Err(Crash(format!("{} leads nowhere", node.path)));
        }
    }
    Ok(None)
}

/// Returns systems and measurements that have no results, each with a message.
pub(super) fn unmatched(context: &Context<'_>, home: &str) -> Result<Vec<PathFault>, Crash> {
    if !context.checker.looks_at(OfficialCheck::SystemsWithoutResults) {
        return Ok(Vec::new());
    }
    let tree = context.tree;
    let results = tree.directories(&format!("{home}/results")).unwrap_or_default();
    let no_directory = |path: &str| Crash(format!("{path} is not a directory"));
    let mut faults = Vec::new();
    let path = format!("{home}/measurements");
    for name in tree.directories(&path).ok_or_else(|| no_directory(&path))? {
        if !results.contains(&name) {
            faults.push(PathFault::new(format!("{path}/{name}"), "has no results"));
        }
    }
    let path = format!("{home}/systems");
    for name in tree.files(&path).ok_or_else(|| no_directory(&path))? {
        let system = name.ends_with(".json").then(|| name.replace(".json", ""));
        if system.is_some_and(|system| !results.contains(&system.as_str())) {
            faults.push(PathFault::new(format!("{path}/{name}"), "has no results"));
        }
    }
    Ok(faults)
}

/// Describes a missing calibration document, which closed and network submissions need.
pub(super) fn calibration(context: &Context<'_>, division: &str, home: &str) -> Option<String> {
    if division == "open" || !context.checker.looks_at(OfficialCheck::Calibration) {
        return None;
    }
    let there = ["calibration.md", "documentation/calibration.md"]
        .iter()
        .any(|name| context.tree.exists(&format!("{home}/{name}")));
    (!there).then(|| "has neither calibration.md nor documentation/calibration.md".to_owned())
}

/// Returns whether the official checker treats a link as broken. It resolves the target from the root instead of the link.
fn looks_broken(context: &Context<'_>, node: &Node) -> bool {
    let link = context.tree.root().join(&node.path);
    fs::read_link(link).map_or(true, |target| !context.tree.root().join(target).exists())
}
