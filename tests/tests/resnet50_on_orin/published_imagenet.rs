//! ImageNet, the network and the calibration list as they are published, but made up and small: an archive that the user has, and a server with the rest.

use std::{collections::BTreeMap, fs, path::Path};

use regatta_test_support::file_server::FileServer;
use regatta_tests::{jpeg, mlperf_benchmark::replaced};

use super::{
    colour_network::{colours, model},
    published_files::{sha256, tar},
};

/// The archive in the page's command.
pub(crate) const ARCHIVE: &str = "ILSVRC2012_img_val.tar";
pub(crate) const IMAGES: usize = 288;
/// The published list has 500 images. Neither number fills the largest batch of the board's settings.
pub(crate) const CALIBRATION_IMAGES: usize = 250;
/// An accuracy of 87.5 %, above the target.
pub(crate) const WRONG_LABELS: usize = IMAGES / 8;

/// The published files, and the server that provides them.
pub(crate) struct PublishedImagenet {
    address: String,
    images_bytes: usize,
    list: String,
}

impl PublishedImagenet {
    /// Writes the archive into a directory, and serves the labels, the list and the network until this process ends.
    pub(crate) fn new(directory: &Path) -> Self {
        let unpacked = tempfile::tempdir().unwrap();
        let (colours, mut names, mut labels, mut images_bytes) = (colours(), Vec::new(), String::new(), 0);
        for number in 0..IMAGES {
            let name = format!("ILSVRC2012_val_{:08}.JPEG", number + 1);
            let class = number % colours.len();
            let image = jpeg::encode(1, &[colours[class]]);
            images_bytes += image.len();
            fs::write(unpacked.path().join(&name), image).unwrap();
            let label = if number < WRONG_LABELS { 999 } else { class };
            labels.push_str(&format!("{name} {label}\n"));
            names.push(name);
        }
        tar("-cf", &directory.join(ARCHIVE), unpacked.path(), &names);
        fs::write(unpacked.path().join("val.txt"), labels).unwrap();
        let archive = unpacked.path().join("labels.tar.gz");
        tar("-czf", &archive, unpacked.path(), &["val.txt".to_owned()]);
        let list = names[IMAGES - CALIBRATION_IMAGES..].join("\n") + "\n";
        let address = FileServer::start(BTreeMap::from([
            ("caffe_ilsvrc12.tar.gz", fs::read(archive).unwrap()),
            ("cal_image_list_option_1.txt", list.clone().into_bytes()),
            ("resnet50_v1.onnx", model()),
        ]))
        .address;
        Self {
            address,
            images_bytes,
            list,
        }
    }

    /// Writes the shipped benchmark into a workspace, with the sizes, checksums and addresses of these files.
    pub(crate) fn write_benchmark(&self, workspace: &Path) {
        let shipped = include_str!("../../../configs/benchmarks/resnet50.toml").to_owned();
        let bytes = format!("bytes = {}", self.images_bytes);
        let text = replaced(
            shipped,
            &[
                ("total_samples = 50000", &format!("total_samples = {IMAGES}")),
                (
                    "performance_samples = 1024",
                    &format!("performance_samples = {IMAGES}"),
                ),
                ("files = 50000", &format!("files = {IMAGES}")),
                (
                    "\nsamples = 500\n",
                    &format!("\nsamples = {CALIBRATION_IMAGES}\n"),
                ),
                ("bytes = 6706560319", &bytes),
                ("http://dl.caffe.berkeleyvision.org", &self.address),
                (
                    "https://raw.githubusercontent.com/mlcommons/inference/v5.0/calibration/ImageNet",
                    &self.address,
                ),
                ("https://zenodo.org/record/4735647/files", &self.address),
                (
                    "sha256:7662247d1d9407d6cb564268f64c5a4a6cf9f1a34fd2e6cdc3b94dcf278b3dc9",
                    &sha256(self.list.as_bytes()),
                ),
                ("md5:f6a4da60cd5f084d97efc2c1ddb10beb", &sha256(&model())),
            ],
        );
        let benchmarks = workspace.join("configs/benchmarks");
        fs::create_dir_all(&benchmarks).unwrap();
        fs::write(benchmarks.join("resnet50.toml"), text).unwrap();
    }
}
