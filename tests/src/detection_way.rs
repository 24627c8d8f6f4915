//! The steps of a benchmark of annotated images, before and after the annotation of the network's detections.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use regatta_test_support::oracle;

use crate::{detections::map_line, mlperf_benchmark::responses, whole_way::WholeWay};

/// The seed of the images.
const SEED: &str = "5";

/// A benchmark of annotated images after its first run.
pub struct DetectionWay {
    /// The benchmark in its lab.
    pub way: WholeWay,
    /// The dataset in the published form.
    pub data: PathBuf,
    /// The responses of the first run.
    pub found: BTreeMap<u64, String>,
}

impl DetectionWay {
    /// Makes a dataset of `images` images with the program `maker`, prepares it, starts the lab with the LoadGen `plugin`, and runs once.
    ///
    /// # Panics
    /// Panics when one of these fails.
    #[must_use]
    pub fn begin(
        mut way: WholeWay,
        opencv: &Path,
        maker: &str,
        images: usize,
        plugin: Option<&Path>,
    ) -> Self {
        let data = way.lab.workspace().join("dataset");
        let count = images.to_string();
        let arguments = [data.as_os_str(), count.as_ref(), SEED.as_ref()];
        oracle::run(opencv, "opencv", maker, &arguments);
        way.prepare(&data);
        way.start(plugin);
        let found = responses(&way.lab.accuracy_log(&way.first_run()));
        Self { way, data, found }
    }

    /// Prepares the annotated dataset, measures both scenarios, runs the `audits`, and stages the results.
    ///
    /// # Panics
    /// Panics when one of these fails, or when the network finds something else than in the first run.
    pub fn finish(self, audits: &[&str]) {
        let mut way = self.way;
        way.prepare_again(&self.data);
        let (accuracy, _) = way.measure_scenario("SingleStream", map_line);
        assert_eq!(responses(&way.lab.accuracy_log(&accuracy)), self.found);
        let (_, line) = way.measure_scenario("Offline", map_line);
        way.audit(audits);
        way.stage(&line);
    }
}
