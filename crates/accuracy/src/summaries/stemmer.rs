//! Porter's stemmer with the changes of NLTK, which `rouge_score` uses: M. Porter, "An algorithm for suffix stripping", Program 14.3, 1980.
//! Takes words of the letters a to z and digits only.

/// Words that no rule stems well, and their stems.
const IRREGULAR: [(&str, &str); 16] = [
    ("sky", "sky"),
    ("skies", "sky"),
    ("dying", "die"),
    ("lying", "lie"),
    ("tying", "tie"),
    ("news", "news"),
    ("innings", "inning"),
    ("inning", "inning"),
    ("outings", "outing"),
    ("outing", "outing"),
    ("cannings", "canning"),
    ("canning", "canning"),
    ("howe", "howe"),
    ("proceed", "proceed"),
    ("exceed", "exceed"),
    ("succeed", "succeed"),
];

/// Suffixes of step 2, their replacements. The stem must have a positive measure.
const STEP_2: [(&str, &str); 21] = [
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("fulli", "ful"),
];

/// Suffixes of step 3 and their replacements. The stem must have a positive measure.
const STEP_3: [(&str, &str); 7] = [
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

/// Suffixes that step 4 removes. The stem must have a measure above 1.
const STEP_4: [&str; 19] = [
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism",
    "ate", "iti", "ous", "ive", "ize",
];

pub(super) fn stem(word: &str) -> String {
    if let Some((_, stem)) = IRREGULAR.iter().find(|(irregular, _)| *irregular == word) {
        return (*stem).to_owned();
    }
    if word.len() <= 2 {
        return word.to_owned();
    }
    let mut word = word.to_owned();
    for step in [
        step_1a, step_1b, step_1c, step_2, step_3, step_4, step_5a, step_5b,
    ] {
        step(&mut word);
    }
    word
}

/// Plurals.
fn step_1a(word: &mut String) {
    if word.ends_with("ies") {
        // "dies" becomes "die", and "flies" "fli".
        let dropped = if word.len() == 4 { 1 } else { 2 };
        word.truncate(word.len() - dropped);
    } else if word.ends_with("sses") {
        word.truncate(word.len() - 2);
    } else if word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
}

/// Past tenses and participles.
fn step_1b(word: &mut String) {
    if word.ends_with("ied") {
        let dropped = if word.len() == 4 { 1 } else { 2 };
        word.truncate(word.len() - dropped);
        return;
    }
    if let Some(stem) = word.strip_suffix("eed") {
        if measure(stem) > 0 {
            word.pop();
        }
        return;
    }
    let stems = ["ed", "ing"]
        .iter()
        .filter_map(|suffix| word.strip_suffix(suffix));
    let Some(length) = stems.filter(|stem| has_vowel(stem)).map(str::len).next() else {
        return;
    };
    word.truncate(length);
    if ["at", "bl", "iz"].iter().any(|end| word.ends_with(end)) {
        word.push('e');
    } else if ends_with_double_consonant(word) {
        if !word.ends_with(['l', 's', 'z']) {
            word.pop();
        }
    } else if measure(word) == 1 && ends_short(word) {
        word.push('e');
    }
}

/// A final y after a consonant.
fn step_1c(word: &mut String) {
    let Some(stem) = word.strip_suffix('y') else {
        return;
    };
    if stem.len() > 1 && is_consonant(stem.as_bytes(), stem.len() - 1) {
        word.pop();
        word.push('i');
    }
}

fn step_2(word: &mut String) {
    if word.strip_suffix("alli").is_some_and(|stem| measure(stem) > 0) {
        word.truncate(word.len() - 2);
        return step_2(word);
    }
    if replace(word, &STEP_2) {
        return;
    }
    // The l counts as a part of the stem.
    if word.ends_with("logi") && measure(&word[..word.len() - 3]) > 0 {
        word.pop();
    }
}

fn step_3(word: &mut String) {
    replace(word, &STEP_3);
}

fn step_4(word: &mut String) {
    let found = STEP_4
        .iter()
        .find_map(|suffix| Some((*suffix, word.strip_suffix(suffix)?)));
    let Some((suffix, stem)) = found else { return };
    if measure(stem) > 1 && (suffix != "ion" || stem.ends_with(['s', 't'])) {
        word.truncate(stem.len());
    }
}

/// A final e.
fn step_5a(word: &mut String) {
    let Some(stem) = word.strip_suffix('e') else {
        return;
    };
    let measure = measure(stem);
    if measure > 1 || (measure == 1 && !ends_short(stem)) {
        word.pop();
    }
}

/// A final double l.
fn step_5b(word: &mut String) {
    if word.ends_with("ll") && measure(&word[..word.len() - 1]) > 1 {
        word.pop();
    }
}

/// Replaces the first suffix of `rules` that the word has, if the stem before it has a positive measure. Returns whether there is one.
fn replace(word: &mut String, rules: &[(&str, &str)]) -> bool {
    let found = rules
        .iter()
        .find_map(|(suffix, replacement)| Some((word.strip_suffix(suffix)?, replacement)));
    let Some((stem, replacement)) = found else {
        return false;
    };
    if measure(stem) > 0 {
        word.truncate(stem.len());
        word.push_str(replacement);
    }
    true
}

/// Whether a letter is a consonant: no vowel, and no y behind a consonant. Digits are consonants.
fn is_consonant(word: &[u8], at: usize) -> bool {
    let is_vowel = |byte: u8| matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u');
    if word[at] != b'y' {
        return !is_vowel(word[at]);
    }
    // The first y of several is a consonant at the beginning or behind a vowel. The next ones alternate.
    let before = word[..at].iter().rev().take_while(|byte| **byte == b'y').count();
    let first = at - before;
    let is_first_consonant = first == 0 || is_vowel(word[first - 1]);
    is_first_consonant == before.is_multiple_of(2)
}

/// Returns the measure of a stem: how often a consonant follows a vowel.
fn measure(stem: &str) -> usize {
    let (mut count, mut was_vowel, mut was_consonant) = (0, false, false);
    for (at, &byte) in stem.as_bytes().iter().enumerate() {
        let is_vowel = match byte {
            b'a' | b'e' | b'i' | b'o' | b'u' => true,
            b'y' => at > 0 && was_consonant,
            _ => false,
        };
        count += usize::from(was_vowel && !is_vowel);
        (was_vowel, was_consonant) = (is_vowel, !is_vowel);
    }
    count
}

fn has_vowel(stem: &str) -> bool {
    (0..stem.len()).any(|at| !is_consonant(stem.as_bytes(), at))
}

fn ends_with_double_consonant(word: &str) -> bool {
    match word.as_bytes() {
        [.., before, last] => before == last && is_consonant(word.as_bytes(), word.len() - 1),
        _ => false,
    }
}

/// Whether a word ends with consonant, vowel, and a consonant other than w, x and y, or is a vowel and a consonant.
fn ends_short(word: &str) -> bool {
    let (word, length) = (word.as_bytes(), word.len());
    match length {
        0 | 1 => false,
        2 => !is_consonant(word, 0) && is_consonant(word, 1),
        _ => {
            is_consonant(word, length - 3)
                && !is_consonant(word, length - 2)
                && is_consonant(word, length - 1)
                && !matches!(word[length - 1], b'w' | b'x' | b'y')
        }
    }
}
