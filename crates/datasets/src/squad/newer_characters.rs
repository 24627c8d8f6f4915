//! The characters that are newer than Python 3.11, whose tables are those of Unicode 14: the reference's tokenizer removes them as characters
//! without a meaning.

/// Whether Unicode has `c` since a version after 14.
pub(super) fn is_newer(c: char) -> bool {
    let c = u32::from(c);
    let place = NEWER.partition_point(|&(_, last)| last < c);
    NEWER.get(place).is_some_and(|&(first, _)| first <= c)
}

/// The ranges of characters, and of places without one, that `unicodedata` of Python 3.11 does not have and Unicode 18 has.
const NEWER: [(u32, u32); 60] = [
    (0x58b, 0x58c),
    (0x88f, 0x88f),
    (0x897, 0x897),
    (0xb53, 0xb54),
    (0xc5c, 0xc5c),
    (0xcdc, 0xcdc),
    (0xece, 0xece),
    (0x1acf, 0x1af0),
    (0x1b7f, 0x1b7f),
    (0x20c1, 0x20c4),
    (0x2b96, 0x2b96),
    (0x2ffc, 0x2fff),
    (0x31e4, 0x31e5),
    (0xab6c, 0xab6d),
    (0xfdc8, 0xfdce),
    (0x105c0, 0x105f3),
    (0x10d40, 0x10d8f),
    (0x10ec2, 0x10eff),
    (0x1123f, 0x11241),
    (0x1138b, 0x113d5),
    (0x116d0, 0x116e3),
    (0x11b60, 0x11be1),
    (0x11dd9, 0x11df1),
    (0x11f02, 0x11f4f),
    (0x1246f, 0x1246f),
    (0x12550, 0x12686),
    (0x13439, 0x143fa),
    (0x16100, 0x16139),
    (0x16d40, 0x16d6f),
    (0x16ff2, 0x16ff3),
    (0x187f8, 0x187ff),
    (0x18cd6, 0x18cff),
    (0x18d09, 0x191d2),
    (0x1b123, 0x1b132),
    (0x1b155, 0x1b155),
    (0x1b168, 0x1b168),
    (0x1cc00, 0x1cefd),
    (0x1d127, 0x1d128),
    (0x1d1eb, 0x1d1ff),
    (0x1d250, 0x1d2d3),
    (0x1db00, 0x1db1c),
    (0x1df1f, 0x1df96),
    (0x1e4d0, 0x1e6ff),
    (0x1f1ae, 0x1f1ae),
    (0x1f6dc, 0x1f6dc),
    (0x1f7f1, 0x1f7ff),
    (0x1f8b2, 0x1f8c1),
    (0x1fa54, 0x1fa57),
    (0x1fa87, 0x1fa8f),
    (0x1faad, 0x1faaf),
    (0x1fabb, 0x1fabf),
    (0x1fac6, 0x1fac8),
    (0x1fadf, 0x1fadf),
    (0x1fae8, 0x1faef),
    (0x1faf7, 0x1fafa),
    (0x1fbcb, 0x1fbef),
    (0x2b739, 0x2b73f),
    (0x2b81e, 0x2b81e),
    (0x2ebf0, 0x2ee5d),
    (0x31350, 0x33479),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_in_order() {
        assert!(
            NEWER.is_sorted_by(|one, other| one.1 < other.0) && NEWER.iter().all(|range| range.0 <= range.1)
        );
        let newer = ['\u{58b}', '\u{897}', '\u{1fae8}', '\u{2ebf0}', '\u{31350}'];
        assert!(newer.into_iter().all(is_newer));
        assert!(
            !['\0', 'a', 'ա', '東', '\u{1fae7}', '\u{10ffff}']
                .into_iter()
                .any(is_newer)
        );
    }
}
