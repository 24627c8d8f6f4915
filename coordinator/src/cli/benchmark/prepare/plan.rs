//! Plans a preparation: determines the missing steps from the existing files, and the obstacles that only the user can remove. Reads no files.

use std::{collections::BTreeSet, path::PathBuf};

use regatta_types::{benchmark::DownloadPurpose, samples::Form};

/// The existing files of a benchmark.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    pub(super) downloads: Vec<DownloadFact>,
    /// The selected sets of samples.
    pub(super) samples: Vec<SampleFact>,
    /// The calibration samples, if they are selected.
    pub(super) calibration: Option<CalibrationFact>,
    /// The reason why int8 engines would have no scales, although all files are there.
    pub(super) no_scales: Option<Obstacle>,
    pub(super) network: NetworkFact,
    /// The files that devices download. Empty if the workspace does not serve assets.
    pub(super) assets: Vec<AssetFact>,
}

/// A download that the benchmark's file declares.
#[derive(Debug, Clone)]
pub(super) struct DownloadFact {
    /// Its index in the benchmark's file.
    pub(super) index: usize,
    pub(super) title: String,
    pub(super) purpose: DownloadPurpose,
    /// Its path in the scratch directory.
    pub(super) path: String,
    pub(super) is_there: bool,
    pub(super) source: Source,
    /// The size of the download itself. `None` if it is not published.
    pub(super) bytes: Option<u64>,
    /// The size of the part of it that an interrupted call has downloaded.
    pub(super) fetched_bytes: u64,
    /// The size of the unpacked files.
    pub(super) unpacked_bytes: Option<u64>,
    /// The size of the files that an interrupted call has unpacked.
    pub(super) present_bytes: u64,
}

/// The way to get a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// A file that can be downloaded.
    FreeFile,
    /// An archive that can be downloaded and then has to be unpacked.
    FreeArchive {
        /// Whether it is already downloaded.
        is_fetched: bool,
    },
    /// An archive that the user named.
    OfferedArchive(PathBuf),
    /// A file that the user named, or a directory of published weights.
    OfferedFile(PathBuf),
    /// The publisher provides it on request, or as several files.
    User {
        /// Instructions for the user.
        hint: String,
    },
}

#[derive(Debug, Clone)]
pub(super) struct SampleFact {
    pub(super) form: Form,
    /// Its directory in the scratch directory.
    pub(super) directory: String,
    pub(super) is_made: bool,
    pub(super) bytes: Option<u64>,
    /// The size of the samples that exist already.
    pub(super) present_bytes: u64,
    /// The reason why it cannot be made.
    pub(super) obstacle: Option<Obstacle>,
}

/// The samples of a calibration list.
#[derive(Debug, Clone)]
pub(super) struct CalibrationFact {
    /// The list's index among the downloads.
    pub(super) list: usize,
    pub(super) directory: String,
    pub(super) is_made: bool,
    pub(super) bytes: Option<u64>,
    /// The size of the samples that exist already.
    pub(super) present_bytes: u64,
    pub(super) obstacle: Option<Obstacle>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct NetworkFact {
    /// All files of the model, as paths in the scratch directory.
    pub(super) files: Vec<String>,
    /// The missing files, as paths in the scratch directory.
    pub(super) missing: Vec<String>,
    /// Whether a tool of this repository exports them from the published weights.
    pub(super) is_exported: bool,
}

/// A file or directory that devices download.
#[derive(Debug, Clone)]
pub(super) struct AssetFact {
    /// Its path in the scratch directory.
    pub(super) path: String,
    pub(super) bytes: Option<u64>,
    /// Whether the assets contain its current content.
    pub(super) is_current: bool,
}

/// A task that only the user can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Obstacle {
    pub(super) what: String,
    pub(super) hint: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) action: Action,
    /// The path of the result in the scratch directory. Two benchmarks may need the same one.
    pub(super) target: String,
    /// The object of the step, as users see it.
    pub(super) subject: String,
    /// The bytes that the step adds to the disk. `None` if they are not known in advance.
    pub(super) bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Downloads a file or archive.
    Fetch {
        /// The index of the download.
        download: usize,
    },
    /// Copies a file that the user named, or the files of published weights.
    Copy {
        /// The index of the download.
        download: usize,
        from: PathBuf,
    },
    /// Unpacks an archive.
    Unpack {
        /// The index of the download.
        download: usize,
        /// The archive that the user named. `None` for a downloaded one.
        archive: Option<PathBuf>,
    },
    /// Exports networks from published weights.
    Export {
        /// The index of the weights among the downloads.
        weights: Option<usize>,
    },
    /// Makes samples.
    Prepare { form: Form },
    /// Makes calibration samples.
    Calibrate {
        /// The index of the list among the downloads.
        list: usize,
    },
    /// Adds files to the assets.
    AddAssets {
        /// The paths in the scratch directory.
        paths: Vec<String>,
    },
}

