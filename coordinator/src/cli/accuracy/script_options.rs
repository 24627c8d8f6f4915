//! The options and the environment of the reference accuracy scripts. Runs nothing.

use std::{ffi::OsString, path::Path};

use regatta_accuracy::LabelType;
use regatta_datasets::label_files::{
    detection_directory, segmentation_directory, squad_feature_cache, squad_labels, transcripts_file,
};
use regatta_types::benchmark::{AccuracyMetric, Benchmark, DetectionClasses, Prep};

/// The values of the placeholders in options.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paths<'a> {
    /// `{log}`
    pub(super) log: &'a Path,
    /// `{log_directory}`
    pub(super) log_directory: &'a Path,
    /// `{map}`
    pub(super) map: &'a Path,
    /// `{scratch}`
    pub(super) scratch: &'a Path,
    /// `{out}`: where the output is kept
    pub(super) out: &'a Path,
}

impl Paths<'_> {
    /// Replaces the placeholders in an option.
    pub(super) fn fill(&self, word: &str) -> String {
        let Self {
            log,
            log_directory,
            map,
            scratch,
            out,
        } = self;
        [
            ("{log}", log),
            ("{log_directory}", log_directory),
            ("{map}", map),
            ("{scratch}", scratch),
            ("{out}", out),
        ]
        .iter()
        .fold(word.to_owned(), |word, (name, path)| {
            word.replace(name, &path.to_string_lossy())
        })
    }
}

/// Returns whether options name files of the scratch directory.
pub(super) fn need_scratch(words: &[String]) -> bool {
    words
        .iter()
        .any(|word| word.contains("{map}") || word.contains("{scratch}"))
}

/// Returns the options of the metric's reference script with the files at the benchmark's usual paths: `accuracy-imagenet.py` for
/// top-1, `accuracy-squad.py` for SQuAD, `accuracy-openimages.py` or `accuracy-coco.py` for the mean average precision.
pub(super) fn usual(dtype: Option<LabelType>, benchmark: &Benchmark) -> Vec<String> {
    match benchmark.accuracy.metric {
        AccuracyMetric::Top1 => top1(dtype.or_else(|| LabelType::of(benchmark.model.response))),
        AccuracyMetric::SquadF1 => squad(dtype, benchmark),
        AccuracyMetric::CocoMap => detections(benchmark),
        AccuracyMetric::Dice => segmentations(benchmark),
        AccuracyMetric::Wer | AccuracyMetric::EnglishWer => speech(dtype, benchmark),
        AccuracyMetric::Rouge => summaries(dtype, benchmark),
        AccuracyMetric::ClipFid => images(benchmark),
        // No reference script is for them.
        AccuracyMetric::Top5
        | AccuracyMetric::Auc
        | AccuracyMetric::MeanSquaredError
        | AccuracyMetric::ExactMatch
        | AccuracyMetric::Script => vec!["{log}".to_owned()],
    }
}

fn top1(dtype: Option<LabelType>) -> Vec<String> {
    // float32 is also the script's default.
    let dtype = dtype.map_or("float32", LabelType::word);
    [
        "--mlperf-accuracy-file",
        "{log}",
        "--imagenet-val-file",
        "{map}",
        "--dtype",
        dtype,
    ]
    .map(str::to_owned)
    .into()
}

fn squad(dtype: Option<LabelType>, benchmark: &Benchmark) -> Vec<String> {
    let data = format!("data/{}", benchmark.name);
    let [questions, vocabulary, cache] = match squad_labels(benchmark) {
        Some([questions, vocabulary]) => {
            let cache = squad_feature_cache(benchmark);
            [questions, vocabulary, cache].map(|path| path.to_string_lossy().into_owned())
        }
        // The arrays of another program.
        None => ["dev-v1.1.json", "vocab.txt", "eval_features.pickle"].map(|name| format!("{data}/{name}")),
    };
    let mut words = vec!["--log_file".to_owned(), "{log}".to_owned()];
    for (option, path) in [
        ("--val_data", questions),
        ("--vocab_file", vocabulary),
        ("--features_cache_file", cache),
    ] {
        words.extend([option.to_owned(), format!("{{scratch}}/{path}")]);
    }
    words.extend(["--out_file".to_owned(), "{out}/predictions.json".to_owned()]);
    if let Some(dtype) = dtype {
        words.extend(["--output_dtype".to_owned(), dtype.word().to_owned()]);
    }
    words
}

