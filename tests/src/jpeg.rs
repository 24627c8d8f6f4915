//! JPEG images of blocks of one colour each, so that their pixels are known in advance.

/// A colour as a JPEG contains it: brightness, and the differences of blue and red.
pub type Colour = [u8; 3];

/// Encodes a baseline JPEG of blocks of 8 x 8 pixels, row by row, which only have an average.
///
/// # Panics
/// Panics when the blocks do not fill rows of `columns`, or an image is larger than JPEG allows.
#[must_use]
pub fn encode(columns: usize, blocks: &[Colour]) -> Vec<u8> {
    assert!(blocks.len().is_multiple_of(columns), "the last row is incomplete");
    let mut bits = Bits::default();
    let mut before = [128; 3];
    for colour in blocks {
        for (value, before) in colour.iter().zip(&mut before) {
            // The tables below: the number of bits of the difference from the block before in four bits, and the end of a block in one.
            let difference = i32::from(*value) - *before;
            *before = i32::from(*value);
            let size = i32::BITS - difference.abs().leading_zeros();
            bits.push(size, 4);
            let negative = i32::from(difference < 0);
            bits.push((difference - negative).cast_unsigned(), size);
            bits.push(0, 1);
        }
    }
    let mut image = vec![0xff, 0xd8];
    // Steps of 8, which is the average's factor.
    segment(&mut image, 0xdb, &[&[0][..], &[8; 64]].concat());
    let side = |blocks: usize| u16::try_from(8 * blocks).expect("a small image").to_be_bytes();
    let [height, width] = [side(blocks.len() / columns), side(columns)];
    let components = [3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0];
    segment(
        &mut image,
        0xc0,
        &[&[8][..], &height, &width, &components].concat(),
    );
    let sizes = [&[0x00][..], &lengths(4, 9), &[0, 1, 2, 3, 4, 5, 6, 7, 8]].concat();
    segment(&mut image, 0xc4, &sizes);
    segment(&mut image, 0xc4, &[&[0x10][..], &lengths(1, 1), &[0]].concat());
    segment(&mut image, 0xda, &[3, 1, 0, 2, 0, 3, 0, 0, 63, 0]);
    image.extend(bits.padded());
    image.extend([0xff, 0xd9]);
    image
}

fn segment(image: &mut Vec<u8>, marker: u8, content: &[u8]) {
    let length = u16::try_from(content.len() + 2)
        .expect("a short segment")
        .to_be_bytes();
    image.extend([&[0xff, marker][..], &length, content].concat());
}

/// Returns the numbers of codes of 1 to 16 bits: `count` codes of `length` bits.
fn lengths(length: usize, count: u8) -> [u8; 16] {
    let mut lengths = [0; 16];
    lengths[length - 1] = count;
    lengths
}

#[derive(Default)]
struct Bits(Vec<bool>);

impl Bits {
    fn push(&mut self, value: u32, count: u32) {
        self.0.extend((0..count).rev().map(|bit| value >> bit & 1 == 1));
    }

    /// Returns the bytes, with a zero after each 0xff.
    fn padded(mut self) -> Vec<u8> {
        while !self.0.len().is_multiple_of(8) {
            self.0.push(true);
        }
        let byte = |bits: &[bool]| bits.iter().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
        let mut bytes = Vec::new();
        for byte in self.0.chunks(8).map(byte) {
            bytes.push(byte);
            if byte == 0xff {
                bytes.push(0);
            }
        }
        bytes
    }
}
