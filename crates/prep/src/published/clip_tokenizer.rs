//! The tokenizer of CLIP for captions in English: pairs of tokens are merged in the order of its published list. Texts are padded elsewhere.
//!
//! The reference repairs texts with `ftfy` first. Texts that this could change, and those with special tokens, are refused: no published caption is
//! one of them.

use std::collections::HashMap;

use super::error::{CaptionFault, RecordError};

/// The first line of the published list.
const HEADING: &str = "#version";
/// Marks the end of a word.
const END_OF_WORD: &str = "</w>";
/// The number of values of a byte.
const BYTES: u32 = 256;
/// Contractions that are words of their own in CLIP's pattern.
const ENDINGS: [&str; 7] = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];

/// A tokenizer with CLIP's vocabulary: a token for each byte, one for each byte at the end of a word, one for each merge, and the two special ones.
#[derive(Debug)]
pub(super) struct ClipTokenizer {
    /// The token of each byte.
    bytes: [u32; BYTES as usize],
    /// The token that a pair of tokens becomes. Smaller tokens are merged first.
    merges: HashMap<(u32, u32), u32>,
    start: u32,
    end: u32,
}

impl ClipTokenizer {
    /// Reads the published list of merges: a heading, and a line for each pair.
    pub(super) fn new(merges: &[u8]) -> Result<Self, RecordError> {
        let text = str::from_utf8(merges).map_err(|_| RecordError::NotText)?;
        let symbols = symbols();
        let mut bytes = [0; BYTES as usize];
        let mut tokens = HashMap::new();
        for (token, &(byte, symbol)) in (0..).zip(&symbols) {
            bytes[usize::from(byte)] = token;
            tokens.insert(symbol.to_string(), token);
            tokens.insert(format!("{symbol}{END_OF_WORD}"), token + BYTES);
        }
        let mut tokenizer = Self {
            bytes,
            merges: HashMap::new(),
            start: 0,
            end: 0,
        };
        let mut next = 2 * BYTES;
        for (index, line) in text.lines().enumerate() {
            if index == 0 && line.starts_with(HEADING) {
                continue;
            }
            let merge = RecordError::Merge { line: index + 1 };
            let Some((first, second)) = line.split_once(' ') else {
                return Err(merge);
            };
            let pair = tokens.get(first).copied().zip(tokens.get(second).copied());
            let is_new = tokens.insert(format!("{first}{second}"), next).is_none();
            let Some(pair) = pair.filter(|_| is_new) else {
                return Err(merge);
            };
            tokenizer.merges.insert(pair, next);
            next += 1;
        }
        (tokenizer.start, tokenizer.end) = (next, next + 1);
        Ok(tokenizer)
    }

    /// Returns the number of tokens.
    pub(super) const fn size(&self) -> u32 {
        self.end + 1
    }

    /// Returns the tokens of a caption between those of start and end, at most `length`.
    pub(super) fn tokens(&self, caption: &str, length: usize) -> Result<Vec<u32>, CaptionFault> {
        check(caption)?;
        let text = caption.to_ascii_lowercase();
        let mut tokens = vec![self.start];
        for word in words(&text) {
            self.add(word, &mut tokens);
        }
        tokens.truncate(length - 1);
        tokens.push(self.end);
        Ok(tokens)
    }

    /// Adds the tokens of a word.
    fn add(&self, word: &str, tokens: &mut Vec<u32>) {
        let mut parts: Vec<u32> = word.bytes().map(|byte| self.bytes[usize::from(byte)]).collect();
        if let Some(last) = parts.last_mut() {
            *last += BYTES;
        }
        let merged = |parts: &[u32]| {
            let pairs = parts.windows(2).map(|pair| (pair[0], pair[1]));
            let known = pairs.filter_map(|pair| self.merges.get(&pair).map(|token| (*token, pair)));
            known.min()
        };
        while let Some((token, pair)) = merged(&parts) {
            let mut left = std::mem::take(&mut parts).into_iter().peekable();
            while let Some(part) = left.next() {
                let is_pair = part == pair.0 && left.next_if_eq(&pair.1).is_some();
                parts.push(if is_pair { token } else { part });
            }
        }
        tokens.extend(parts);
    }
}

