//! Detections from a model's outputs, as 7 floats each: sample index, top, left, bottom, right (as fractions), score and class.
//!
//! Either the model has finished them, or its outputs are RetinaNet's heads, YOLO's predictions or SSD's default boxes. Heads are decoded as torchvision's
//! `RetinaNet` does: the best candidates of each level, then boxes, then the suppression of overlapping boxes of one class. The decoder
//! allocates for its first sample only. The module does not run models.

mod anchors;
mod default_boxes;
mod heads;
mod overlap;
mod predictions;

use std::sync::Arc;

use regatta_types::benchmark::{Detections, Model, Response};

use self::{default_boxes::DefaultBoxes, heads::Heads, predictions::Predictions};
use super::{Answers, ModelMismatch};

/// Floats of a detection.
const FLOATS: usize = 7;
/// The largest number of detections of a sample that a benchmark's file may set.
const MAX_DETECTIONS: usize = 100_000;

/// Makes answers from the outputs of a model whose response is `detections`.
#[derive(Debug, Clone)]
pub(crate) struct DetectionDecoder {
    kind: Kind,
    /// The largest number of detections of a sample.
    most: usize,
    /// The bytes of the current answer.
    answer: Vec<u8>,
}

#[derive(Debug, Clone)]
enum Kind {
    /// The position of the output with finished detections.
    Counted(usize),
    Heads(Box<Heads>),
    /// The predictions, with the width and height of each sample's image.
    Predictions(Box<Predictions>, Arc<[[u32; 2]]>),
    DefaultBoxes(Box<DefaultBoxes>),
}

impl DetectionDecoder {
    /// Returns the decoder for outputs with `rows` 32-bit floats for each sample. `None` if the response is not `detections`.
    /// `image_sizes` are for predictions only: width and height of each sample's image.
    ///
    /// # Errors
    /// A text with the model's outputs and the benchmark's requirements.
    pub(crate) fn of(
        model: &Model,
        rows: &[usize],
        image_sizes: &Arc<[[u32; 2]]>,
    ) -> Result<Option<Self>, ModelMismatch> {
        let kind = match (model.response, &model.detections) {
            (Response::Detections, None) => {
                return Err(
                    "the benchmark's file has the response detections, but no [model.detections]".into(),
                );
            }
            (Response::Detections, Some(Detections::Counted { most })) => {
                if !(1..=MAX_DETECTIONS).contains(most) {
                    return Err(format!("`most` must be from 1 to {MAX_DETECTIONS}, not {most}").into());
                }
                let floats = most * FLOATS + 1;
                let output = rows.iter().position(|&row| row == floats);
                Kind::Counted(output.ok_or_else(|| {
                    format!("its outputs have {rows:?} numbers for a sample, but {most} detections and their number are {floats}")
                })?)
            }
            (Response::Detections, Some(Detections::Heads(settings))) => {
                Kind::Heads(Box::new(Heads::new(settings, &model.input_shape, rows)?))
            }
            (Response::Detections, Some(Detections::Predictions(settings))) => {
                let predictions = Predictions::new(settings, &model.input_shape, rows)?;
                Kind::Predictions(Box::new(predictions), Arc::clone(image_sizes))
            }
            (Response::Detections, Some(Detections::DefaultBoxes(settings))) => {
                Kind::DefaultBoxes(Box::new(DefaultBoxes::new(settings, rows)?))
            }
            _ => return Ok(None),
        };
        let most = match &model.detections {
            Some(Detections::Counted { most }) => *most,
            Some(Detections::Heads(settings)) => settings.most,
            Some(Detections::Predictions(settings)) => settings.most,
            Some(Detections::DefaultBoxes(settings)) => settings.most,
            None => 0,
        };
        Ok(Some(Self {
            kind,
            most,
            answer: Vec::new(),
        }))
    }

