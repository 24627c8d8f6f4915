//! Samples of SQuAD equal those of the reference's own tokenizer, and F1 equals what the reference prints. Bad datasets get one sentence
//! with the file and a remedy, and leave nothing that looks complete.
//!
//! `tests/oracles/squad` installs the tokenizer and makes questions with every awkward character. `REGATTA_QUESTIONS=N` sets their number;
//! `.ci/long` compares 2,000.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use npyz::NpyFile;
use regatta_accuracy::{LabelType, measure};
use regatta_catalogue::known;
use regatta_datasets::label_files::{squad_feature_cache, squad_labels};
use regatta_prep::{PrepError, PrepReport, prepare, verify_samples};
use regatta_random::SplitMix64;
use regatta_test_support::oracle;
use regatta_types::{
    benchmark::{Benchmark, Prep, Squad},
    samples::SampleSet,
};

const LENGTH: usize = 384;

/// Returns bert-99 for `samples` samples of any questions, with a vocabulary of `tokens` tokens.
fn bert(samples: usize, tokens: usize) -> Benchmark {
    let mut found = known::benchmarks().unwrap();
    found.retain(|benchmark| benchmark.name == "bert-99");
    let mut benchmark = found.remove(0);
    benchmark.dataset.total_samples = samples;
    change(&mut benchmark, |kind| {
        kind.questions_sha256 = None;
        kind.vocabulary_sha256 = None;
        kind.vocabulary_tokens = tokens;
    });
    benchmark
}

fn change(benchmark: &mut Benchmark, change: impl FnOnce(&mut Squad)) {
    let Some(Prep::Squad(kind)) = &mut benchmark.prep else {
        unreachable!("bert-99 is made of questions")
    };
    change(kind);
}

fn numbers(path: &Path) -> Vec<i32> {
    NpyFile::new(&fs::read(path).unwrap()[..])
        .unwrap()
        .into_vec()
        .unwrap()
}

/// Logs pseudo-random logits for every sample, as the bytes that `encode` makes of a logit.
fn log_of<const N: usize>(samples: usize, encode: impl Fn(f32) -> [u8; N]) -> String {
    let mut random = SplitMix64::new(0);
    // Multiples of 1/64 up to 16: some are equal.
    let mut next = || f32::from((random.bits() >> 53) as u16) / 64.0 - 16.0;
    let mut log = String::from("[");
    for sample in 0..samples {
        let comma = if sample == 0 { "" } else { "," };
        let _ = write!(
            log,
            "{comma}\n{{ \"seq_id\" : {sample}, \"qsl_idx\" : {sample}, \"data\" : \""
        );
        for byte in (0..2 * LENGTH).flat_map(|_| encode(next())) {
            let _ = write!(log, "{byte:02X}");
        }
        log.push_str("\" }");
    }
    log + "\n]\n"
}

#[test]
fn samples_and_scores_are_those_of_the_reference() {
    let Some(python) = oracle::squad() else { return };
    let questions = env::var("REGATTA_QUESTIONS").unwrap_or_else(|_| "200".to_owned());
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    oracle::run(
        &python,
        "squad",
        "make_squad.py",
        &[data.as_os_str(), questions.as_ref()],
    );
    let printed = oracle::run(&python, "squad", "features.py", &[data.as_os_str()]);
    let samples: usize = printed.trim().parse().unwrap();
    let tokens = fs::read_to_string(data.join("vocab.txt"))
        .unwrap()
        .matches('\n')
        .count();
    let benchmark = bert(samples, tokens);
    let report = prepare(&benchmark, &data, place.path(), &mut |_, _| {}).unwrap();
    for name in ["input_ids", "input_mask", "segment_ids"] {
        let ours = numbers(&report.dir.join(format!("{name}.npy")));
        let theirs = numbers(&data.join(format!("reference/{name}.npy")));
        assert_eq!(ours.len(), theirs.len());
        let rows = ours.chunks(LENGTH).zip(theirs.chunks(LENGTH)).enumerate();
        let differing: Vec<_> = rows.filter(|(_, (ours, theirs))| ours != theirs).collect();
        assert!(
            differing.is_empty(),
            "{name}: {} samples differ, first {:?}",
            differing.len(),
            differing[0]
        );
    }
    println!("{samples} samples of {questions} questions: no number differs");

    let log = place.path().join("mlperf_log_accuracy.json");
    let labels = squad_labels(&benchmark)
        .unwrap()
        .map(|path| place.path().join(path));
    let cache = place.path().join(squad_feature_cache(&benchmark));
    let words = |dtype: &'static str| {
        let answers = place.path().join("answers.json");
        let options = [
            ("--log_file", log.clone()),
            ("--val_data", labels[0].clone()),
            ("--vocab_file", labels[1].clone()),
            ("--features_cache_file", cache.clone()),
            ("--out_file", answers),
            ("--output_dtype", PathBuf::from(dtype)),
        ];
        options
            .into_iter()
            .flat_map(|(option, value)| [PathBuf::from(option), value])
            .collect::<Vec<_>>()
    };
    for (text, dtype) in [
        (log_of(samples, f32::to_le_bytes), LabelType::Float32),
        (
            log_of(samples, |logit| half::f16::from_f32(logit).to_le_bytes()),
            LabelType::Float16,
        ),
    ] {
        fs::write(&log, text).unwrap();
        let measured = measure(&benchmark, Some(dtype), &log, place.path()).unwrap();
        let words = words(dtype.word());
        let words: Vec<_> = words.iter().map(|word| word.as_os_str()).collect();
        let printed = oracle::run(&python, "squad", "f1.py", &words);
        assert_eq!(printed.lines().last(), Some(measured.figure.to_string().as_str()));
        println!("{dtype:?}: {}", measured.figure);
    }
}

