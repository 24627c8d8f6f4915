//! The variant of the page for Whisper on a Thor: `benchmark prepare` fetches LibriSpeech and exports the networks from a checkpoint.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use regatta_test_support::{file_server::FileServer, oracle};
use regatta_tests::{mlperf_benchmark::replaced, small_whisper};
use regatta_types::benchmark::ENGLISH_SYMBOLS;

use super::{
    board::{AGX_THOR, Board, LOADGEN},
    page,
    published_files::{sha256, tar},
    workstation::Workstation,
};

/// Few, because the fake computes an encoder in seconds.
const CLIPS: usize = 3;
/// The sets of LibriSpeech, with the chapters in each.
const SETS: [(&str, usize); 2] = [("dev-clean", 2), ("dev-other", 1)];

#[test]
fn the_commands_for_whisper_on_a_thor_lead_to_all_results() {
    let (Some(python), Some(normalizer)) = (oracle::librispeech(), oracle::whisper()) else {
        return;
    };
    let parts = tempfile::tempdir().unwrap();
    let packages = parts.path().join("packages");
    let Some(board) = Board::start(&AGX_THOR, &packages) else {
        return;
    };
    let workstation = Workstation::with_archive(&packages);
    let published = PublishedWhisper::new(parts.path(), &python, &normalizer);
    // A Python that has the packages already, as many queries as there are clips, and batches that the fake computes in seconds.
    let own = [
        (
            "benchmark prepare whisper --from whisper-large-v3 --from english.json",
            format!(
                "benchmark prepare whisper --from {} --from {} --python {}",
                published.checkpoint.display(),
                published.spellings.display(),
                python.display()
            ),
        ),
        (
            "--benchmark whisper",
            format!(
                "--benchmark whisper --conf min_query_count={CLIPS} --set batch_size={CLIPS} --set warmup_duration=0"
            ),
        ),
    ];
    let commands = page::variant_commands("whisper");
    page::execute(&commands, &own, &board, &workstation, |workspace| {
        published.write_benchmark(workspace);
    });
    page::results_are_complete(&workstation, &["Offline"], &["TEST01"]);
    let (runs, build) = page::runs_of(&workstation, "Offline");
    assert_eq!(build.matches("building with TensorRT").count(), 2, "{build}");
    for run in &runs {
        let loaded = run["loaded_engine"].as_str().unwrap();
        assert!(
            loaded.starts_with("tensorrt 10.13.3 ") && loaded.matches(": engine ").count() == 2,
            "{loaded}"
        );
        assert_eq!(run["loadgen"], format!("official:{LOADGEN}-NA"), "{run:#}");
    }
    let accuracy = runs.iter().find(|run| run["mode"] == "AccuracyOnly").unwrap();
    assert_eq!(
        accuracy["accuracy"]["value"].as_f64(),
        Some(100.0),
        "{accuracy:#}"
    );
    // The board's file has one stream. The generic rule has two.
    let spec = workstation
        .path("lab/runs")
        .join(accuracy["run"].as_str().unwrap())
        .join("spec.json");
    let spec: serde_json::Value = serde_json::from_slice(&fs::read(spec).unwrap()).unwrap();
    assert_eq!(spec["engine"]["settings"]["gpu_copy_streams"], 1, "{spec:#}");
}

/// A small checkpoint with random weights, and LibriSpeech with what Whisper finds in it as its transcripts.
struct PublishedWhisper {
    checkpoint: PathBuf,
    spellings: PathBuf,
    address: String,
    checksums: Vec<String>,
}

