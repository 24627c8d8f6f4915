//! The header of a `.npy` file: element type, order and shape, by NEP 1 and `numpy.lib.format`. Versions 1.0 to 3.0 are read, and 1.0 is
//! written with the exact bytes of `numpy.save`, so that `cmp` compares samples with those of the reference implementations.
//!
//! This is our own code, because a crate for it brings a large parser of Python literals to the board, and writes a shape as `(1, 8, 8, )`. It
//! only reads the dictionary that numpy writes. Callers check the type and read the data.

use std::{
    fmt,
    io::{self, Read},
};

/// Longest header in bytes. numpy since 1.24 has the same limit (`max_header_size`).
const MAX: u32 = 10_000;
/// The beginning of a file of version 1.0.
const BEGIN: &[u8] = b"\x93NUMPY\x01\x00";
/// The alignment of the data in the file.
const ALIGNMENT: usize = 64;
/// The digits for which numpy reserves space in the first dimension.
const GROWTH_DIGITS: usize = 21;

/// Why a file has no valid `.npy` header.
#[derive(Debug, thiserror::Error)]
pub enum NpyHeaderError {
    /// The file cannot be read, or ends within the header.
    #[error("its header cannot be read")]
    Unreadable(#[from] io::Error),
    /// The file does not start with the magic string.
    #[error("it does not begin with numpy's magic bytes")]
    Mark,
    /// The format version is unknown.
    #[error("it is of version {0}.{1}, known are 1.0, 2.0 and 3.0")]
    Version(u8, u8),
    /// The header is too long.
    #[error("its header has {0} bytes, at most {MAX} are accepted")]
    TooLong(u32),
    /// The header does not contain exactly the required entries.
    #[error("its header is not a dictionary of descr, fortran_order and shape")]
    Dictionary,
}

/// The element type, order and shape of a `.npy` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpyHeader {
    /// The element type as written: numpy's name in quotes, for example `'<f4'`, or a list for structured elements.
    pub descr: String,
    /// Whether the first dimension varies fastest in memory.
    pub fortran_order: bool,
    /// The dimensions.
    pub shape: Vec<u64>,
}

impl NpyHeader {
    /// Returns the header of an array in C order with the numpy type `dtype`.
    #[must_use]
    pub fn in_c_order(dtype: &str, shape: impl IntoIterator<Item = usize>) -> Self {
        Self {
            descr: format!("'{dtype}'"),
            fortran_order: false,
            shape: shape.into_iter().map(|dim| dim as u64).collect(),
        }
    }

    /// Returns the bytes in front of the data, as numpy writes them. In Fortran order, numpy reserves the space in the last dimension; this
    /// is for arrays in C order.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let dims: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        let last = if dims.len() == 1 { "," } else { "" };
        let order = if self.fortran_order { "True" } else { "False" };
        let mut text = format!(
            "{{'descr': {}, 'fortran_order': {order}, 'shape': ({}{last}), }}",
            self.descr,
            dims.join(", ")
        );
        if let Some(first) = dims.first() {
            text.push_str(&" ".repeat(GROWTH_DIGITS.saturating_sub(first.len())));
        }
        let before = BEGIN.len() + size_of::<u16>();
        let padding = ALIGNMENT - (before + text.len() + 1) % ALIGNMENT;
        text.push_str(&" ".repeat(padding % ALIGNMENT));
        text.push('\n');
        let mut bytes = BEGIN.to_vec();
        // A header only exceeds 64 KiB with thousands of dimensions.
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes
    }

    /// Returns whether the elements have the numpy type `dtype`.
    #[must_use]
    pub fn is_of(&self, dtype: &str) -> bool {
        let name = self
            .descr
            .strip_prefix('\'')
            .and_then(|rest| rest.strip_suffix('\''));
        name == Some(dtype)
    }

    /// Reads exactly the header, so that the data comes next.
    ///
    /// # Errors
    /// [`NpyHeaderError`].
    pub fn read(from: &mut impl Read) -> Result<Self, NpyHeaderError> {
        let mut begin = [0; 8];
        from.read_exact(&mut begin).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => NpyHeaderError::Mark,
            _ => error.into(),
        })?;
        let [mark @ .., major, minor] = &begin;
        if mark != b"\x93NUMPY" {
            return Err(NpyHeaderError::Mark);
        }
        let mut length = [0; 4];
        let digits = match (major, minor) {
            (1, 0) => 2,
            (2 | 3, 0) => 4,
            _ => return Err(NpyHeaderError::Version(*major, *minor)),
        };
        from.read_exact(&mut length[..digits])?;
        let length = u32::from_le_bytes(length);
        if length > MAX {
            return Err(NpyHeaderError::TooLong(length));
        }
        let mut text = vec![0; length as usize];
        from.read_exact(&mut text)?;
        let text = str::from_utf8(&text).ok().map(str::trim);
        text.and_then(Self::parse).ok_or(NpyHeaderError::Dictionary)
    }

    /// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (1, 8, 8), }`, in any order.
    fn parse(text: &str) -> Option<Self> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        let mut rest = text.strip_prefix('{')?.trim_start();
        while !rest.starts_with('}') {
            let (key, behind) = value(rest)?;
            let (value, behind) = value(behind.strip_prefix(':')?)?;
            match unquoted(key)? {
                "descr" => {
                    descr = Some(unquoted(value).map_or_else(|| value.to_owned(), |name| format!("'{name}'")))
                }
                "fortran_order" => fortran_order = Some(boolean(value)?),
                "shape" => shape = Some(dimensions(value)?),
                _ => return None,
            }
            rest = match behind.strip_prefix(',') {
                Some(next) => next.trim_start(),
                None => behind,
            };
        }
        (rest == "}").then_some(Self {
            descr: descr?,
            fortran_order: fortran_order?,
            shape: shape?,
        })
    }
}

