//! Tests of plans, made from facts. No test reads a file.

use regatta_types::{
    benchmark::{DownloadPurpose, Dtype},
    layout::Layout,
    samples::Form,
};

use super::*;

const INT8: Form = Form {
    dtype: Dtype::Int8,
    layout: Layout::Linear,
};

fn download(index: usize, purpose: DownloadPurpose, path: &str, source: Source) -> DownloadFact {
    DownloadFact {
        index,
        title: format!("title of {path}"),
        purpose,
        path: path.to_owned(),
        is_there: false,
        source,
        bytes: Some(10),
        fetched_bytes: 0,
        unpacked_bytes: Some(100),
        present_bytes: 0,
    }
}

fn user() -> Source {
    Source::User {
        hint: "register".to_owned(),
    }
}

/// An image benchmark without any existing files, whose data set the user named.
fn empty() -> Facts {
    let archive = Source::OfferedArchive("/tmp/images.tar".into());
    let labels = Source::FreeArchive { is_fetched: false };
    Facts {
        downloads: vec![
            download(0, DownloadPurpose::Dataset, "data/", archive),
            download(1, DownloadPurpose::Labels, "data/val.txt", labels),
            download(2, DownloadPurpose::Calibration, "data/list.txt", Source::FreeFile),
            download(3, DownloadPurpose::Model, "models/net.onnx", Source::FreeFile),
        ],
        samples: vec![SampleFact {
            form: INT8,
            directory: "prep/int8".to_owned(),
            is_made: false,
            bytes: Some(1_000),
            present_bytes: 0,
            obstacle: None,
        }],
        calibration: Some(CalibrationFact {
            list: 2,
            directory: "prep/list".to_owned(),
            is_made: false,
            bytes: None,
            present_bytes: 0,
            obstacle: None,
        }),
        no_scales: None,
        network: NetworkFact {
            files: vec!["models/net.onnx".to_owned()],
            missing: vec!["models/net.onnx".to_owned()],
            is_exported: false,
        },
        assets: ["models/net.onnx", "prep/int8", "prep/list", "prep/map.txt"]
            .map(|path| AssetFact {
                path: path.to_owned(),
                bytes: Some(7),
                is_current: false,
            })
            .to_vec(),
    }
}

/// The same benchmark when all files exist.
fn complete() -> Facts {
    let mut facts = empty();
    facts
        .downloads
        .iter_mut()
        .for_each(|download| download.is_there = true);
    facts.samples.iter_mut().for_each(|set| set.is_made = true);
    facts.calibration.iter_mut().for_each(|set| set.is_made = true);
    facts.network.missing.clear();
    facts.assets.iter_mut().for_each(|asset| asset.is_current = true);
    facts
}

fn steps(facts: &Facts) -> Vec<String> {
    let plan = plan(facts);
    let steps = plan.steps.iter();
    steps
        .map(|step| format!("{} {}", step.action.word(), step.target))
        .collect()
}

#[test]
fn everything_is_got_made_and_added_in_this_order() {
    let facts = empty();
    assert_eq!(
        steps(&facts),
        [
            "fetch models/net.onnx",
            "fetch archive of title of data/val.txt",
            "unpack data/val.txt",
            "unpack data/",
            "prepare prep/int8",
            "fetch data/list.txt",
            "calibration samples prep/list",
            "add assets assets of models/net.onnx, prep/int8, prep/list, prep/map.txt",
        ]
    );
    let plan = plan(&facts);
    assert_eq!(plan.obstacles, []);
    let bytes: Vec<_> = plan.steps.iter().map(|step| step.bytes).collect();
    let known = [10, 10, 100, 100, 1_000, 10].map(Some);
    assert_eq!(bytes, [&known[..], &[None, Some(28)]].concat());
}

#[test]
fn the_disk_needs_no_space_for_what_is_there() {
    let mut facts = empty();
    for download in &mut facts.downloads {
        (download.fetched_bytes, download.present_bytes) = (4, 30);
    }
    facts.samples[0].present_bytes = 999;
    let calibration = facts.calibration.as_mut().unwrap();
    (calibration.bytes, calibration.present_bytes) = (Some(50), 60);
    let plan = plan(&facts);
    let bytes: Vec<_> = plan.steps.iter().map(|step| step.bytes.unwrap()).collect();
    assert_eq!(bytes, [6, 6, 70, 70, 1, 6, 0, 28]);
}

#[test]
fn missing_scales_are_named_when_all_files_are_there_and_added() {
    let mut facts = complete();
    facts.assets[1].is_current = false;
    let obstacle = Obstacle {
        what: "scales".to_owned(),
        hint: "--set calibration".to_owned(),
    };
    facts.no_scales = Some(obstacle.clone());
    assert_eq!(steps(&facts), ["add assets assets of prep/int8"]);
    assert_eq!(plan(&facts).obstacles, [obstacle]);
}

