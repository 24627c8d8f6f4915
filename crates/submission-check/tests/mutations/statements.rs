//! Forgeries of statements beside LoadGen's figures: its version, conf files, the system's description, the logs' bytes, hashes.

use std::{fs, path::Path};

use regatta_submission_check::check::Severity;
use regatta_test_support::edit;

use super::{
    description,
    forgeries::{DETAIL, Forgery, SUMMARY, forgery, text},
    resnet,
};

const CLASSIC: &str = "v5.1/closed/HPE";
const ACCURACY: &str = "SingleStream/accuracy/accuracy.txt";

/// Calls `edit` with every file of this name below a directory.
fn every(directory: &Path, name: &str, edit: &dyn Fn(&Path)) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            every(&path, name, edit);
        } else if path.file_name().is_some_and(|found| found == name) {
            edit(&path);
        }
    }
}

fn hash(accuracy: &Path) -> String {
    let text = fs::read_to_string(accuracy).unwrap();
    let (_, hash) = text.split_once("hash=").unwrap();
    hash.trim().to_owned()
}

fn with_crlf(path: &Path, lines: usize) {
    let text = fs::read_to_string(path).unwrap();
    let changed: String = text
        .split_inclusive('\n')
        .enumerate()
        .map(|(number, line)| match number < lines {
            true => line.replace('\n', "\r\n"),
            false => line.to_owned(),
        })
        .collect();
    fs::write(path, changed).unwrap();
}

pub(super) const STATEMENTS: [Forgery; 15] = [
    forgery(
        "a modified LoadGen",
        |home| {
            let log = resnet(home, &format!("SingleStream/{DETAIL}"));
            edit::log_value(
                &log,
                "loadgen_git_status_message",
                "\" M loadgen.cc\\n M results.cc\"",
            );
        },
        ("loadgen", DETAIL),
        "modified sources: M loadgen.cc",
    ),
    forgery(
        "a LoadGen of another decade in every run",
        |home| {
            every(home, "mlperf_log_detail.txt", &|log| {
                edit::log_value(log, "loadgen_version", "\"16.0.5 @ 9142ef0e74\"");
            });
        },
        ("loadgen", DETAIL),
        "16.0.5 @ 9142ef0e74 is not of the time of round v6.0",
    ),
    forgery(
        "another revision of LoadGen than its history has",
        |home| {
            let log = resnet(home, &format!("Offline/{DETAIL}"));
            edit::log_value(&log, "loadgen_version", "\"6.0.5 @ 0123456789\"");
        },
        ("loadgen", DETAIL),
        "revision 0123456789, the newest commit",
    ),
    Forgery {
        tree: CLASSIC,
        ..forgery(
            "the score of all images, computed of 100",
            |home| {
                let system = "HPE_PROLIANT_ML30_RTX_4000_Ada_PCIE_20GBx1_TRT_TRT";
                let path = home.join("results").join(system);
                let path = path.join("retinanet/Offline/accuracy/accuracy.txt");
                text(
                    &path,
                    "\n\nhash=",
                    "\nfound 100 results\nfound 24781 images\n\nhash=",
                );
            },
            ("dataset", "retinanet/Offline/accuracy/accuracy.txt"),
            "accuracy is of 100 results",
        )
    },
    forgery(
        "a shorter run in user.conf than in the log",
        |home| {
            let conf = resnet(home, "SingleStream/user.conf");
            edit::append(&conf, "\n*.SingleStream.min_duration = 1000\n");
        },
        ("conf-files", "SingleStream/user.conf"),
        "min_duration is 1000, the log has requested_min_duration_ms 600000",
    ),
    forgery(
        "fewer queries in user.conf than in the log",
        |home| {
            let conf = resnet(home, "MultiStream/user.conf");
            edit::append(&conf, "\nresnet50.MultiStream.min_query_count = 10\n");
        },
        ("conf-files", "MultiStream/user.conf"),
        "min_query_count is 10",
    ),
    forgery(
        "another percentile in mlperf.conf",
        |home| {
            let conf = resnet(home, "SingleStream/mlperf.conf");
            let key = "*.SingleStream.target_latency_percentile";
            text(&conf, &format!("{key} = 90"), &format!("{key} = 50"));
        },
        ("conf-files", "SingleStream/mlperf.conf"),
        "*.SingleStream.target_latency_percentile is 50, the round's is 90",
    ),
    forgery(
        "a setting added to mlperf.conf",
        |home| {
            let conf = resnet(home, "Offline/mlperf.conf");
            edit::append(&conf, "\nresnet50.Offline.max_duration = 60000\n");
        },
        ("conf-files", "Offline/mlperf.conf"),
        "the round's has no resnet.Offline.max_duration",
    ),
    Forgery {
        line: false,
        ..forgery(
            "four accelerators in the description of a system with one",
            |home| edit::json_text(&description(home), "accelerators_per_node", "4"),
            ("system-description", "TRT_TRT.json"),
            "accelerators_per_node is 4, the directory's name says 1",
        )
    },
    Forgery {
        line: false,
        ..forgery(
            "four accelerators in a system's name",
            |home| text(&description(home), "(1x NVIDIA", "(4x NVIDIA"),
            ("system-description", "TRT_TRT.json"),
            "accelerators_per_node is 1, system_name says 4",
        )
    },
    forgery(
        "a record written by another program's line end",
        |home| with_crlf(&resnet(home, &format!("Offline/{DETAIL}")), 20),
        ("log", DETAIL),
        "20 of ",
    ),
    Forgery {
        severity: Severity::Warning,
        ..forgery(
            "CRLF throughout the summary",
            |home| with_crlf(&resnet(home, &format!("Offline/{SUMMARY}")), usize::MAX),
            ("log", SUMMARY),
            "every line ends with CRLF",
        )
    },
    forgery(
        "NUL bytes after the detail log's last record",
        |home| edit::append(&resnet(home, &format!("Offline/{DETAIL}")), "\0\0\0\0\n"),
        ("log", DETAIL),
        "a NUL byte",
    ),
    forgery(
        "a NUL byte in the summary",
        |home| {
            text(
                &resnet(home, &format!("Offline/{SUMMARY}")),
                "VALID\n",
                "VALID\0\n",
            )
        },
        ("log", SUMMARY),
        "a NUL byte",
    ),
    forgery(
        "the hash of another accuracy log",
        |home| {
            let own = hash(&resnet(home, ACCURACY));
            let other = hash(&resnet(home, "Offline/accuracy/accuracy.txt"));
            text(&resnet(home, ACCURACY), &own, &other);
        },
        ("accuracy-hash", ACCURACY),
        "Offline/accuracy/accuracy.txt, whose log is another one",
    ),
];
