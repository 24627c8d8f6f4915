//! Where a benchmark's samples are, and where its files are published. Downloads nothing.

use serde::{Deserialize, Serialize};

/// Preprocessed samples: one `.npy` per sample and a map file. When the model has several inputs, one `.npy` per input, whose first
/// dimension counts samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Dataset {
    /// Directory of the samples, below the scratch directory. The sample named `N` in the map is `N.npy`.
    pub dir: String,
    /// The map file, below the scratch directory. Each sample has a line with its name, its label, and for letterboxed images the
    /// original width and height. For volumes, the voxels along each dimension instead of a label. Samples with several inputs
    /// have no names; they need a map only when their metric does.
    #[serde(default)]
    pub map: String,
    /// Directory of the dataset as published, below the scratch directory; `None` for `data/NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Samples in the complete set.
    pub total_samples: usize,
    /// Samples that are loaded together for a performance run (LoadGen's `performance_sample_count`).
    pub performance_samples: usize,
}

/// A file or archive that a benchmark needs and Regatta does not contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Download {
    /// What it is, in a few words.
    pub title: String,
    /// What it is for.
    pub purpose: DownloadPurpose,
    /// Where it is published.
    pub url: String,
    /// What its publisher demands, for example a registration; `None` when it is freely downloadable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<String>,
    /// Where it belongs, below the scratch directory: a file, or with a final `/` the directory into which an archive is unpacked.
    pub path: String,
    /// The number of files after unpacking; 1 for a file.
    pub files: usize,
    /// The size of these files together, in bytes, if it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The number of samples that a calibration list names; `None` if these are only known from the data. Not part of a run's spec.
    #[serde(default, skip_serializing)]
    pub samples: Option<usize>,
    /// Published checksums, as `md5:HEX` or `sha256:HEX`, behind the name of the file that they are of unless it is the one at `url`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checksums: Vec<String>,
    /// The files of weights that are published as a directory, which `regatta benchmark prepare` copies from `--from DIRECTORY`. Not part of a
    /// run's spec.
    #[serde(default, skip_serializing)]
    pub checkpoint: Vec<String>,
    /// How `regatta data fetch` downloads it. `None` when its publisher demands something first, or when `url` is not the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch: Option<FetchKind>,
}

impl Download {
    /// Returns the name of the file at the address.
    #[must_use]
    pub fn published_name(&self) -> &str {
        self.url.rsplit('/').next().unwrap_or(&self.url)
    }

    /// Returns algorithm and hexadecimal digits of the published checksum of the file at the address.
    #[must_use]
    pub fn checksum(&self) -> Option<(&str, &str)> {
        self.checksums.iter().find_map(|text| {
            let (name, checksum) = text.rsplit_once(' ').unwrap_or(("", text));
            let is_own = name.is_empty() || name == self.published_name();
            checksum.split_once(':').filter(|_| is_own)
        })
    }
}

/// How a freely downloadable file becomes a file of a benchmark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FetchKind {
    /// The file itself.
    File,
    /// An archive, and the directory below the scratch directory in which it is unpacked.
    Archive(String),
}

/// What a download is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DownloadPurpose {
    /// The dataset that `prep` reads.
    Dataset,
    /// The labels of the dataset.
    Labels,
    /// A list of samples for calibration.
    Calibration,
    /// The model.
    Model,
}