const VOCABULARY: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nwho\nsails\nregatta\n##s\n";
const SQUAD: &str = r#"{"version": "1.1", "data": [{"title": "x", "paragraphs": [{"context": "Who sails regattas",
"qas": [{"id": "1", "question": "who", "answers": [{"text": "Who", "answer_start": 0}]},
{"id": "2", "question": "sails?", "answers": [{"text": "sails the regattas", "answer_start": 4}]}]}]}]}"#;

/// Two questions with the benchmark for them.
struct Dataset {
    benchmark: Benchmark,
    dir: tempfile::TempDir,
}

impl Dataset {
    fn new() -> Self {
        let dataset = Self {
            benchmark: bert(2, 9),
            dir: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(dataset.at("data")).unwrap();
        dataset.write("dev-v1.1.json", SQUAD.as_bytes());
        dataset.write("vocab.txt", VOCABULARY.as_bytes());
        dataset
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.at("data").join(name), bytes).unwrap();
    }

    fn prepare(&self) -> Result<PrepReport, PrepError> {
        prepare(&self.benchmark, &self.at("data"), self.dir.path(), &mut |_, _| {})
    }

    /// Prepares and returns the error with its causes, after checking that nothing was written.
    fn error(&self) -> String {
        let error = self.prepare().unwrap_err();
        assert!(!self.at("preprocessed_data").exists());
        self.printed(&error)
    }

    fn printed(&self, error: &dyn std::error::Error) -> String {
        let causes = std::iter::successors(error.source(), |&error| error.source());
        let text = causes.fold(error.to_string(), |line, cause| format!("{line}: {cause}"));
        text.replace(&self.dir.path().display().to_string(), "DIR")
    }
}

#[test]
fn a_set_is_made_once_verified_and_repaired() {
    let dataset = Dataset::new();
    let report = dataset.prepare().unwrap();
    assert_eq!((report.samples, report.unchanged), (2, 0));
    let cache = dataset.at("").join(squad_feature_cache(&dataset.benchmark));
    fs::write(&cache, "of these questions").unwrap();
    assert_eq!(dataset.prepare().unwrap().unchanged, 2);
    assert!(cache.exists());
    let verify = || verify_samples(&report.dir, None, &mut |_, _| {}).unwrap();
    assert!(verify().is_equal());
    let mask = report.dir.join("input_mask.npy");
    let mut bytes = fs::read(&mask).unwrap();
    bytes[200] ^= 1;
    fs::write(&mask, bytes).unwrap();
    assert_eq!(verify().differing, ["input_mask.npy"]);
    fs::write(report.dir.join(SampleSet::UNFINISHED), "").unwrap();
    assert_eq!(dataset.prepare().unwrap().unchanged, 0);
    assert!(verify().is_equal() && SampleSet::check_whole(&report.dir).is_ok());
    // Other answers change no sample, but what the reference's script has kept.
    dataset.write("dev-v1.1.json", SQUAD.replace("\"Who\"", "\"who\"").as_bytes());
    assert_eq!(dataset.prepare().unwrap().unchanged, 2);
    assert!(!cache.exists());
}

