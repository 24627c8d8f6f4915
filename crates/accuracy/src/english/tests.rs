//! Words equal those of `openai-whisper`.

use std::{ffi::OsStr, fs};

use regatta_random::SplitMix64;
use regatta_test_support::oracle;

use super::EnglishNormalizer;

/// Words of numbers, contractions and texts, whose combinations the rules treat in many ways.
const WORDS: [&str; 117] = [
    "o",
    "oh",
    "zero",
    "one",
    "two",
    "five",
    "six",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "nineteen",
    "ones",
    "sixes",
    "nines",
    "zeroth",
    "first",
    "second",
    "third",
    "fifth",
    "eighth",
    "ninth",
    "nineth",
    "twelfth",
    "twenty",
    "thirty",
    "forty",
    "ninety",
    "twenties",
    "fortieth",
    "hundred",
    "hundreds",
    "hundredth",
    "thousand",
    "thousands",
    "million",
    "millionth",
    "billion",
    "decillion",
    "decillions",
    "minus",
    "negative",
    "plus",
    "positive",
    "pound",
    "pounds",
    "euros",
    "dollar",
    "dollars",
    "cent",
    "cents",
    "per",
    "percent",
    "and",
    "and a half",
    "a half",
    "double",
    "triple",
    "point",
    "0",
    "1",
    "2",
    "7",
    "07",
    "10",
    "19",
    "100",
    "1000",
    "2000",
    "1960",
    "$5",
    "$0",
    "$20",
    "5%",
    "%",
    "$",
    "+",
    "-",
    "-5",
    "3rd",
    "1st",
    "1960s",
    "4 th",
    "2 s",
    "a1b2",
    "won't",
    "can't",
    "let's",
    "he's been",
    "he'd gone",
    "i'ma",
    "ma'am",
    "y'all",
    "mr",
    "mrs",
    "st",
    "dr",
    "isn't",
    "we're",
    "it's",
    "i'd",
    "i'll",
    "'t",
    "they've",
    "i'm",
    "uh",
    "mhm",
    "um",
    "colour",
    "honour",
    "grey",
    "dog 's",
    "house",
    "the",
    "well-known",
    "rock'n'roll",
];

/// Returns texts of up to twelve of the words, half of them of numbers alone.
fn texts(count: usize) -> Vec<String> {
    let mut random = SplitMix64::new(0x2545_f491);
    let mut next = |below: usize| random.below(below as u64) as usize;
    let text = |number: usize| {
        let among = if number.is_multiple_of(2) { 82 } else { WORDS.len() };
        let words: Vec<&str> = (0..=next(12)).map(|_| WORDS[next(among)]).collect();
        words.join(" ")
    };
    (0..count).map(text).collect()
}

#[test]
fn words_are_those_of_the_package() {
    let Some(python) = oracle::whisper() else { return };
    let spellings = oracle::run(&python, "whisper", "words.py", &[]);
    let normalizer = EnglishNormalizer::read(spellings.trim().as_ref()).unwrap();
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("texts");
    let texts = texts(30_000);
    fs::write(&file, texts.join("\n")).unwrap();
    let theirs = oracle::run(&python, "whisper", "words.py", &[file.as_os_str() as &OsStr]);
    let mut differing = 0;
    for (text, theirs) in texts.iter().zip(theirs.lines()) {
        let ours = normalizer.words(text).join(" ");
        if ours != theirs {
            differing += 1;
            println!("{text:?}\n  ours   {ours:?}\n  theirs {theirs:?}");
        }
    }
    assert_eq!((theirs.lines().count(), differing), (texts.len(), 0));
}

#[test]
fn spelling_files_without_spellings_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("english.json");
    let refused = || EnglishNormalizer::read(&file).err().unwrap().to_string();
    assert!(
        refused().contains("english.json cannot be read; hint: "),
        "{}",
        refused()
    );
    fs::write(&file, "[1]").unwrap();
    assert!(
        refused().contains("english.json has no spellings; hint: "),
        "{}",
        refused()
    );
}