/// Returns each byte with the character that the list of merges writes for it, in the order of tokens: first the printable bytes, as themselves, then
/// the others, as characters from U+0100.
fn symbols() -> Vec<(u8, char)> {
    let is_printable = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let printable = (0..=u8::MAX)
        .filter(is_printable)
        .map(|byte| (byte, char::from(byte)));
    let others = (0..=u8::MAX).filter(|byte| !is_printable(byte));
    printable.chain(others.zip('\u{100}'..)).collect()
}

/// Checks that a caption has only characters that the reference takes as they are.
fn check(caption: &str) -> Result<(), CaptionFault> {
    if let Some(other) = caption.chars().find(|character| !matches!(character, ' '..='~')) {
        return Err(CaptionFault::Character(other));
    }
    // The padding of the second text encoder is a special token.
    if caption.contains('!') {
        return Err(CaptionFault::Character('!'));
    }
    if caption.contains("<|") {
        return Err(CaptionFault::SpecialToken);
    }
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte == b'#' || byte.is_ascii_alphanumeric())
    };
    let mut after = caption
        .split('&')
        .skip(1)
        .filter_map(|after| after.split_once(';'));
    match after.any(|(name, _)| is_name(name)) {
        true => Err(CaptionFault::Entity),
        false => Ok(()),
    }
}

/// Returns the words of a text in lower case: endings after an apostrophe, alphabetic characters, single digits, and other characters.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut left = text;
    std::iter::from_fn(move || {
        left = left.trim_start_matches(' ');
        let first = left.bytes().next()?;
        let ending = ENDINGS.iter().find(|ending| left.starts_with(**ending));
        let length_of = |is_in: fn(&u8) -> bool| left.bytes().take_while(is_in).count();
        let length = match ending {
            Some(ending) => ending.len(),
            None if first.is_ascii_alphabetic() => length_of(u8::is_ascii_alphabetic),
            None if first.is_ascii_digit() => 1,
            None => length_of(|byte| *byte != b' ' && !byte.is_ascii_alphanumeric()),
        };
        let (word, rest) = left.split_at(length);
        left = rest;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_divided_as_by_clips_pattern() {
        let found = |text: &'static str| words(text).collect::<Vec<_>>();
        assert_eq!(found("a dog's 2nd  toy"), ["a", "dog", "'s", "2", "nd", "toy"]);
        assert_eq!(
            found("i'll, \"yes\"... 'so"),
            ["i", "'ll", ",", "\"", "yes", "\"...", "'s", "o"]
        );
        assert_eq!(found("-'m ''ve"), ["-'", "m", "''", "ve"]);
        assert_eq!(found(" "), [] as [&str; 0]);
    }

    #[test]
    fn the_first_merges_of_the_list_are_made_first() {
        let merges = b"#version: 0.2\na b\nb c</w>\nab c</w>\na a\n";
        let tokenizer = ClipTokenizer::new(merges).unwrap();
        let symbol = |symbol: u8| u32::from(symbol - b'!');
        let found = |text| tokenizer.tokens(text, 8).unwrap();
        assert_eq!(found("abc"), [516, 514, 517]);
        assert_eq!(found("Bc"), [516, 513, 517]);
        assert_eq!(found("aaab"), [516, 515, symbol(b'a'), symbol(b'b') + 256, 517]);
        assert_eq!(
            found("c c c c c c c c"),
            [vec![516], vec![symbol(b'c') + 256; 6], vec![517]].concat()
        );
    }

    #[test]
    fn captions_that_the_reference_would_change_are_refused() {
        for (caption, fault) in [
            ("a caf\u{e9}", CaptionFault::Character('\u{e9}')),
            ("two\tdogs", CaptionFault::Character('\t')),
            ("wow!", CaptionFault::Character('!')),
            ("<|endoftext|>", CaptionFault::SpecialToken),
            ("black &amp; white", CaptionFault::Entity),
        ] {
            assert_eq!(check(caption), Err(fault), "{caption}");
        }
        assert_eq!(check("S&B; black & white; a < b"), Err(CaptionFault::Entity));
        assert_eq!(check("S & B; black & white"), Ok(()));
    }

    #[test]
    fn damaged_lists_of_merges_are_refused() {
        for (merges, line) in [
            ("#version\na b\nab", 3),
            ("x yz\n", 1),
            ("a b\na b\n", 2),
            ("\n", 1),
        ] {
            let error = ClipTokenizer::new(merges.as_bytes()).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("line {line} is not a pair of tokens"),
                "{merges}"
            );
        }
    }
}