fn detections(benchmark: &Benchmark) -> Vec<String> {
    let directory = detection_directory(benchmark);
    // Each script reads annotations of one name.
    let annotations = benchmark.prep.as_ref().and_then(Prep::annotations);
    let is_coco = annotations.is_some_and(|file| file.ends_with("instances_val2017.json"));
    let dataset = if is_coco { "coco" } else { "openimages" };
    let mut words = vec![
        "--mlperf-accuracy-file".to_owned(),
        "{log}".to_owned(),
        format!("--{dataset}-dir"),
        format!("{{scratch}}/{}", directory.display()),
        "--output-file".to_owned(),
        format!("{{out}}/{dataset}-results.json"),
    ];
    if benchmark.accuracy.classes == DetectionClasses::Ranks {
        words.push("--use-inv-map".to_owned());
    }
    words
}

fn segmentations(benchmark: &Benchmark) -> Vec<String> {
    let directory = segmentation_directory(benchmark).unwrap_or_default();
    vec![
        "--log_file".to_owned(),
        "{log}".to_owned(),
        "--preprocessed_data_dir".to_owned(),
        format!("{{scratch}}/{}", directory.display()),
        "--postprocessed_data_dir".to_owned(),
        "{out}/predictions".to_owned(),
    ]
}

fn speech(dtype: Option<LabelType>, benchmark: &Benchmark) -> Vec<String> {
    let transcripts = transcripts_file(benchmark).unwrap_or_default();
    let dtype = match dtype {
        Some(LabelType::Int64) => "int64",
        _ => "int8",
    };
    [
        "--log_dir",
        "{log_directory}",
        "--dataset_dir",
        "{scratch}",
        "--manifest",
        &format!("{{scratch}}/{}", transcripts.display()),
        "--output_dtype",
        dtype,
    ]
    .map(str::to_owned)
    .into()
}

fn summaries(dtype: Option<LabelType>, benchmark: &Benchmark) -> Vec<String> {
    let files = benchmark.accuracy.summaries.as_ref();
    let dtype = match dtype {
        Some(LabelType::Int64) => "int64",
        _ => "int32",
    };
    let usual = [
        "--mlperf-accuracy-file",
        "{log}",
        "--dataset-file",
        &format!("{{scratch}}/{}", files.map_or("", |files| &files.expected)),
        "--dtype",
        dtype,
    ];
    let mut words = usual.map(str::to_owned).to_vec();
    if let Some(files) = files
        && let Some(option) = &files.tokenizer_option
    {
        words.extend([option.clone(), format!("{{scratch}}/{}", files.tokenizer)]);
    }
    words
}

fn images(benchmark: &Benchmark) -> Vec<String> {
    [
        "--mlperf-accuracy-file",
        "{log}",
        "--caption-path",
        &format!("{{scratch}}/{}/captions_source.tsv", benchmark.dataset.dir),
        "--output-file",
        "{out}/coco-results.json",
        "--compliance-images-path",
        "{out}/images",
    ]
    .map(str::to_owned)
    .into()
}

/// Returns the variables of the script's environment. `accuracy-squad.py` imports `tokenization` from a checkout beside it, which it
/// finds by itself only where PyTorch or TensorFlow is installed.
pub(super) fn environment(metric: AccuracyMetric, script: &Path) -> Option<(&'static str, OsString)> {
    let beside = script
        .parent()?
        .join("DeepLearningExamples/PyTorch/LanguageModeling/BERT");
    if metric != AccuracyMetric::SquadF1 || !beside.is_dir() {
        return None;
    }
    let known = std::env::var_os("PYTHONPATH");
    let paths = known.iter().flat_map(std::env::split_paths).chain([beside]);
    Some(("PYTHONPATH", std::env::join_paths(paths).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_accuracy_squad_name_the_files_beside_the_samples() {
        let text = include_str!("../../../../configs/benchmarks/bert-99.toml");
        let benchmark = Benchmark::from_toml(text).unwrap();
        let paths = Paths {
            log: Path::new("LOG"),
            log_directory: Path::new("."),
            map: Path::new("MAP"),
            scratch: Path::new("S"),
            out: Path::new("OUT"),
        };
        let words = usual(Some(LabelType::Float16), &benchmark);
        assert!(need_scratch(&words));
        let words: Vec<String> = words.iter().map(|word| paths.fill(word)).collect();
        assert_eq!(
            words.join(" "),
            "--log_file LOG --val_data S/preprocessed_data/squad/dev-v1.1.json --vocab_file S/preprocessed_data/squad/vocab.txt \
             --features_cache_file S/preprocessed_data/squad/eval_features.pickle --out_file OUT/predictions.json \
             --output_dtype float16"
        );
    }
}
