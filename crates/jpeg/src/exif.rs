//! The orientation in EXIF data, read as OpenCV's `ExifReader` does. It takes the first APP1 segment, whatever its name, and
//! stops at the first entry with data out of range.

/// Bytes before the TIFF header: `Exif` and two zeros.
const TIFF_OFFSET: usize = 6;
const ENTRY_LEN: usize = 12;
const ORIENTATION: u16 = 0x0112;
/// Image description, make, model, software, date, copyright: texts.
const TEXTS: [u16; 6] = [0x010e, 0x010f, 0x0110, 0x0131, 0x0132, 0x8298];
/// Resolutions, white point, primaries, coefficients, reference levels: tag and number of fractions.
const FRACTIONS: [(u16, u32); 6] = [
    (0x011a, 1),
    (0x011b, 1),
    (0x013e, 2),
    (0x013f, 6),
    (0x0211, 3),
    (0x0214, 6),
];

/// Returns the orientation in the data of an APP1 segment, or 1.
pub(crate) fn orientation(app1: &[u8]) -> u16 {
    app1.get(TIFF_OFFSET..)
        .and_then(|data| Tiff::new(data)?.orientation())
        .unwrap_or(1)
}

struct Tiff<'a> {
    data: &'a [u8],
    is_big: bool,
}

impl<'a> Tiff<'a> {
    fn new(data: &'a [u8]) -> Option<Self> {
        let is_big = match data.get(..2)? {
            b"II" => false,
            b"MM" => true,
            _ => return None,
        };
        let tiff = Self { data, is_big };
        (tiff.u16(2)? == 42).then_some(tiff)
    }

    fn orientation(&self) -> Option<u16> {
        let directory = self.u32(4)? as usize;
        let entries = self.u16(directory)?;
        for entry in 0..usize::from(entries) {
            let at = directory + 2 + entry * ENTRY_LEN;
            let tag = self.u16(at)?;
            if tag == ORIENTATION {
                return self.u16(at + 8);
            }
            self.check(tag, at)?;
        }
        None
    }

    /// Returns `None` for an entry at which OpenCV stops.
    fn check(&self, tag: u16, at: usize) -> Option<()> {
        let (begin, length) = if TEXTS.contains(&tag) {
            let length = self.u32(at + 4)?;
            let begin = if length > 4 { self.u32(at + 8)? } else { 8 };
            (begin, length)
        } else {
            let found = FRACTIONS.iter().find(|(fractions, _)| *fractions == tag);
            let Some((_, count)) = found else { return Some(()) };
            (self.u32(at + 8)?, count * 8)
        };
        let end = begin as usize + length as usize;
        (end <= self.data.len()).then_some(())
    }

    fn u16(&self, at: usize) -> Option<u16> {
        let bytes = self.data.get(at..at + 2)?.try_into().ok()?;
        Some(if self.is_big {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        })
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let bytes = self.data.get(at..at + 4)?.try_into().ok()?;
        Some(if self.is_big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn app1(order: &[u8; 2], body: &[u16]) -> Vec<u8> {
        let number = |value: &u16| match order {
            b"MM" => value.to_be_bytes(),
            _ => value.to_le_bytes(),
        };
        let mut bytes = b"Exif\0\0".to_vec();
        bytes.extend(order);
        bytes.extend(body.iter().flat_map(number));
        bytes
    }

    #[test]
    fn the_orientation_is_found_in_both_byte_orders() {
        // 42, offset 8, one entry: orientation, a short, count 1, value 6.
        let little = app1(b"II", &[42, 8, 0, 1, 0x112, 3, 1, 0, 6, 0]);
        let big = app1(b"MM", &[42, 0, 8, 1, 0x112, 3, 0, 1, 6, 0]);
        assert_eq!((orientation(&little), orientation(&big)), (6, 6));
        // A description of 100 bytes beyond the end.
        let broken = app1(
            b"II",
            &[42, 8, 0, 2, 0x10e, 2, 100, 0, 50, 0, 0x112, 3, 1, 0, 6, 0],
        );
        assert_eq!(orientation(&broken), 1);
        assert_eq!(orientation(b"http://ns.adobe.com/xap/1.0/"), 1);
    }

    proptest! {
        #[test]
        fn arbitrary_data_is_no_panic(data in prop::collection::vec(any::<u8>(), 0..80)) {
            orientation(&data);
            let mut exif = b"Exif\0\0MM\0*".to_vec();
            exif.extend(data);
            orientation(&exif);
        }
    }
}