impl fmt::Display for NpyHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        let order = if self.fortran_order {
            " in Fortran order"
        } else {
            ""
        };
        write!(f, "{} ({}){order}", self.descr, shape.join(", "))
    }
}

/// Returns the value at the start of `text` and the rest: a word, a quoted text, or a bracketed list.
fn value(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut quote) = (0_u32, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            // Valid headers contain no escapes or control characters, and error messages print the values on a
            // terminal.
            (_, '\\') => return None,
            (_, c) if c.is_control() => return None,
            (Some(open), c) => quote = quote.filter(|_| c != open),
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth = depth.checked_sub(1)?,
            (None, ',' | ':' | '}') if depth == 0 => return Some((text[..at].trim(), &text[at..])),
            (None, _) => {}
        }
    }
    None
}

/// Returns the text in quotes, if the value is one quoted text.
fn unquoted(value: &str) -> Option<&str> {
    let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = value.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inner.contains(quote)).then_some(inner)
}

fn boolean(value: &str) -> Option<bool> {
    match value {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

/// Parses a tuple of numbers. A single number needs a trailing comma, because Python does not treat it as a tuple
/// otherwise.
fn dimensions(value: &str) -> Option<Vec<u64>> {
    let inner = value.strip_prefix('(')?.strip_suffix(')')?.trim();
    if inner.is_empty() {
        return Some(Vec::new());
    }
    let (first, last) = inner.rsplit_once(',')?;
    let last = Some(last.trim()).filter(|last| !last.is_empty());
    let numbers = first.split(',').map(str::trim).chain(last);
    numbers.map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use npyz::{DType, Order};
    use proptest::prelude::*;

    /// Returns the bytes of a file.
    fn npy(dtype: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
        let header = NpyHeader::in_c_order(dtype, shape.iter().copied());
        [header.to_bytes(), data.to_vec()].concat()
    }

    #[test]
    fn headers_are_those_of_numpy_2() {
        // The length and text of the header of numpy.save for numpy.zeros(shape, "<f4").
        let expected = [
            (vec![1, 8, 8], 128, "(1, 8, 8), }"),
            (vec![5], 128, "(5,), }"),
            (vec![3, 224, 224], 128, "(3, 224, 224), }"),
            (vec![], 128, "(), }"),
            (
                vec![1; 20],
                192,
                "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), }",
            ),
        ];
        for (shape, length, text) in expected {
            let bytes = npy("<f4", &shape, &[]);
            assert_eq!(bytes.len(), length, "{shape:?}");
            let written = String::from_utf8_lossy(&bytes[10..]).into_owned();
            assert_eq!(
                written.trim_end(),
                format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {text}")
            );
            assert!(
                written.ends_with(" \n") && usize::from(bytes[8]) == length - 10,
                "{shape:?}"
            );
        }
    }

    #[test]
    fn npyz_reads_what_is_written() {
        let data: Vec<u8> = [0.0_f32, 0.5, -1.0, 2.5]
            .into_iter()
            .flat_map(f32::to_le_bytes)
            .collect();
        let bytes = npy("<f4", &[1, 2, 2], &data);
        let npy = npyz::NpyFile::new(&bytes[..]).unwrap();
        assert_eq!((npy.shape(), npy.order()), (&[1, 2, 2][..], Order::C));
        assert_eq!(npy.into_vec::<f32>().unwrap(), [0.0, 0.5, -1.0, 2.5]);
    }

    /// Returns a file of version 1.0 with this header.
    fn file(head: &str) -> Vec<u8> {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend(u16::try_from(head.len()).unwrap().to_le_bytes());
        file.extend(head.bytes());
        file
    }

    fn read(mut file: &[u8]) -> Result<NpyHeader, NpyHeaderError> {
        NpyHeader::read(&mut file)
    }

    /// Returns the header as the reference crate npyz reads it.
    fn oracle(mut file: &[u8]) -> Option<NpyHeader> {
        let header = npyz::NpyHeader::from_reader(&mut file).ok()?;
        Some(NpyHeader {
            descr: match header.dtype() {
                DType::Plain(plain) => format!("'{plain}'"),
                _ => return None,
            },
            fortran_order: header.order() == Order::Fortran,
            shape: header.shape().to_vec(),
        })
    }

    #[test]
    fn reader_is_left_at_the_first_byte_after_the_header() {
        for version in [1, 2, 3] {
            let mut file = npy("<f4", &[2, 3], b"data");
            if version > 1 {
                file[6] = version;
                file.splice(10..10, [0, 0]);
            }
            let mut rest = &file[..];
            let header = NpyHeader::read(&mut rest).unwrap();
            assert_eq!(header, NpyHeader::in_c_order("<f4", [2, 3]));
            assert_eq!(rest, b"data", "version {version}");
        }
    }

    #[test]
    fn elements_of_several_fields_are_reported_as_they_are_written() {
        let head = "{'descr': [('a', '<f4'), ('b:}', '|i1', (2,))], 'fortran_order': True, 'shape': (4,)}\n";
        let header = read(&file(head)).unwrap();
        assert_eq!(
            header.to_string(),
            "[('a', '<f4'), ('b:}', '|i1', (2,))] (4) in Fortran order"
        );
    }

    #[test]
    fn invalid_npy_headers_are_refused() {
        let message = |file: &[u8]| read(file).unwrap_err().to_string();
        assert_eq!(message(b""), "it does not begin with numpy's magic bytes");
        assert_eq!(
            message(b"PK\x03\x04 and so on"),
            "it does not begin with numpy's magic bytes"
        );
        assert_eq!(message(&file("{}")[..11]), "its header cannot be read");
        let other = |major: u8| [&b"\x93NUMPY"[..], &[major, 0], &[0xff; 8]].concat();
        assert_eq!(
            message(&other(4)),
            "it is of version 4.0, known are 1.0, 2.0 and 3.0"
        );
        assert_eq!(
            message(&other(2)),
            "its header has 4294967295 bytes, at most 10000 are accepted"
        );
        let whole = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}";
        assert!(read(&file(whole)).is_ok());
        for (part, instead) in [
            ("'<f4'", "'<f4"),
            ("'<f4'", "'<f\u{1b}[2J'"),
            ("'<f4'", "'<f\\x34'"),
            ("False", "0"),
            ("(2, 3)", "(2 3)"),
            ("(2, 3)", "(2, -3)"),
            ("(2, 3)", "(2)"),
            ("(2, 3)", "2"),
            ("(2, 3)", "(,)"),
            ("(2, 3)", "(2, 3))"),
            ("(2, 3)", "(2, 99999999999999999999)"),
            ("'shape'", "shape"),
            ("'shape'", "'form'"),
            ("'shape': (2, 3)", ""),
            ("}", ""),
            ("}", "} 1"),
            ("{", "{,"),
        ] {
            let head = whole.replace(part, instead);
            assert!(
                matches!(read(&file(&head)), Err(NpyHeaderError::Dictionary)),
                "{head}"
            );
        }
    }

    proptest! {
        #[test]
        fn heads_are_read_as_npyz_reads_them(
            dtype in prop::sample::select(vec!["<f4", ">f8", "<f2", "|i1", "|u1", "<i8", "|b1", "<U7", "|S3"]),
            fortran in any::<bool>(),
            // npyz multiplies the dimensions, and panics on overflow.
            shape in prop::collection::vec(0..10_000_u64, 0..5),
            order in Just(vec![0, 1, 2]).prop_shuffle(),
            quote in prop::sample::select(vec!['\'', '"']),
            space in prop::sample::select(vec!["", " ", "  "]),
            last_comma in any::<bool>(),
        ) {
            let numbers: String = shape.iter().map(|dim| format!("{dim},{space}")).collect();
            let fields = [
                format!("{quote}descr{quote}{space}:{space}{quote}{dtype}{quote}"),
                format!("'fortran_order':{space}{}", if fortran { "True" } else { "False" }),
                format!("'shape':{space}({space}{numbers})"),
            ];
            let fields: Vec<&str> = order.iter().map(|&at| fields[at].as_str()).collect();
            let comma = if last_comma { "," } else { "" };
            let file = file(&format!("{{{}{space}{comma}{space}}}{space}\n", fields.join(", ")));
            prop_assert_eq!(Some(read(&file).unwrap()), oracle(&file));
        }

        #[test]
        fn damaged_heads_are_read_as_npyz_reads_them_or_refused(at in 10..70_usize, byte in any::<u8>()) {
            let mut file = npy("<f4", &[1, 8, 8], &[]);
            file[at] = byte;
            // The agent's reader keeps any type name, which its callers check, so it may accept what npyz refuses.
            if let (Ok(mut ours), Some(theirs)) = (read(&file), oracle(&file)) {
                // npyz reads the old name `a` of byte strings as `S`.
                ours.descr = ours.descr.replace('a', "S");
                prop_assert_eq!(ours, theirs);
            }
        }

        #[test]
        fn garbage_is_refused(garbage in prop::collection::vec(any::<u8>(), 0..80)) {
            prop_assert!(read(&garbage).is_err());
            let text = String::from_utf8_lossy(&garbage);
            prop_assert!(read(&file(&text)).is_err());
        }
    }
}
