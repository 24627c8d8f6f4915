//! Trees to forge: parts of published submissions, a staged one, and synthetic ones of a datacenter.

use std::{
    cell::OnceCell,
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use regatta_catalogue::round::Round;
use regatta_submission_check::{
    check::{Finding, strict},
    tree::Tree,
};
use regatta_submission_stage::{
    stage::Kind,
    truncate::{self, Destination},
};
use regatta_test_support::{published_results, staging::StagingFixture, synthetic_submission, tree};
use regatta_types::Division;
use tempfile::TempDir;

use crate::random::Random;

/// Files with their new contents, by their paths in the tree.
pub(crate) type Edits = Vec<(String, Vec<u8>)>;

/// An unchanged tree.
pub(crate) struct Specimen {
    pub(crate) name: &'static str,
    root: PathBuf,
    round: Round,
    pub(crate) untouched: Vec<Finding>,
    /// Texts of known and correct findings.
    pub(crate) known: &'static [&'static str],
    files: OnceCell<Vec<String>>,
    /// The owner of the directory.
    _kept: Box<dyn std::any::Any>,
}

impl Specimen {
    fn new(
        name: &'static str,
        round: &str,
        root: PathBuf,
        known: &'static [&'static str],
        kept: impl std::any::Any,
    ) -> Self {
        let round = regatta_test_support::round(round);
        let untouched = strict(&Tree::scan(&root).unwrap(), &round).findings;
        Self {
            name,
            root,
            round,
            untouched,
            known,
            files: OnceCell::new(),
            _kept: Box::new(kept),
        }
    }

    /// The tree's files.
    pub(crate) fn files(&self) -> &[String] {
        self.files.get_or_init(|| {
            let files = tree::files(&self.root).into_keys();
            files.filter(|path| self.is_judged(path)).collect()
        })
    }

    /// Returns whether a file belongs to a result, or to a test that the round requires.
    fn is_judged(&self, path: &str) -> bool {
        let parts: Vec<_> = path.split('/').collect();
        let Some(test) = parts.iter().find(|part| part.starts_with("TEST")) else {
            return !parts.contains(&"compliance");
        };
        let submission = &self.round.submission;
        let own = BTreeMap::new();
        let benchmark = submission.model_of(parts[4], &own);
        submission.benchmarks[benchmark]
            .tests
            .iter()
            .any(|requested| requested == test)
    }

    pub(crate) fn text(&self, path: &str) -> String {
        let bytes = fs::read(self.root.join(path)).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    pub(crate) fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.root.join(path)).unwrap()
    }

    /// Returns a random file that `keep` accepts.
    pub(crate) fn any_file(&self, random: &mut Random, keep: impl Fn(&str) -> bool) -> Option<String> {
        let files: Vec<_> = self.files().iter().filter(|path| keep(path)).collect();
        (!files.is_empty()).then(|| (*random.pick(&files)).clone())
    }

    /// Returns the findings that the edits add, and restores the tree.
    pub(crate) fn new_findings(&self, edits: &Edits) -> Vec<Finding> {
        let before: Vec<_> = edits
            .iter()
            .map(|(path, _)| fs::read(self.root.join(path)).ok())
            .collect();
        for (path, content) in edits {
            fs::write(self.root.join(path), content).unwrap();
        }
        let findings = strict(&Tree::scan(&self.root).unwrap(), &self.round).findings;
        for ((path, _), content) in edits.iter().zip(before) {
            match content {
                Some(content) => fs::write(self.root.join(path), content).unwrap(),
                None => fs::remove_file(self.root.join(path)).unwrap(),
            }
        }
        findings
            .into_iter()
            .filter(|finding| !self.untouched.contains(finding))
            .collect()
    }
}

