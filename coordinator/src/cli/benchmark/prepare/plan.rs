//! The plan of a preparation: from what is there for a benchmark to the steps that are missing, and the obstacles that only the user can remove.
//! It looks at no file.

use std::{collections::BTreeSet, path::PathBuf};

use regatta_types::{benchmark::DownloadPurpose, samples::Form};

/// What is there for a benchmark.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    pub(super) downloads: Vec<DownloadFact>,
    /// The selected sets of samples.
    pub(super) samples: Vec<SampleFact>,
    /// The calibration samples, if they are selected.
    pub(super) calibration: Option<CalibrationFact>,
    pub(super) network: NetworkFact,
    /// What devices download. Empty in a workspace that serves no assets.
    pub(super) assets: Vec<AssetFact>,
}

/// A download of the benchmark's file.
#[derive(Debug, Clone)]
pub(super) struct DownloadFact {
    /// Its index in the benchmark's file.
    pub(super) index: usize,
    pub(super) title: String,
    pub(super) purpose: DownloadPurpose,
    /// Its path below the scratch directory.
    pub(super) path: String,
    pub(super) is_there: bool,
    pub(super) source: Source,
    /// The bytes of the download itself; `None` if nobody published them.
    pub(super) bytes: Option<u64>,
    /// The bytes of the unpacked files.
    pub(super) unpacked_bytes: Option<u64>,
}

/// Where a download comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// A file that is downloaded.
    FreeFile,
    /// An archive that is downloaded and unpacked.
    FreeArchive {
        /// Whether it was downloaded before.
        is_fetched: bool,
    },
    /// An archive that the user named.
    OfferedArchive(PathBuf),
    /// A file that the user named.
    OfferedFile(PathBuf),
    /// Its publisher gives it on request, or as several files.
    User {
        /// How the user gets it.
        hint: String,
    },
}

/// A set of samples.
#[derive(Debug, Clone)]
pub(super) struct SampleFact {
    pub(super) form: Form,
    /// Its directory below the scratch directory.
    pub(super) directory: String,
    pub(super) is_made: bool,
    pub(super) bytes: Option<u64>,
    /// Why it cannot be made.
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
    pub(super) obstacle: Option<Obstacle>,
}

/// The networks.
#[derive(Debug, Clone, Default)]
pub(super) struct NetworkFact {
    /// The files that are missing, below the scratch directory.
    pub(super) missing: Vec<String>,
    /// Whether a tool of this repository makes them of the published weights.
    pub(super) is_exported: bool,
}

/// A file or directory that devices download.
#[derive(Debug, Clone)]
pub(super) struct AssetFact {
    /// Its path below the scratch directory.
    pub(super) path: String,
    pub(super) bytes: Option<u64>,
    /// Whether it is an asset with the present content.
    pub(super) is_current: bool,
}

/// What only the user can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Obstacle {
    pub(super) what: String,
    pub(super) hint: String,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) action: Action,
    /// What the step makes, below the scratch directory. Two benchmarks may need the same.
    pub(super) target: String,
    /// What it works on, for people.
    pub(super) subject: String,
    /// The bytes that it adds; `None` if they are unknown before.
    pub(super) bytes: Option<u64>,
}

/// The work of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Downloads a file or archive.
    Fetch {
        /// The download's index.
        download: usize,
    },
    /// Copies a file that the user named.
    Copy {
        /// The file.
        from: PathBuf,
    },
    /// Unpacks an archive.
    Unpack {
        /// The download's index.
        download: usize,
        /// The archive; `None` for the one that was downloaded.
        archive: Option<PathBuf>,
    },
    /// Makes networks of published weights.
    Export {
        /// The index of the weights among the downloads.
        weights: Option<usize>,
    },
    /// Makes samples.
    Prepare {
        /// Their form.
        form: Form,
    },
    /// Makes calibration samples.
    Calibrate {
        /// The list's index among the downloads.
        list: usize,
    },
    /// Adds files to the assets.
    AddAssets {
        /// Their paths below the scratch directory.
        paths: Vec<String>,
    },
}

impl Action {
    /// Returns the word for the step.
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

/// The steps of a benchmark in their order, and what they cannot do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) obstacles: Vec<Obstacle>,
}

/// Plans the preparation of a benchmark.
pub(super) fn plan(facts: &Facts) -> Plan {
    let mut plan = Plan::default();
    plan.get_network(facts);
    let has_data = plan.get_data(facts);
    plan.make_samples(facts, has_data);
    plan.make_calibration(facts, has_data);
    plan.add_assets(facts);
    plan
}

impl Plan {
    /// Gets the networks, or the weights of which they are made.
    fn get_network(&mut self, facts: &Facts) {
        let NetworkFact { missing, is_exported } = &facts.network;
        let Some(first) = missing.first() else {
            return;
        };
        let models = of_purpose(facts, DownloadPurpose::Model);
        let is_published = |path: &String| models.clone().any(|model| model.path == *path);
        if !is_exported && !missing.iter().all(is_published) {
            self.obstacles.push(Obstacle {
                what: format!("the network {first}"),
                hint: "nobody publishes it: docs/benchmarks.md describes how to make it".to_owned(),
            });
            return;
        }
        let before = self.obstacles.len();
        for model in models.clone() {
            self.get(model);
        }
        if *is_exported && self.obstacles.len() == before {
            self.steps.push(Step {
                action: Action::Export {
                    weights: models.clone().next().map(|model| model.index),
                },
                target: first.clone(),
                subject: missing.join(", "),
                bytes: None,
            });
        }
    }

    /// Gets the data set and its labels if samples are missing. Returns whether they will be there.
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
                // Some data sets are published twice.
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

    /// Gets one download, unless it is there.
    fn get(&mut self, download: &DownloadFact) {
        if download.is_there {
            return;
        }
        let index = download.index;
        let fetch = || step(Action::Fetch { download: index }, download, download.bytes);
        let unpack = |archive| {
            let action = Action::Unpack {
                download: index,
                archive,
            };
            step(action, download, download.unpacked_bytes)
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
                    Action::Copy { from: path.clone() },
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
                    bytes: set.bytes,
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
                bytes: set.bytes,
            });
        }
    }

    /// Adds what is new or changed to the assets, once nothing is missing: half of a benchmark is of no use to a device.
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
        // Some sizes are unknown before: the sum is the least.
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
        // The archive is not what it is unpacked to.
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