#[test]
fn nothing_is_done_when_nothing_is_missing() {
    let mut facts = complete();
    assert_eq!(plan(&facts), Plan::default());
    // The published data is not needed once its samples exist.
    for download in &mut facts.downloads {
        download.is_there = false;
        download.source = user();
    }
    assert_eq!(plan(&facts), Plan::default());
}

#[test]
fn an_interrupted_preparation_continues_with_what_is_missing() {
    let mut facts = complete();
    facts.samples[0].is_made = false;
    facts.assets[1].is_current = false;
    assert_eq!(
        steps(&facts),
        ["prepare prep/int8", "add assets assets of prep/int8"]
    );
    let mut facts = complete();
    facts.assets[3].is_current = false;
    assert_eq!(steps(&facts), ["add assets assets of prep/map.txt"]);
    // New samples replace an asset even if its size is unchanged.
    let mut facts = complete();
    facts.samples[0].is_made = false;
    assert_eq!(
        steps(&facts),
        ["prepare prep/int8", "add assets assets of prep/int8"]
    );
    let mut facts = complete();
    facts.samples[0].is_made = false;
    facts.downloads[1].is_there = false;
    facts.downloads[1].source = Source::FreeArchive { is_fetched: true };
    assert_eq!(steps(&facts)[0], "unpack data/val.txt");
}

#[test]
fn what_only_the_user_can_get_is_named_and_the_rest_is_done() {
    let mut facts = empty();
    facts.downloads[0].source = user();
    assert_eq!(
        steps(&facts),
        [
            "fetch models/net.onnx",
            "fetch archive of title of data/val.txt",
            "unpack data/val.txt",
            "fetch data/list.txt",
        ]
    );
    let obstacle = Obstacle {
        what: "title of data/".to_owned(),
        hint: "register".to_owned(),
    };
    assert_eq!(plan(&facts).obstacles, [obstacle]);
}

#[test]
fn a_data_set_that_is_published_twice_is_got_where_it_is_free() {
    let mut facts = empty();
    facts.downloads[0].source = user();
    let again = Source::FreeArchive { is_fetched: false };
    facts
        .downloads
        .push(download(4, DownloadPurpose::Dataset, "data/", again));
    let plan = plan(&facts);
    assert_eq!(plan.obstacles, []);
    let is_second = |step: &Step| step.action == Action::Fetch { download: 4 };
    assert!(plan.steps.iter().any(is_second), "{plan:?}");
}

#[test]
fn a_form_without_a_scale_is_an_obstacle_of_its_own() {
    let mut facts = complete();
    let obstacle = Obstacle {
        what: "samples".to_owned(),
        hint: "calibrate".to_owned(),
    };
    facts.samples[0].is_made = false;
    facts.samples[0].obstacle = Some(obstacle.clone());
    facts.downloads[0].is_there = false;
    let expected = Plan {
        steps: Vec::new(),
        obstacles: vec![obstacle],
    };
    assert_eq!(plan(&facts), expected);
}

#[test]
fn networks_are_exported_of_their_weights_or_are_the_users() {
    let mut facts = complete();
    facts.network.missing = vec!["models/encoder.onnx".to_owned(), "models/joint.onnx".to_owned()];
    facts.network.is_exported = true;
    facts.downloads[3].is_there = false;
    facts.assets[0].path = "models/joint.onnx".to_owned();
    assert_eq!(
        steps(&facts),
        [
            "fetch models/net.onnx",
            "export models/encoder.onnx",
            "add assets assets of models/joint.onnx"
        ]
    );
    facts.downloads[3].source = user();
    assert_eq!(steps(&facts), [] as [&str; 0]);
    assert_eq!(plan(&facts).obstacles[0].hint, "register");
    // Files beside the networks are published as they are.
    facts.downloads[3].source = Source::FreeFile;
    facts.network.missing = vec!["models/net.onnx".to_owned()];
    assert_eq!(steps(&facts), ["fetch models/net.onnx"]);
    facts.network.missing.push("models/encoder.onnx".to_owned());
    assert_eq!(
        steps(&facts),
        ["fetch models/net.onnx", "export models/encoder.onnx"]
    );
    facts.network.missing = vec!["models/encoder.onnx".to_owned()];
    // There is no tool that exports networks from these weights.
    facts.network.is_exported = false;
    facts.downloads[3].source = Source::FreeFile;
    let plan = plan(&facts);
    assert_eq!(plan.steps, []);
    assert_eq!(plan.obstacles[0].what, "the network models/encoder.onnx");
}

#[test]
fn a_file_of_the_user_is_copied() {
    let mut facts = empty();
    facts.downloads[1].source = Source::OfferedFile("/tmp/val_map.txt".into());
    assert!(steps(&facts).contains(&"copy data/val.txt".to_owned()));
}
