//! Selects images by their licences, and writes the annotations of the selected images. The rule is that of the reference's
//! `create_safe_annotations.py`.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
struct Document {
    #[serde(default)]
    licenses: Vec<Licence>,
    images: Vec<LicensedImage>,
}

#[derive(Debug, Deserialize)]
struct Licence {
    id: i64,
    #[serde(default)]
    url: String,
}

#[derive(Debug, Deserialize)]
struct LicensedImage {
    id: i64,
    #[serde(default)]
    license: Option<i64>,
}

/// Returns the identifiers of the images whose licence's address contains one of `licences`; of all images when there is none.
pub(super) fn selected(json: &[u8], licences: &[String]) -> serde_json::Result<HashSet<i64>> {
    let document: Document = serde_json::from_slice(json)?;
    let addresses: BTreeMap<i64, String> = document
        .licenses
        .into_iter()
        .map(|licence| (licence.id, licence.url.to_lowercase()))
        .collect();
    let is_selected = |image: &&LicensedImage| {
        let address = image.license.and_then(|id| addresses.get(&id));
        licences.is_empty()
            || licences
                .iter()
                .any(|part| address.is_some_and(|address| address.contains(part)))
    };
    let images = document.images.iter().filter(is_selected);
    Ok(images.map(|image| image.id).collect())
}

/// Returns the annotations of the selected images alone; unchanged when all images are selected.
pub(crate) fn selected_annotations(json: &[u8], licences: &[String]) -> serde_json::Result<Vec<u8>> {
    let selected = selected(json, licences)?;
    let mut document: Value = serde_json::from_slice(json)?;
    let before = document["images"].as_array().map_or(0, Vec::len);
    for (list, key) in [("images", "id"), ("annotations", "image_id")] {
        if let Some(entries) = document.get_mut(list).and_then(Value::as_array_mut) {
            entries.retain(|entry| entry[key].as_i64().is_some_and(|id| selected.contains(&id)));
        }
    }
    if document["images"].as_array().map_or(0, Vec::len) == before {
        return Ok(json.to_vec());
    }
    serde_json::to_vec(&document)
}
