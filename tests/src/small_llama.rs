//! llama3.1-8b-edge with a small random model in llama.cpp's server: its articles, its model with a tokenizer, and the driver of the server.
//! Runs and their results are not done here.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_test_support::oracle;
use serde_json::{Value, json};

use crate::{Lab, mlperf_benchmark::replaced};

/// The benchmark.
pub const BENCHMARK: &str = "llama3.1-8b-edge";
/// The model as GGUF, below the device's scratch directory.
pub const MODEL: &str = "models/small.gguf";
/// The directory of the benchmark's weights and tokenizer.
pub const TOKENIZER: &str = "models/llama3.1-8b";
/// Tokens of the longest prompt.
const LONGEST: usize = 12;
/// The token ids of the model's words. `make_model.py` has the same number.
const WORDS: usize = 94;

/// The size of the benchmark.
#[derive(Debug, Clone, Copy)]
pub struct SmallLlama {
    /// The number of articles.
    pub samples: usize,
    /// The number of tokens of each answer.
    pub max_tokens: usize,
}

impl SmallLlama {
    /// Resizes the benchmark's file.
    ///
    /// # Panics
    /// Panics when the file has other sizes.
    #[must_use]
    pub fn resize(self, text: String) -> String {
        replaced(
            text,
            &[
                ("_samples = 5000", &format!("_samples = {}", self.samples)),
                ("input_shape = [8000]", &format!("input_shape = [{LONGEST}]")),
                ("max_tokens = 128", &format!("max_tokens = {}", self.max_tokens)),
            ],
        )
    }

    /// Writes articles with prompts of 4 to 12 tokens in their published form. `summary` returns what is expected for an article.
    ///
    /// # Panics
    /// Panics when they cannot be written.
    pub fn write_articles(self, directory: &Path, summary: impl Fn(usize) -> String) {
        let article = |number: usize| {
            let length = 4 + number % (LONGEST - 3);
            let token = |place| (number * 31 + place * 7) % WORDS;
            let prompt: Vec<usize> = (0..length).map(token).collect();
            json!({ "input": "", "output": summary(number), "tok_input": prompt })
        };
        fs::create_dir_all(directory).expect("the directory of the articles");
        let articles = Value::Array((0..self.samples).map(article).collect());
        let file = directory.join("sample_cnn_eval_5000.json");
        fs::write(file, articles.to_string()).expect("the articles");
    }
}

/// Makes the model, with its tokenizer, and the driver of the server, and returns the path of the driver.
///
/// # Panics
/// Panics when the script fails or a file cannot be written.
#[must_use]
pub fn add_model(lab: &Lab, python: &Path) -> PathBuf {
    let [model, tokenizer] = [MODEL, TOKENIZER].map(|path| lab.scratch().join(path));
    fs::create_dir_all(&tokenizer).expect("the directory of the tokenizer");
    let words = [model.as_os_str(), tokenizer.as_os_str()];
    oracle::run(python, "llama-cpp", "make_model.py", &words);
    let driver = lab.workspace().join("driver.toml");
    write_driver(&driver, python);
    driver
}

/// Returns the text of tokens.
///
/// # Panics
/// Panics when the model has no such token.
#[must_use]
pub fn text(lab: &Lab, tokens: &[u32]) -> String {
    let file = lab.scratch().join(TOKENIZER).join("tokenizer.json");
    let tokenizer = fs::read_to_string(file).expect("the tokenizer");
    let tokenizer: Value = serde_json::from_str(&tokenizer).expect("JSON");
    let vocabulary = tokenizer["model"]["vocab"].as_object().expect("a vocabulary");
    let word = |token: &u32| {
        let found = vocabulary.iter().find(|(_, id)| **id == json!(token));
        // A space is written as this letter.
        found.expect("a token of the model").0.replace('Ġ', " ")
    };
    tokens.iter().map(word).collect()
}

/// Writes a driver for the oracle's script, made from the shipped one for llama.cpp's own program.
fn write_driver(path: &Path, python: &Path) {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/servers/llama-cpp.toml");
    let text = fs::read_to_string(shipped).expect("the shipped driver");
    let (before, rest) = text.split_once("command = [").expect("a command");
    let (_, after) = rest.split_once("]\n").expect("the end of the command");
    let script = oracle::directory("llama-cpp").join("serve.py");
    let command = format!(
        "command = [\"{}\", \"{}\", \"{{model}}\", \"{{port}}\", \"{{context}}\", \"{{parallel}}\"]\n",
        python.display(),
        script.display()
    );
    // The model knows nothing.
    let after = replaced(after.to_owned(), &[("contains = \"Paris\"\n", "")]);
    fs::write(path, format!("{before}{command}{after}")).expect("the driver");
}
