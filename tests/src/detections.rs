//! Detections in accuracy logs: their floats, annotations with a network's detections, and the line of the scripts. Judging them is not
//! done here.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Value, json};

/// Every twentieth detection of the network is not annotated.
const UNKNOWN: usize = 20;

/// Returns the floats of a response in hexadecimal.
///
/// # Panics
/// Panics when the response is not hexadecimal.
#[must_use]
pub fn floats(response: &str) -> Vec<f64> {
    let number = |at: usize| u32::from_str_radix(&response[at..at + 8], 16).expect("hexadecimal");
    let bits = (0..response.len()).step_by(8).map(|at| number(at).swap_bytes());
    bits.map(|bits| f64::from(f32::from_bits(bits))).collect()
}

/// Returns the line that the reference's scripts print for a mean average precision.
///
/// # Panics
/// Panics when the document has no value.
#[must_use]
pub fn map_line(judged: &Value) -> String {
    format!("mAP={:.3}%\n", judged["value"].as_f64().expect("a value"))
}

/// Replaces the objects of annotations in COCO's form by a part of the network's detections. `category` returns the category of a class in
/// the responses.
///
/// # Panics
/// Panics when the file has no annotations, or the responses have fewer than 10 detections for each sample.
pub fn annotate(file: &Path, found: &BTreeMap<u64, String>, category: impl Fn(u16) -> i64) {
    let text = fs::read_to_string(file).expect("annotations");
    let mut document: Value = serde_json::from_str(&text).expect("JSON");
    let mut objects = Vec::new();
    for (index, response) in found {
        let image = &document["images"][usize::try_from(*index).expect("an index")];
        let [width, height] = ["width", "height"].map(|side| image[side].as_f64().expect("a side"));
        for (number, detection) in floats(response).as_chunks::<7>().0.iter().enumerate() {
            let [own, top, left, bottom, right, _, class] = *detection;
            assert!((own - *index as f64).abs() < f64::EPSILON, "{own} in {index}");
            let sides = [(right - left) * width, (bottom - top) * height];
            // A box that was clipped to nothing overlaps with nothing.
            if number % UNKNOWN == 0 || sides[0] * sides[1] < 1.0 {
                continue;
            }
            objects.push(json!({
                "id": objects.len() + 1, "image_id": image["id"], "category_id": category(class as u16), "iscrowd": 0,
                "bbox": [left * width, top * height, sides[0], sides[1]], "area": sides[0] * sides[1],
            }));
        }
    }
    assert!(objects.len() > 10 * found.len(), "{} objects", objects.len());
    document["annotations"] = Value::from(objects);
    fs::write(file, document.to_string()).expect("the annotations");
}