#[test]
fn bad_datasets_are_named_with_a_remedy() {
    let mut errors = Vec::new();
    let mut note = |title: &str, change: &dyn Fn(&mut Dataset)| {
        let mut dataset = Dataset::new();
        change(&mut dataset);
        errors.push(format!("{title}: {}", dataset.error()));
    };
    note("no directory", &|set| fs::remove_dir_all(set.at("data")).unwrap());
    note("no questions", &|set| {
        fs::remove_file(set.at("data/dev-v1.1.json")).unwrap()
    });
    note("no vocabulary", &|set| {
        fs::remove_file(set.at("data/vocab.txt")).unwrap()
    });
    note("truncated", &|set| {
        set.write("dev-v1.1.json", &SQUAD.as_bytes()[..200])
    });
    note("another form", &|set| {
        set.write("dev-v1.1.json", SQUAD.replace("context", "text").as_bytes())
    });
    note("another year", &|set| {
        set.write("dev-v1.1.json", SQUAD.replace("\"1.1\"", "\"v2.0\"").as_bytes())
    });
    note("changed questions", &|set| {
        change(&mut set.benchmark, |kind| {
            kind.questions_sha256 = Some("0123".to_owned())
        });
    });
    note("fewer questions", &|set| set.benchmark.dataset.total_samples = 3);
    note("a shorter vocabulary", &|set| {
        change(&mut set.benchmark, |kind| kind.vocabulary_tokens = 30522)
    });
    note("a cased vocabulary", &|set| {
        set.write("vocab.txt", VOCABULARY.replace("who", "Who").as_bytes())
    });
    note("binary", &|set| set.write("vocab.txt", b"[PAD]\n\xff"));
    note("another input", &|set| {
        set.benchmark.model.further_inputs.pop();
    });
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn windows_that_do_not_move_are_refused_with_the_benchmark() {
    let text = include_str!("../../../configs/benchmarks/bert-99.toml");
    let error = Benchmark::from_toml(&text.replace("stride = 128", "stride = 0")).unwrap_err();
    assert!(error.to_string().contains("expected a nonzero usize"), "{error}");
    // The smallest stride makes more samples than the benchmark has; they are counted, not kept.
    let mut dataset = Dataset::new();
    dataset.write(
        "dev-v1.1.json",
        SQUAD
            .replace(
                "\"context\": \"",
                &format!("\"context\": \"{}", "a ".repeat(20_000)),
            )
            .as_bytes(),
    );
    change(&mut dataset.benchmark, |kind| {
        kind.stride = std::num::NonZeroUsize::MIN
    });
    let error = dataset.error();
    assert!(error.contains(" samples, but the benchmark has 2"), "{error}");
}

#[test]
fn a_log_without_logits_is_refused_at_its_entry() {
    let dataset = Dataset::new();
    let log = dataset.at("mlperf_log_accuracy.json");
    let mut errors = Vec::new();
    let mut note = |title: &str, entries: &[(usize, &str)], dtype| {
        let lines: Vec<String> = entries
            .iter()
            .map(|(sample, data)| {
                format!("\n{{ \"seq_id\" : 0, \"qsl_idx\" : {sample}, \"data\" : \"{data}\" }}")
            })
            .collect();
        fs::write(&log, format!("[{}\n]\n", lines.join(","))).unwrap();
        let error = measure(&dataset.benchmark, dtype, &log, dataset.dir.path()).unwrap_err();
        errors.push(format!("{title}: {}", dataset.printed(&error)));
    };
    let zero = "0000000000000000";
    note("not prepared", &[(0, zero)], None);
    dataset.prepare().unwrap();
    note("no entry", &[], None);
    note("another sample", &[(0, zero), (2, zero)], None);
    note("half a pair", &[(0, "00000000")], None);
    note("another type", &[(0, zero)], Some(LabelType::Int32));
    note("no number", &[(1, zero), (0, "0000C07F00000000")], None);
    insta::assert_snapshot!(errors.join("\n"));

    // One sample of two: the first question is answered by its first word, the other one is not.
    let logits: String = (0..2 * LENGTH)
        .map(|at| if at / 2 == 3 { "0000803F" } else { "00000000" })
        .collect();
    fs::write(
        &log,
        format!("[\n{{ \"seq_id\" : 0, \"qsl_idx\" : 0, \"data\" : \"{logits}\" }}\n]\n"),
    )
    .unwrap();
    let measured = measure(&dataset.benchmark, None, &log, dataset.dir.path()).unwrap();
    assert_eq!(
        measured.figure.to_string(),
        r#"{"exact_match": 50.0, "f1": 50.0}"#
    );
    assert_eq!(measured.figure.missing(), [1]);
    assert!(!measured.reached());

    // The same with padding that the network masks.
    let masked: String = (0..2 * LENGTH)
        .map(|at| match at / 2 {
            3 => "0000803F",
            place if place < LENGTH - 3 => "00000000",
            _ => "000080FF",
        })
        .collect();
    fs::write(&log, fs::read_to_string(&log).unwrap().replace(&logits, &masked)).unwrap();
    let measured = measure(&dataset.benchmark, None, &log, dataset.dir.path()).unwrap();
    assert_eq!(
        measured.figure.to_string(),
        r#"{"exact_match": 50.0, "f1": 50.0}"#
    );
    assert_eq!(
        measured.figure.not_finite().as_deref(),
        Some("1 samples have logits of minus infinity")
    );
}