impl Action {
    /// Returns the name of the step, as users see it.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Fetch { .. } => "fetch",
            Self::Copy { .. } => "copy",
            Self::Unpack { .. } => "unpack",
            Self::Export { .. } => "export",
            Self::Prepare { .. } => "prepare",
            Self::Calibrate { .. } => "calibration samples",
            Self::AddAssets { .. } => "add assets",
        }
    }
}

/// The steps of a benchmark in order, and the obstacles that they cannot remove.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) obstacles: Vec<Obstacle>,
}

pub(super) fn plan(facts: &Facts) -> Plan {
    let mut plan = Plan::default();
    plan.get_network(facts);
    let has_data = plan.get_data(facts);
    plan.make_samples(facts, has_data);
    plan.make_calibration(facts, has_data);
    plan.add_assets(facts);
    // The files are complete without scales: a run can name scales, or need none.
    plan.obstacles.extend(facts.no_scales.clone());
    plan
}

impl Plan {
    /// Gets the networks, or the weights from which they are exported.
    fn get_network(&mut self, facts: &Facts) {
        let NetworkFact {
            files,
            missing,
            is_exported,
        } = &facts.network;
        let Some(first) = missing.first() else {
            return;
        };
        let models = of_purpose(facts, DownloadPurpose::Model);
        let is_published = |path: &String| models.clone().any(|model| model.path == *path);
        // Other files of the purpose are the weights.
        let weights = models.clone().find(|model| !files.contains(&model.path));
        let is_complete = missing.iter().all(is_published);
        if !is_exported && !is_complete {
            let weights = models.clone().next().map(|model| format!("{}; ", model.title));
            self.obstacles.push(Obstacle {
                what: format!("the network {first}"),
                hint: format!(
                    "it is not published: {}docs/benchmarks.md describes how to make it",
                    weights.unwrap_or_default()
                ),
            });
            return;
        }
        let before = self.obstacles.len();
        // Without an export, nothing needs the weights.
        let needs_weights = !(*is_exported && is_complete);
        for model in models.clone() {
            if needs_weights || missing.contains(&model.path) {
                self.get(model);
            }
        }
        let exported = missing.iter().filter(|path| !is_published(path));
        let exported: Vec<&str> = exported.map(String::as_str).collect();
        if let Some(first) = exported.first()
            && *is_exported
            && self.obstacles.len() == before
        {
            self.steps.push(Step {
                action: Action::Export {
                    weights: weights.map(|model| model.index),
                },
                target: (*first).to_owned(),
                subject: exported.join(", "),
                bytes: None,
            });
        }
    }

    /// Gets the data set and its labels if samples are missing. Returns whether they will be available.
    fn get_data(&mut self, facts: &Facts) -> bool {
        let samples = facts.samples.iter();
        let mut samples = samples.map(|set| (set.is_made, &set.obstacle));
        let calibration = facts.calibration.iter();
        let mut calibration = calibration.map(|set| (set.is_made, &set.obstacle));
        let is_needed = |(is_made, obstacle): (bool, &Option<Obstacle>)| !is_made && obstacle.is_none();
        if !samples.any(is_needed) && !calibration.any(is_needed) {
            return true;
        }
        let before = self.obstacles.len();
        for purpose in [DownloadPurpose::Labels, DownloadPurpose::Dataset] {
            let all = of_purpose(facts, purpose);
            for download in all.clone() {
                // Some data sets have two published forms.
                let is_replaced = matches!(download.source, Source::User { .. })
                    && all.clone().any(|other| {
                        other.path == download.path && !matches!(other.source, Source::User { .. })
                    });
                if !is_replaced {
                    self.get(download);
                }
            }
        }
        self.obstacles.len() == before
    }