impl PublishedWhisper {
    fn new(directory: &Path, python: &Path, normalizer: &Path) -> Self {
        let run = |script: &str, words: &[&OsStr]| oracle::run(python, "whisper", script, words);
        let [checkpoint, networks, waveforms, dataset] =
            ["checkpoint", "networks", "waveforms", "LibriSpeech"].map(|name| directory.join(name));
        // With these weights, no response ends with its first token.
        run(
            "speech.py",
            &["checkpoint".as_ref(), checkpoint.as_os_str(), "57".as_ref()],
        );
        let positions: [&OsStr; 2] = ["--positions".as_ref(), "27".as_ref()];
        let words = [&positions[..], &[checkpoint.as_os_str(), networks.as_os_str()]].concat();
        run("../../../tools/export-whisper", &words);
        fs::create_dir(&waveforms).unwrap();
        let words = ["dataset".as_ref(), dataset.as_os_str(), waveforms.as_os_str()];
        run("speech.py", &words);
        let rules = r#"{ "prompt": [60, 61, 62, 63], "end": 59, "most_tokens": 24, "suppressed": [64, 65] }"#;
        let words = [
            "tokens".as_ref(),
            checkpoint.as_os_str(),
            networks.as_os_str(),
            rules.as_ref(),
            waveforms.as_os_str(),
        ];
        run("speech.py", &words);
        for index in 0..CLIPS {
            let symbols = fs::read(waveforms.join(format!("{index}.symbols"))).unwrap();
            write_transcript(&dataset, index, &symbols);
        }
        let archives = SETS.map(|(set, _)| {
            let archive = directory.join(format!("{set}.tar.gz"));
            let chapters = (0..CLIPS).filter(|index| SETS[index % 2].0 == set);
            let chapters: Vec<String> = chapters
                .map(|index| format!("LibriSpeech/{set}/{}", 100 + index))
                .collect();
            tar("-czf", &archive, directory, &chapters);
            fs::read(archive).unwrap()
        });
        let [clean, other] = archives;
        Self {
            checkpoint,
            spellings: oracle::run(normalizer, "whisper", "words.py", &[]).trim().into(),
            checksums: [&clean, &other].map(|archive| sha256(archive)).to_vec(),
            address: FileServer::start(BTreeMap::from([
                ("dev-clean.tar.gz", clean),
                ("dev-other.tar.gz", other),
            ]))
            .address,
        }
    }

    /// Writes the shipped benchmark into a workspace, with the sizes of this data set and the networks, whose timestamps are suppressed.
    fn write_benchmark(&self, workspace: &Path) {
        let shipped = include_str!("../../../configs/benchmarks/whisper.toml").to_owned();
        let files = SETS.map(|(_, chapters)| format!("files = {}", 2 * chapters));
        let text = replaced(
            small_whisper::resized(shipped, CLIPS),
            &[
                ("files = 2800", &files[0]),
                ("files = 2955", &files[1]),
                ("https://www.openslr.org/resources/12", &self.address),
                ("md5:42e2234ba48799c1f50f24a7926300a1", &self.checksums[0]),
                ("md5:c8d0bcc9cca99d4f8b62fcc847357931", &self.checksums[1]),
            ],
        );
        let benchmarks = workspace.join("configs/benchmarks");
        fs::create_dir_all(&benchmarks).unwrap();
        fs::write(benchmarks.join("whisper.toml"), text).unwrap();
    }
}

/// Makes the found text the transcript of a clip.
fn write_transcript(dataset: &Path, index: usize, symbols: &[u8]) {
    let text: String = symbols
        .iter()
        .map(|&symbol| char::from(ENGLISH_SYMBOLS[usize::from(symbol)]))
        .collect();
    let text = match text.trim() {
        // Each utterance has a word. The normaliser removes this one.
        "" => "UM".to_owned(),
        text => text.to_uppercase(),
    };
    let (set, _) = SETS[index % 2];
    let (speaker, chapter) = (100 + index, 200 + index);
    let name = format!("{speaker}-{chapter}");
    let path = dataset.join(format!("{set}/{speaker}/{chapter}/{name}.trans.txt"));
    fs::write(path, format!("{name}-0000 {text}\n")).unwrap();
}
