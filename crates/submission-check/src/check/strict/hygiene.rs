//! Checks files and names, independent of their contents.

use regatta_catalogue::round::OfficialCheck;

use super::StrictContext;
use crate::{
    check::{
        finding::{Findings, Severity},
        rules,
    },
    tree::{Kind, Node, Tree},
};

/// Names of a submitter's directories that contain documents.
const DOCUMENTS: [&str; 3] = ["documentation", "documents", "calibration"];
/// File name extensions of documents.
const TEXTS: [&str; 5] = ["md", "adoc", "txt", "pdf", "rst"];
const DIVISIONS: [&str; 3] = ["closed", "open", "network"];

/// Checks the root and every entry of the tree.
pub(super) fn root(context: &StrictContext<'_>, findings: &mut Findings) {
    for fault in context.tree.faults() {
        let fix = "see that every directory can be listed and no link leads in a circle";
        findings.error(rules::READABLE, &fault.path, fault.reason.as_str(), fix);
    }
    for name in context.tree.directories("").unwrap_or_default() {
        if !DIVISIONS.contains(&name) {
            let fix = "keep only closed, open and network in the root";
            findings.warning(rules::LAYOUT, name, "is not a division", fix);
        }
    }
    let severity = context.since(OfficialCheck::RootFiles);
    for name in context.tree.files("").unwrap_or_default() {
        if !name.ends_with(".md") && !name.ends_with(".pdf") {
            let fix = "move it below a submitter, or away";
            findings.add(severity, rules::LAYOUT, name, "a file in the root", fix);
        }
    }
    for division in DIVISIONS {
        for name in context.tree.files(division).unwrap_or_default() {
            let path = format!("{division}/{name}");
            let fix = "move it below a submitter, or away";
            findings.add(
                severity,
                rules::LAYOUT,
                &path,
                "a file next to the submitters' directories",
                fix,
            );
        }
    }
    for node in context.tree.nodes() {
        let within = DIVISIONS.iter().any(|division| {
            node.path
                .strip_prefix(division)
                .is_some_and(|rest| rest.starts_with('/'))
        });
        if within {
            entry(context, node, findings);
        }
    }
}

fn entry(context: &StrictContext<'_>, node: &Node, findings: &mut Findings) {
    let since = |check| context.since(check);
    let path = node.path.as_str();
    match node.kind {
        Kind::BrokenLink => {
            let fix = "put the file itself in its place";
            findings.error(rules::LINKS, path, "a link that leads nowhere", fix);
        }
        Kind::Special => {
            findings.error(rules::READABLE, path, "neither file nor directory", "remove it");
        }
        _ if node.link => {
            let fix = "put the file itself in its place: packing keeps the link";
            findings.warning(rules::LINKS, path, "a symbolic link", fix);
        }
        Kind::File if node.size > context.round.submission.max_file_bytes => {
            let text = format!(
                "{} MiB, more than {} MiB",
                node.size >> 20,
                context.round.submission.max_file_bytes >> 20
            );
            let fix = "truncate or remove it";
            findings.add(
                since(OfficialCheck::LargeFiles),
                rules::FILE_SIZE,
                path,
                text,
                fix,
            );
        }
        Kind::Directory if node.is_empty_directory() => {
            let severity = since(OfficialCheck::EmptyDirectories);
            let fix = "remove it: git does not keep it";
            findings.add(severity, rules::EMPTY_DIRECTORY, path, "an empty directory", fix);
        }
        Kind::File | Kind::Directory => {}
    }
    if node.has_unreadable_name() {
        findings.error(rules::NAMES, path, "the name is not UTF-8 text", "rename it");
    }
    let name = node.name();
    if name.starts_with('.') {
        let severity = since(OfficialCheck::DotNames);
        let fix = "remove it: hidden files are refused";
        findings.add(severity, rules::NAMES, path, "the name begins with a dot", fix);
    }
    if name.contains(' ') {
        let severity = since(OfficialCheck::Spaces);
        findings.add(
            severity,
            rules::NAMES,
            path,
            "a space in the name",
            "rename it without spaces",
        );
    }
    if name == "__pycache__" {
        let severity = since(OfficialCheck::Pycache);
        findings.add(severity, rules::NAMES, path, "Python's cache", "remove it");
    }
}

