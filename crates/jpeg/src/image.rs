//! Pixels in memory, and their orientation. Does not resize.

/// Red, green, blue, and a byte without meaning.
pub type Pixel = [u8; 4];

/// A decoded image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// The pixels, row by row.
    pub pixels: Vec<Pixel>,
}

impl Image {
    /// Returns a row's pixels.
    #[must_use]
    pub fn row(&self, row: usize) -> &[Pixel] {
        &self.pixels[row * self.width..][..self.width]
    }

    /// Applies an EXIF orientation, 1 to 8. Other values change nothing.
    pub(crate) fn oriented(self, orientation: u16) -> Self {
        let (width, height) = (self.width, self.height);
        let (right, bottom) = (width.saturating_sub(1), height.saturating_sub(1));
        // Each arm returns the source of the pixel at column x and row y.
        match orientation {
            2 => self.mapped(width, height, |x, y| (right - x, y)),
            3 => self.mapped(width, height, |x, y| (right - x, bottom - y)),
            4 => self.mapped(width, height, |x, y| (x, bottom - y)),
            5 => self.mapped(height, width, |x, y| (y, x)),
            6 => self.mapped(height, width, |x, y| (y, bottom - x)),
            7 => self.mapped(height, width, |x, y| (right - y, bottom - x)),
            8 => self.mapped(height, width, |x, y| (right - y, x)),
            _ => self,
        }
    }

    /// Returns an image whose pixels come from the positions that `source` returns.
    fn mapped(&self, width: usize, height: usize, source: impl Fn(usize, usize) -> (usize, usize)) -> Self {
        let mut pixels = Vec::with_capacity(self.pixels.len());
        for y in 0..height {
            for x in 0..width {
                let (column, row) = source(x, y);
                pixels.push(self.pixels[row * self.width + column]);
            }
        }
        Self {
            width,
            height,
            pixels,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orientations_turn_and_mirror() {
        // 1 2 3
        // 4 5 6
        let image = Image {
            width: 3,
            height: 2,
            pixels: (1..=6).map(|value| [value, 0, 0, 0]).collect(),
        };
        let turned = |orientation| {
            let turned = image.clone().oriented(orientation);
            let values: Vec<u8> = turned.pixels.iter().map(|pixel| pixel[0]).collect();
            (turned.width, values)
        };
        assert_eq!(turned(1), (3, vec![1, 2, 3, 4, 5, 6]));
        assert_eq!(turned(2), (3, vec![3, 2, 1, 6, 5, 4]));
        assert_eq!(turned(3), (3, vec![6, 5, 4, 3, 2, 1]));
        assert_eq!(turned(4), (3, vec![4, 5, 6, 1, 2, 3]));
        assert_eq!(turned(5), (2, vec![1, 4, 2, 5, 3, 6]));
        assert_eq!(turned(6), (2, vec![4, 1, 5, 2, 6, 3]));
        assert_eq!(turned(7), (2, vec![6, 3, 5, 2, 4, 1]));
        assert_eq!(turned(8), (2, vec![3, 6, 2, 5, 1, 4]));
        assert_eq!(turned(9), turned(0));
    }
}
