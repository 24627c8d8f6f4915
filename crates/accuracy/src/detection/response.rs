//! The detections of a response: 7 floats each, as the reference writes them. Coordinates become pixels in 32 bits, as NumPy 2 computes
//! them. Compares nothing with annotations.

use regatta_datasets::annotations::AnnotatedImage;

/// Floats of a detection: sample index, top, left, bottom, right, score, category.
const FLOATS: usize = 7;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Detection {
    /// Left, top, width and height in pixels.
    pub(super) bbox: [f64; 4],
    pub(super) score: f32,
    /// The identifier of its category.
    pub(super) category: i64,
}

impl Detection {
    /// Whether its score and its box are numbers that can be compared.
    pub(super) fn is_finite(&self) -> bool {
        self.score.is_finite() && self.bbox.iter().all(|value| value.is_finite())
    }

    pub(super) fn area(&self) -> f64 {
        self.bbox[2] * self.bbox[3]
    }
}

/// The error for a response that contains no detections.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DetectionsError {
    /// The response has another length.
    #[error("its {0} bytes are not a multiple of 28")]
    Length(usize),
    /// A sample or a class is infinite or not a number. The reference script ends with a traceback.
    #[error("number {position} of detection {detection} is {value}")]
    NotFinite {
        /// The detection, from 1.
        detection: usize,
        /// The number's position in the detection, from 1.
        position: usize,
        /// The number.
        value: f32,
    },
    /// A detection names another sample. The reference script prints an error, and takes the detection for this sample.
    #[error("detection {detection} is for sample {found}")]
    OtherSample {
        /// The detection, from 1.
        detection: usize,
        /// The sample in the detection.
        found: i64,
    },
    /// A class is not an index of the categories. The reference script ends with a traceback, or counts the background as a category.
    #[error("detection {detection} has class {found}, but the annotations have {categories} categories")]
    UnknownClass {
        /// The detection, from 1.
        detection: usize,
        /// The class in the detection.
        found: i64,
        categories: usize,
    },
}

/// Reads the detections of the sample `index`. A response of fewer than 7 floats has none. With `categories`, classes are positions among
/// them, from 1.
pub(super) fn read(
    data: &[u8],
    index: usize,
    image: &AnnotatedImage,
    categories: Option<&[i64]>,
) -> Result<Vec<Detection>, DetectionsError> {
    let (floats, rest) = data.as_chunks::<4>();
    let is_empty = floats.len() < FLOATS;
    if !rest.is_empty() || !(is_empty || floats.len().is_multiple_of(FLOATS)) {
        return Err(DetectionsError::Length(data.len()));
    }
    let (height, width) = (image.height as f32, image.width as f32);
    let mut found = Vec::with_capacity(floats.len() / FLOATS);
    for (number, floats) in floats.as_chunks::<FLOATS>().0.iter().enumerate() {
        let detection = number + 1;
        let values = floats.map(f32::from_le_bytes);
        for position in [1, FLOATS] {
            let value = values[position - 1];
            if !value.is_finite() {
                return Err(DetectionsError::NotFinite {
                    detection,
                    position,
                    value,
                });
            }
        }
        let [sample, top, left, bottom, right, score, category] = values;
        let sample = sample as i64;
        if usize::try_from(sample) != Ok(index) {
            return Err(DetectionsError::OtherSample {
                detection,
                found: sample,
            });
        }
        let class = category as i64;
        let category = match categories {
            None => class,
            Some(categories) => {
                let rank = usize::try_from(class).ok().and_then(|rank| rank.checked_sub(1));
                let unknown = DetectionsError::UnknownClass {
                    detection,
                    found: class,
                    categories: categories.len(),
                };
                *rank.and_then(|rank| categories.get(rank)).ok_or(unknown)?
            }
        };
        let (top, left, bottom, right) = (top * height, left * width, bottom * height, right * width);
        found.push(Detection {
            bbox: [left, top, right - left, bottom - top].map(f64::from),
            score,
            category,
        });
    }
    Ok(found)
}