/// Checks the files in a submitter's directory that do not belong to a result.
pub(super) fn submitter(context: &StrictContext<'_>, home: &str, division: &str, findings: &mut Findings) {
    let tree = context.tree;
    let results = tree.directories(&format!("{home}/results")).unwrap_or_default();
    let severity = context.since(OfficialCheck::SystemsWithoutResults);
    for name in tree.files(&format!("{home}/systems")).unwrap_or_default() {
        if let Some(system) = name.strip_suffix(".json")
            && !results.contains(&system)
        {
            let path = format!("{home}/systems/{name}");
            let fix = "add its results, or remove the description";
            findings.add(severity, rules::UNMATCHED, &path, "a system without results", fix);
        }
    }
    for part in ["measurements", "compliance"] {
        unmatched(context, home, part, findings);
    }
    if division != "open" {
        calibration(context, home, &results, findings);
    }
}

/// Checks that calibration and quantization are described, for the complete submission or beside each result.
fn calibration(context: &StrictContext<'_>, home: &str, systems: &[&str], findings: &mut Findings) {
    let tree = context.tree;
    let path = format!("{home}/calibration.md");
    let official = [path.as_str(), &format!("{home}/documentation/calibration.md")];
    if official.iter().any(|path| tree.is_file(path)) {
        return;
    }
    // The package does not check for the file, but the rules still require it.
    let severity = context
        .since(OfficialCheck::Calibration)
        .max(if results_only(context) {
            Severity::Warning
        } else {
            Severity::Error
        });
    let fix = "describe calibration and quantization there, or that there is none";
    if severity == Severity::Error {
        return findings.error(rules::CALIBRATION, &path, "is missing", fix);
    }
    let beside = tree.directories(home).unwrap_or_default().into_iter();
    let beside = beside.filter(|name| DOCUMENTS.contains(&name.to_ascii_lowercase().as_str()));
    let mut places = beside
        .map(|name| format!("{home}/{name}"))
        .chain([home.to_owned()]);
    if places.any(|directory| describes_calibration(tree, &directory)) {
        return;
    }
    let part = if results_only(context) {
        "results"
    } else {
        "measurements"
    };
    let mut results = Vec::new();
    for system in systems {
        for model in tree
            .directories(&format!("{home}/results/{system}"))
            .unwrap_or_default()
        {
            let below = format!("{system}/{model}");
            let scenarios = tree
                .directories(&format!("{home}/results/{below}"))
                .unwrap_or_default();
            results.extend(
                scenarios
                    .iter()
                    .map(|scenario| format!("{home}/{part}/{below}/{scenario}")),
            );
        }
    }
    let without = results
        .iter()
        .filter(|result| !describes_calibration(tree, result))
        .count();
    if without > 0 || results.is_empty() {
        let text = format!(
            "is missing, and {without} of {} results have no calibration document beside them",
            results.len()
        );
        findings.warning(rules::CALIBRATION, &path, text, fix);
    }
}

/// Returns whether a directory has a non-empty document about calibration, by its name or the directory's name.
fn describes_calibration(tree: &Tree, directory: &str) -> bool {
    let within = directory.to_ascii_lowercase().ends_with("/calibration");
    let names = tree.files(directory).unwrap_or_default();
    names.iter().any(|name| {
        let lower = name.to_ascii_lowercase();
        let ending = lower.rsplit('.').next().unwrap_or_default();
        let named = within || lower.contains("calibration");
        named && TEXTS.contains(&ending) && tree.size(&format!("{directory}/{name}")) != Some(0)
    })
}

fn results_only(context: &StrictContext<'_>) -> bool {
    context.round.submission.layout == regatta_catalogue::round::Layout::ResultsOnly
}

/// Reports benchmark directories below `measurements` or `compliance` that have no results.
fn unmatched(context: &StrictContext<'_>, home: &str, part: &str, findings: &mut Findings) {
    let tree = context.tree;
    let base = format!("{home}/{part}");
    for system in tree.directories(&base).unwrap_or_default() {
        for model in tree.directories(&format!("{base}/{system}")).unwrap_or_default() {
            let below = format!("{system}/{model}");
            if !tree.is_directory(&format!("{home}/results/{below}")) {
                let path = format!("{base}/{below}");
                let text = "has no results";
                let fix = "add the results, or remove it";
                findings.warning(rules::UNMATCHED, &path, text, fix);
            }
        }
    }
}