    /// Adds the answer for the sample with this index. `row` returns the bytes of an output's row for the sample.
    pub(crate) fn push<'r>(&mut self, index: usize, row: impl Fn(usize) -> &'r [u8], answers: &mut Answers) {
        let Self { kind, most, answer } = self;
        let most = *most;
        answer.clear();
        // Without effect after the first sample.
        answer.reserve(most * FLOATS * size_of::<f32>());
        match kind {
            Kind::Counted(output) => {
                let (floats, _) = row(*output).as_chunks::<4>();
                let (detections, count) = floats.as_chunks::<FLOATS>();
                let count = count.first().map_or(0, |count| number_of(*count, most));
                for detection in detections.iter().take(count) {
                    let own = (index as f32).to_le_bytes();
                    answer.extend_from_slice(&own);
                    answer.extend(detection[1..].as_flattened());
                }
            }
            Kind::Heads(heads) => heads.decode(row, |detection| append(answer, index, detection)),
            Kind::Predictions(predictions, sizes) => {
                let size = sizes.get(index).copied();
                predictions.decode(row, size, |detection| append(answer, index, detection));
            }
            Kind::DefaultBoxes(boxes) => boxes.decode(row, |detection| append(answer, index, detection)),
        }
        answers.push(answer);
    }
}

/// Appends a detection of the sample with this index.
fn append(answer: &mut Vec<u8>, index: usize, detection: &[f32; FLOATS - 1]) {
    answer.extend_from_slice(&(index as f32).to_le_bytes());
    answer.extend(detection.iter().flat_map(|value| value.to_le_bytes()));
}

/// Reads the number of detections. Some plug-ins write it as a float and others as an integer; up to `most`, the bits of an integer are
/// not a plausible float.
fn number_of(bytes: [u8; 4], most: usize) -> usize {
    let integer = usize::try_from(u32::from_le_bytes(bytes)).unwrap_or(usize::MAX);
    if integer <= most {
        return integer;
    }
    // The cast saturates and maps NaN to 0.
    f32::from_le_bytes(bytes) as usize
}

#[cfg(test)]
mod tests {
    use regatta_types::benchmark::{Benchmark, DetectionHeads, DetectionPredictions};

    use super::*;
    use regatta_test_support::counting_allocator::allocations;

    fn retinanet() -> Model {
        let text = include_str!("../../../configs/benchmarks/retinanet.toml");
        let mut model = Benchmark::from_toml(text).unwrap().model;
        // Fewer than the 264 of the file keep the tests short.
        if let Some(Detections::Heads(heads)) = &mut model.detections {
            heads.classes = 12;
        }
        model
    }

    fn decoder_of(model: &Model, rows: &[usize]) -> Result<Option<DetectionDecoder>, ModelMismatch> {
        DetectionDecoder::of(model, rows, &Arc::default())
    }

