//! Tests of the decoder of default boxes, on outputs whose detections are computed by hand.

use regatta_test_support::counting_allocator::allocations;
use regatta_types::benchmark::{BoxArrangement, ClassScores, DefaultBoxLevel, DetectionDefaultBoxes};

use super::DefaultBoxes;

/// Two levels of 4 and 1 cells, with 1 and 2 default boxes in a cell.
fn settings(arrangement: BoxArrangement, scores: ClassScores) -> DetectionDefaultBoxes {
    DetectionDefaultBoxes {
        classes: 3,
        scores,
        arrangement,
        variances: [0.1, 0.2],
        score_threshold: 0.3,
        candidates_per_class: 5,
        overlap_threshold: 0.5,
        most: 4,
        levels: vec![
            DefaultBoxLevel {
                cells: 2,
                sizes: vec![[0.2, 0.4]],
            },
            DefaultBoxLevel {
                cells: 1,
                sizes: vec![[0.5, 0.5], [0.5, 0.6]],
            },
        ],
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn found(decoder: &mut DefaultBoxes, rows: &[Vec<u8>; 2]) -> Vec<[f32; 6]> {
    let mut found = Vec::with_capacity(10);
    decoder.decode(|output| &rows[output], |one| found.push(*one));
    found
}

/// Returns rows of offsets and scores in an arrangement, with the scores of a box for its 3 classes.
fn rows(arrangement: BoxArrangement, offsets: &[[f32; 4]; 6], scores: &[[f32; 3]; 6]) -> [Vec<u8>; 2] {
    let mut flat = [vec![0.0; 24], vec![0.0; 18]];
    for place in 0..6 {
        for (number, value) in offsets[place].iter().enumerate() {
            flat[0][arrangement.at(number, 4, place, 6)] = *value;
        }
        for (class, value) in scores[place].iter().enumerate() {
            flat[1][arrangement.at(class, 3, place, 6)] = *value;
        }
    }
    flat.map(|values| bytes(&values))
}

fn near(one: &[f32], other: &[f32]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(one, other)| (one - other).abs() < 1e-6)
}

#[test]
fn probabilities_compete_with_background_and_overlaps_within_a_class() {
    let arrangement = BoxArrangement::Channels;
    let mut decoder = DefaultBoxes::new(&settings(arrangement, ClassScores::Softmax), &[24, 18]).unwrap();
    let mut scores = [[9.0, 0.0, 0.0]; 6];
    // The boxes of the second level overlap: in class 1 the better stays, in class 2 there is one.
    scores[4] = [0.0, 2.0, 2.0];
    scores[5] = [0.0, 3.0, 0.0];
    // The second cell of the first row, moved by its own width to the right, and twice as high.
    scores[1] = [0.0, 0.0, 4.0];
    let mut offsets = [[0.0; 4]; 6];
    offsets[1] = [10.0, 0.0, 0.0, 2.0_f32.ln() / 0.2];
    let rows = rows(arrangement, &offsets, &scores);
    let all = found(&mut decoder, &rows);
    let share = |scores: [f32; 3], class: usize| {
        scores[class].exp() / scores.iter().map(|score| score.exp()).sum::<f32>()
    };
    let expected = [
        [-0.15, 0.85, 0.65, 1.05, share(scores[1], 2), 2.0],
        [0.2, 0.25, 0.8, 0.75, share(scores[5], 1), 1.0],
        [0.25, 0.25, 0.75, 0.75, share(scores[4], 2), 2.0],
    ];
    assert!(near(all.as_flattened(), expected.as_flattened()), "{all:?}");
    let before = allocations();
    decoder.decode(|output| &rows[output], |_| ());
    assert_eq!(
        allocations() - before,
        0,
        "the memory of the first sample is enough"
    );
}

#[test]
fn probabilities_of_their_own_ignore_background() {
    let arrangement = BoxArrangement::Cells;
    let mut decoder = DefaultBoxes::new(&settings(arrangement, ClassScores::Sigmoid), &[18, 24]).unwrap();
    let mut scores = [[9.0, -9.0, -9.0]; 6];
    scores[2] = [9.0, 1.0, -9.0];
    let mut offsets = [[0.0; 4]; 6];
    // From the top first.
    offsets[2] = [10.0, 0.0, 0.0, 0.0];
    let [offsets, scores] = rows(arrangement, &offsets, &scores);
    let all = found(&mut decoder, &[scores, offsets]);
    let expected = [0.95, 0.15, 1.35, 0.35, 1.0 / (1.0 + (-1.0_f32).exp()), 1.0];
    assert!(near(all.as_flattened(), &expected), "{all:?}");
}

#[test]
fn wrong_settings_and_outputs_are_named() {
    let good = settings(BoxArrangement::Cells, ClassScores::Softmax);
    for wrong in [
        |settings: &mut DetectionDefaultBoxes| settings.classes = 0,
        |settings: &mut DetectionDefaultBoxes| settings.score_threshold = 1.0,
        |settings: &mut DetectionDefaultBoxes| settings.overlap_threshold = f32::NAN,
        |settings: &mut DetectionDefaultBoxes| settings.candidates_per_class = usize::MAX,
        |settings: &mut DetectionDefaultBoxes| settings.most = 0,
        |settings: &mut DetectionDefaultBoxes| settings.levels.clear(),
        |settings: &mut DetectionDefaultBoxes| settings.levels[0].cells = usize::MAX,
    ] {
        let mut settings = good.clone();
        wrong(&mut settings);
        let error = DefaultBoxes::new(&settings, &[24, 18]).unwrap_err().to_string();
        assert!(error.contains("[model.detections]"), "{error}");
    }
    assert_eq!(
        DefaultBoxes::new(&good, &[24]).unwrap_err().to_string(),
        "its outputs have [24] numbers for a sample, but 6 default boxes need 24 for boxes and 18 for 3 classes"
    );
}