/// Returns the trees, as far as the machine has the corpus.
pub(crate) fn specimens() -> Vec<Specimen> {
    let mut list = vec![
        staged(),
        made_up("made up, retinanet", "v5.1", "retinanet"),
        made_up("made up, llama", "v6.0", "llama2-70b-99"),
    ];
    let image = published("v6.0", "closed/HPE", &["*/resnet"]);
    list.extend(image.map(|root| {
        // Its tests were verified against another run: docs/checker-findings.md.
        let known = &["the reference score is 19114.1, the logs give 19210.7"];
        Specimen::new("v6.0 HPE, resnet", "v6.0", root.path().to_owned(), known, root)
    }));
    let language = published("v5.1", "closed/Intel", &["*/llama3.1-8b-edge"]);
    list.extend(language.map(|root| {
        Specimen::new(
            "v5.1 Intel, llama3.1-8b-edge",
            "v5.1",
            root.path().to_owned(),
            &[],
            root,
        )
    }));
    let power = published("v2.1", "closed/Krai", &["*/resnet50"]);
    list.extend(
        power.map(|root| Specimen::new("v2.1 Krai, power", "v2.1", root.path().to_owned(), &[], root)),
    );
    let texts = published(
        "v2.1",
        "closed/NVIDIA",
        &["Orin_TRT/3d-unet-99", "Orin_TRT/rnnt", "Orin_TRT/retinanet"],
    );
    list.extend(texts.map(|root| Specimen::new("v2.1 NVIDIA", "v2.1", root.path().to_owned(), &[], root)));
    list
}

/// The benchmarks of a published submission. `*` matches all systems.
fn published(round: &str, home: &str, benchmarks: &[&str]) -> Option<TempDir> {
    let source = published_results(round)?;
    let root = tempfile::tempdir().unwrap();
    copy_some(&source.join(home), &root.path().join(home), &|path| {
        let mut parts = path.splitn(4, '/');
        let (part, system, benchmark) = (parts.next().unwrap(), parts.next(), parts.next());
        match (part, system, benchmark) {
            ("results" | "measurements" | "compliance", Some(system), Some(benchmark)) => {
                benchmarks.iter().any(|expected| {
                    let (of, name) = expected.split_once('/').unwrap();
                    (of == "*" || of == system) && name == benchmark
                })
            }
            ("results" | "measurements" | "compliance" | "systems", Some(system), None) => {
                let name = system.trim_end_matches(".json");
                benchmarks
                    .iter()
                    .any(|expected| expected.starts_with('*') || expected.starts_with(name))
            }
            _ => true,
        }
    });
    Some(root)
}

fn copy_some(from: &Path, to: &Path, keep: &dyn Fn(&str) -> bool) {
    let mut open = vec![String::new()];
    while let Some(below) = open.pop() {
        for entry in fs::read_dir(from.join(&below)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = if below.is_empty() {
                name
            } else {
                format!("{below}/{name}")
            };
            if !keep(&path) {
                continue;
            }
            if entry.path().is_dir() {
                open.push(path);
            } else {
                fs::create_dir_all(to.join(&path).parent().unwrap()).unwrap();
                fs::copy(entry.path(), to.join(&path)).unwrap();
            }
        }
    }
}

fn staged() -> Specimen {
    let fixture = StagingFixture::new("v6.0");
    let answers = fixture.answers(|text| text);
    let runs = fixture.all_runs();
    fixture
        .stage(Division::Closed, Kind::Submission, &answers, &runs)
        .unwrap();
    truncate::truncate(&truncate::TruncationRequest {
        input: &fixture.at("tree"),
        submitter: "ACME",
        destination: Destination::Backup(fixture.at("originals")),
        skip_scenarios: &[],
        rule: fixture.round.truncation.as_ref().unwrap(),
    })
    .unwrap();
    Specimen::new("staged, whisper", "v6.0", fixture.at("tree"), &[], fixture)
}

fn made_up(name: &'static str, round: &str, benchmark: &str) -> Specimen {
    let root = tempfile::tempdir().unwrap();
    synthetic_submission::category(
        root.path(),
        &regatta_test_support::round(round),
        benchmark,
        "datacenter",
    );
    Specimen::new(name, round, root.path().to_owned(), &[], root)
}
