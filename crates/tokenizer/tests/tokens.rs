//! Tokens are those of the `tokenizers` library and of transformers, with which GPT-J's reference makes its prompts.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{fs, path::Path};

use proptest::prelude::*;
use regatta_test_support::oracle;
use regatta_tokenizer::{NotTokens, Tokenizer};
use serde_json::{Value, json};

const TEXTS: [&str; 12] = [
    "Below is an instruction that describes a task.\n\n### Instruction:\nSummarize it.\n\n### Input:\nIt's the team's first win, they're sure.",
    "In 2019 the price was $1,234,567.89 (up 3.5%) at 10:45pm.",
    "  Two spaces,\tand a tab \t mixed;   three before this. ",
    "Lines\r\n\r\n   with indents\n\n\n and ends \n",
    "IT'S WE'LL can't I'D 'tis ''quoted'' don''t 'Ve",
    "Zoë Kravitz – “naïve” café, Größe, Москва, 東京で会う, 한국어, עברית",
    "½ Ⅷ ٣٤٥ 1234567 3rd x2y3",
    "emoji 👍🏽 and e\u{301} combining, \u{a0}no-break\u{2003}em space\u{3000}wide",
    "(CNN) -- !!!???... [http://example.org/a?b=c&d=1] #tag @name\n--\n",
    "",
    " ",
    "\u{85}next\u{1c}line \u{feff}mark",
];

fn tokenizers(place: &Path) -> Option<()> {
    let python = oracle::summaries()?;
    let texts = place.join("texts.json");
    fs::write(&texts, json!(TEXTS).to_string()).unwrap();
    oracle::run(
        &python,
        "summaries",
        "tokens.py",
        &[texts.as_os_str(), place.as_os_str()],
    );
    Some(())
}

#[test]
fn tokens_of_texts_are_those_of_the_published_libraries() {
    let place = tempfile::tempdir().unwrap();
    if tokenizers(place.path()).is_none() {
        return;
    }
    for name in ["gpt2", "llama3"] {
        let directory = place.path().join(name);
        let tokenizer = Tokenizer::read(&directory.join("tokenizer.json")).unwrap();
        let expected = fs::read_to_string(directory.join("tokens.json")).unwrap();
        let expected: Vec<Vec<u32>> = serde_json::from_str(&expected).unwrap();
        let mut merged = 0;
        for (text, expected) in TEXTS.iter().zip(&expected) {
            let found = tokenizer.encode(text).unwrap();
            assert_eq!(found, *expected, "{name}: {text:?}");
            assert_eq!(tokenizer.decode(&found).unwrap(), text.as_bytes(), "{name}");
            merged += text.len() - found.len();
        }
        assert!(merged > 300, "{name}: {merged} merges");
    }
}

/// Writes a tokenizer with a token for each letter, and returns its path.
fn write(place: &Path, change: impl Fn(&mut Value)) -> std::path::PathBuf {
    let mut document = json!({
        "added_tokens": [{ "id": 3, "content": "<|end|>", "special": true }],
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false },
        "model": { "vocab": { "a": 0, "b": 1, "ab": 2, "<|end|>": 3 }, "merges": [["a", "b"]] },
    });
    change(&mut document);
    let path = place.join("tokenizer.json");
    fs::write(&path, document.to_string()).unwrap();
    path
}

#[test]
fn what_a_tokenizer_does_not_have_is_named() {
    let place = tempfile::tempdir().unwrap();
    let tokenizer = Tokenizer::read(&write(place.path(), |_| {})).unwrap();
    assert_eq!(tokenizer.encode("aba"), Ok(vec![2, 0]));
    assert_eq!(tokenizer.decode(&[2, 3, 1]), Ok(b"abb".to_vec()));
    assert_eq!(tokenizer.encode("abc"), Err(NotTokens::Byte(b'c')));
    assert_eq!(tokenizer.decode(&[0, 4]), Err(NotTokens::Token(4)));

    let refused = |change: fn(&mut Value), expected: &str| {
        let error = Tokenizer::read(&write(place.path(), change))
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{expected} in {error}");
    };
    refused(
        |document| document["normalizer"] = json!({ "type": "NFC" }),
        "changes texts",
    );
    refused(
        |document| document["pre_tokenizer"] = json!({ "type": "Metaspace" }),
        "not a known one",
    );
    refused(
        |document| document["pre_tokenizer"]["add_prefix_space"] = json!(true),
        "not a known one",
    );
    refused(
        |document| document["model"]["vocab"]["€"] = json!(4),
        "the token 4 has a character",
    );
    refused(
        |document| document["model"] = json!(7),
        "does not describe a tokenizer",
    );
    let missing = Tokenizer::read(&place.path().join("none.json")).unwrap_err();
    assert!(
        missing.to_string().contains("published with the model's weights"),
        "{missing}"
    );
}

proptest! {
    #[test]
    fn any_text_of_known_bytes_becomes_its_tokens_and_itself_again(text in "[ab]{0,40}") {
        let place = tempfile::tempdir().unwrap();
        let tokenizer = Tokenizer::read(&write(place.path(), |_| {})).unwrap();
        let tokens = tokenizer.encode(&text).unwrap();
        prop_assert_eq!(tokenizer.decode(&tokens).unwrap(), text.as_bytes());
    }
}