    fn floats(bytes: &[u8]) -> Vec<f32> {
        let (floats, rest) = bytes.as_chunks::<4>();
        assert!(rest.is_empty());
        floats.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn answer(decoder: &mut DetectionDecoder, index: usize, rows: &[Vec<u8>]) -> Vec<f32> {
        let mut answers = Answers::default();
        decoder.push(index, |output| &rows[output], &mut answers);
        floats(answers.iter().next().unwrap())
    }

    #[test]
    fn finished_detections_get_the_sample_and_lose_the_rest() {
        let mut model = retinanet();
        model.detections = Some(Detections::Counted { most: 3 });
        let mut decoder = decoder_of(&model, &[22]).unwrap().unwrap();
        let mut row: Vec<f32> = (0_u8..21).map(f32::from).collect();
        for (count, kept) in [(2.0, 2), (0.0, 0), (9.0, 3), (f32::NAN, 0)] {
            row.push(count);
            let found = answer(&mut decoder, 5, &[bytes(&row)]);
            row.pop();
            assert_eq!(found.len(), 7 * kept);
            assert!(found.chunks(7).all(|one| one[0] == 5.0));
            assert!(kept < 2 || found[8..14] == row[8..14]);
        }
        row.push(f32::from_bits(2));
        assert_eq!(answer(&mut decoder, 5, &[bytes(&row)]).len(), 14, "an integer");
        let error = decoder_of(&model, &[21]).unwrap_err().to_string();
        assert_eq!(
            error,
            "its outputs have [21] numbers for a sample, but 3 detections and their number are 22"
        );
    }

    #[test]
    fn heads_are_decoded_clipped_and_freed_of_overlaps() {
        let model = retinanet();
        let (anchors, classes) = (120_087, 12);
        let mut decoder = decoder_of(&model, &[anchors * 4, anchors * classes])
            .unwrap()
            .unwrap();
        let mut boxes = vec![0.0; anchors * 4];
        let mut scores = vec![-9.0; anchors * classes];
        // The first cell of the coarsest level: anchors of 512 pixels around the corner. The second ratio is 1.
        let corner = anchors - 7 * 7 * 9 + 3;
        scores[corner * classes + 5] = 2.0;
        // The next size overlaps by more than half, in the same class and in another one.
        scores[(corner + 1) * classes + 5] = 1.0;
        scores[(corner + 1) * classes + 6] = 1.0;
        // Below the threshold, and moved by its width to the right: beyond the edge.
        scores[8 * classes] = -2.95;
        boxes[corner * 4] = 1.0;
        let found = answer(&mut decoder, 9, &[bytes(&boxes), bytes(&scores)]);
        let classes_found: Vec<f32> = found.chunks(7).map(|one| one[6]).collect();
        assert_eq!(classes_found, [5.0, 5.0, 6.0]);
        assert_eq!(
            found[..5],
            [9.0, 0.0, 256.0 / 800.0, 256.0 / 800.0, 768.0 / 800.0]
        );
        assert!((found[5] - 1.0 / (1.0 + (-2.0_f32).exp())).abs() < 1e-6);
        boxes[corner * 4] = 0.0;
        let found = answer(&mut decoder, 9, &[bytes(&boxes), bytes(&scores)]);
        let classes_found: Vec<f32> = found.chunks(7).map(|one| one[6]).collect();
        assert_eq!(
            classes_found,
            [5.0, 6.0],
            "the second box of class 5 overlaps by 0.63"
        );
        // The first sample has no detection, the second has several.
        let blank = [bytes(&boxes), bytes(&vec![-9.0; anchors * classes])];
        let (rows, mut answers) = ([bytes(&boxes), bytes(&scores)], Answers::default());
        decoder.push(9, |output| &rows[output], &mut answers);
        answers.clear();
        let mut decoder = decoder_of(&model, &[anchors * 4, anchors * classes])
            .unwrap()
            .unwrap();
        decoder.push(9, |output| &blank[output], &mut answers);
        answers.clear();
        let before = allocations();
        decoder.push(9, |output| &rows[output], &mut answers);
        assert_eq!(
            allocations() - before,
            0,
            "the memory of the first sample is enough"
        );
        for wrong in [
            |heads: &mut DetectionHeads| heads.classes = 0,
            |heads: &mut DetectionHeads| heads.score_threshold = 1.0,
            |heads: &mut DetectionHeads| heads.overlap_threshold = f32::NAN,
            |heads: &mut DetectionHeads| heads.candidates_per_level = usize::MAX,
            |heads: &mut DetectionHeads| heads.most = 0,
            |heads: &mut DetectionHeads| heads.strides[0] = 0,
            |heads: &mut DetectionHeads| heads.sizes.truncate(4),
        ] {
            let mut model = model.clone();
            if let Some(Detections::Heads(heads)) = &mut model.detections {
                wrong(heads);
            }
            let error = decoder_of(&model, &[anchors * 4, anchors * classes])
                .unwrap_err()
                .to_string();
            assert!(error.contains("[model.detections]"), "{error}");
        }
        let error = decoder_of(&model, &[anchors * 4]).unwrap_err().to_string();
        assert_eq!(
            error,
            "its outputs have [480348] numbers for a sample, but 120087 anchors need 480348 for boxes and 1441044 for 12 classes"
        );
    }

    #[test]
    fn the_best_of_many_candidates_come_first_and_in_order() {
        let model = retinanet();
        let (anchors, classes) = (120_087, 12);
        let mut decoder = decoder_of(&model, &[anchors * classes, anchors * 4])
            .unwrap()
            .unwrap();
        let mut scores = vec![-9.0; anchors * classes];
        // Every ninth anchor of the first 6,000 cells of the finest level does not overlap its second neighbour.
        for cell in 0..6000 {
            scores[cell * 9 * classes + cell % classes] = (cell as f32).mul_add(1e-4, -1.0);
        }
        let rows = [bytes(&scores), bytes(&vec![0.0; anchors * 4])];
        let found = answer(&mut decoder, 0, &rows);
        let scores: Vec<f32> = found.chunks(7).map(|one| one[5]).collect();
        assert_eq!(scores.len(), 300);
        assert!(scores.is_sorted_by(|one, next| one >= next));
        assert!((scores[0] - 1.0 / (1.0 + 0.4001_f32.exp())).abs() < 1e-4);
    }

    #[test]
    fn predictions_are_decoded_for_the_original_image_and_freed_of_overlaps() {
        let text = include_str!("../../../configs/benchmarks/yolo-99.toml");
        let model = Benchmark::from_toml(text).unwrap().model;
        let (count, classes) = (8400, 80);
        // The second image is half as high as wide, and twice as wide as the input.
        let sizes: Arc<[[u32; 2]]> = [[640, 480], [1280, 640]].into();
        let of = |model: &Model| DetectionDecoder::of(model, &[7, count * (4 + classes)], &sizes);
        let mut decoder = of(&model).unwrap().unwrap();
        let mut row = vec![0.0; count * (4 + classes)];
        let mut predict = |place: usize, corners: [f32; 4], class: usize, score: f32| {
            for (part, value) in corners.into_iter().enumerate() {
                row[part * count + place] = value;
            }
            row[(4 + class) * count + place] = score;
        };
        predict(0, [100.0, 180.0, 40.0, 20.0], 5, 0.8);
        // Nearly the same box, in its class and in another.
        predict(1, [101.0, 180.0, 40.0, 20.0], 5, 0.9);
        predict(2, [101.0, 180.0, 40.0, 20.0], 11, 0.8);
        // Two classes, of which the better counts; beyond the right edge, and above the first image.
        predict(8399, [635.0, 80.0, 20.0, 20.0], 0, 0.6);
        predict(8399, [635.0, 80.0, 20.0, 20.0], 79, 0.7);
        // Not above the threshold.
        predict(9, [300.0, 300.0, 20.0, 20.0], 0, 0.001);
        let rows = [vec![], bytes(&row)];
        let found = answer(&mut decoder, 0, &rows);
        let expected = [
            [
                0.0,
                90.0 / 480.0,
                81.0 / 640.0,
                110.0 / 480.0,
                121.0 / 640.0,
                0.9,
                6.0,
            ],
            [
                0.0,
                90.0 / 480.0,
                81.0 / 640.0,
                110.0 / 480.0,
                121.0 / 640.0,
                0.8,
                13.0,
            ],
            [0.0, 0.0, 625.0 / 640.0, 10.0 / 480.0, 1.0, 0.7, 90.0],
        ];
        assert_eq!(found, expected.concat());
        let mut answers = Answers::default();
        decoder.push(0, |output| &rows[output], &mut answers);
        answers.clear();
        let before = allocations();
        decoder.push(1, |output| &rows[output], &mut answers);
        assert_eq!(
            allocations() - before,
            0,
            "the memory of the first sample is enough"
        );
        let second = floats(answers.iter().next().unwrap());
        // 160 padded rows above, and two pixels for one.
        assert_eq!(
            second[..5],
            [1.0, 20.0 / 640.0, 162.0 / 1280.0, 60.0 / 640.0, 242.0 / 1280.0]
        );
        let error = DetectionDecoder::of(&model, &[84 * 100], &sizes)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("8400 predictions of 4 coordinates and 80 classes have 705600"),
            "{error}"
        );
        for wrong in [
            |settings: &mut DetectionPredictions| settings.categories.clear(),
            |settings: &mut DetectionPredictions| settings.score_threshold = 0.0,
            |settings: &mut DetectionPredictions| settings.overlap_threshold = f32::NAN,
            |settings: &mut DetectionPredictions| settings.most = 0,
            |settings: &mut DetectionPredictions| settings.strides[0] = 0,
            |settings: &mut DetectionPredictions| settings.strides.clear(),
        ] {
            let mut model = model.clone();
            if let Some(Detections::Predictions(settings)) = &mut model.detections {
                wrong(settings);
            }
            let error = of(&model).unwrap_err().to_string();
            assert!(error.contains("[model.detections]"), "{error}");
        }
    }
}