    /// Gets a download, unless it already exists.
    fn get(&mut self, download: &DownloadFact) {
        if download.is_there {
            return;
        }
        let index = download.index;
        let left = |bytes: Option<u64>, present| bytes.map(|bytes| bytes.saturating_sub(present));
        let fetch = || {
            let bytes = left(download.bytes, download.fetched_bytes);
            step(Action::Fetch { download: index }, download, bytes)
        };
        let unpack = |archive| {
            let action = Action::Unpack {
                download: index,
                archive,
            };
            let bytes = left(download.unpacked_bytes, download.present_bytes);
            step(action, download, bytes)
        };
        match &download.source {
            Source::FreeFile => self.steps.push(fetch()),
            Source::FreeArchive { is_fetched } => {
                if !is_fetched {
                    self.steps.push(fetch());
                }
                self.steps.push(unpack(None));
            }
            Source::OfferedArchive(path) => self.steps.push(unpack(Some(path.clone()))),
            Source::OfferedFile(path) => {
                self.steps.push(step(
                    Action::Copy {
                        download: index,
                        from: path.clone(),
                    },
                    download,
                    download.bytes,
                ));
            }
            Source::User { hint } => self.obstacles.push(Obstacle {
                what: download.title.clone(),
                hint: hint.clone(),
            }),
        }
    }

    fn make_samples(&mut self, facts: &Facts, has_data: bool) {
        for set in facts.samples.iter().filter(|set| !set.is_made) {
            if let Some(obstacle) = &set.obstacle {
                self.obstacles.push(obstacle.clone());
            } else if has_data {
                self.steps.push(Step {
                    action: Action::Prepare { form: set.form },
                    target: set.directory.clone(),
                    subject: format!("samples as {}", set.form),
                    bytes: set.bytes.map(|bytes| bytes.saturating_sub(set.present_bytes)),
                });
            }
        }
    }

    fn make_calibration(&mut self, facts: &Facts, has_data: bool) {
        let Some(set) = facts.calibration.as_ref().filter(|set| !set.is_made) else {
            return;
        };
        if let Some(obstacle) = &set.obstacle {
            self.obstacles.push(obstacle.clone());
            return;
        }
        let Some(list) = facts.downloads.iter().find(|download| download.index == set.list) else {
            return;
        };
        let before = self.obstacles.len();
        self.get(list);
        if has_data && self.obstacles.len() == before {
            self.steps.push(Step {
                action: Action::Calibrate { list: set.list },
                target: set.directory.clone(),
                subject: list.path.clone(),
                bytes: set.bytes.map(|bytes| bytes.saturating_sub(set.present_bytes)),
            });
        }
    }

    /// Adds new and changed files to the assets. Does nothing while a file is missing, because devices need all files of a benchmark.
    fn add_assets(&mut self, facts: &Facts) {
        if !self.obstacles.is_empty() {
            return;
        }
        let made: BTreeSet<&str> = self.steps.iter().map(|step| step.target.as_str()).collect();
        let is_network_new = facts.network.is_exported && !facts.network.missing.is_empty();
        let is_due = |asset: &&AssetFact| {
            !asset.is_current
                || made.contains(asset.path.as_str())
                || (is_network_new && facts.network.missing.contains(&asset.path))
        };
        let due: Vec<&AssetFact> = facts.assets.iter().filter(is_due).collect();
        if due.is_empty() {
            return;
        }
        // Some sizes are not known in advance, so the sum is a lower bound.
        let bytes = due.iter().filter_map(|asset| asset.bytes).sum();
        let paths: Vec<String> = due.iter().map(|asset| asset.path.clone()).collect();
        self.steps.push(Step {
            target: format!("assets of {}", paths.join(", ")),
            subject: paths.join(", "),
            action: Action::AddAssets { paths },
            bytes: Some(bytes),
        });
    }
}

fn of_purpose(facts: &Facts, purpose: DownloadPurpose) -> impl Iterator<Item = &DownloadFact> + Clone {
    let downloads = facts.downloads.iter();
    downloads.filter(move |download| download.purpose == purpose)
}

fn step(action: Action, download: &DownloadFact, bytes: Option<u64>) -> Step {
    let target = match action {
        // The archive itself is not part of the unpacked files.
        Action::Fetch { .. } if matches!(download.source, Source::FreeArchive { .. }) => {
            format!("archive of {}", download.title)
        }
        _ => download.path.clone(),
    };
    Step {
        action,
        target,
        subject: download.title.clone(),
        bytes,
    }
}

#[cfg(test)]
mod tests;
