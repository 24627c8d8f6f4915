//! The labels of classified images: lines of a file name and a class, as the reference's `val_map.txt` and Caffe's `val.txt`.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use regatta_datasets::val_map::{self, ValMap, ValMapError};
use regatta_types::assets::is_inner_path;

use crate::error::PrepError;

/// An image's file name and class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LabelledImage {
    pub(crate) name: String,
    /// The class, or the second column of a map.
    pub(crate) label: i64,
}

/// Reads the labels of `expected` images, with classes from 0 to `classes` - 1.
pub(super) fn read(path: &Path, expected: usize, classes: u32) -> Result<Vec<LabelledImage>, PrepError> {
    let map = ValMap::read(path).map_err(PrepError::Labels)?;
    if map.len() != expected {
        return Err(PrepError::SampleCount {
            path: path.to_owned(),
            expected,
            found: map.len(),
        });
    }
    let mut images: Vec<LabelledImage> = Vec::with_capacity(map.len());
    let mut seen = HashSet::new();
    for (index, name) in map.names().enumerate() {
        let line = index + 1;
        let label = map.label(index).unwrap_or_default();
        if !is_inner_path(name) {
            return Err(PrepError::Labels(ValMapError::Line {
                path: path.to_owned(),
                line,
            }));
        }
        let reason = if !(0..i64::from(classes)).contains(&label) {
            format!(
                "the class {label} is not between 0 and {}",
                classes.saturating_sub(1)
            )
        } else if !seen.insert(name) {
            format!("{name} was on an earlier line")
        } else {
            images.push(LabelledImage {
                name: name.to_owned(),
                label,
            });
            continue;
        };
        return Err(PrepError::Label {
            path: path.to_owned(),
            line,
            reason,
        });
    }
    Ok(images)
}

/// Returns the images in a list of names, in the order of the list.
pub(super) fn select(images: &[LabelledImage], list: &Path) -> Result<Vec<LabelledImage>, PrepError> {
    let mut unused: HashMap<&str, &LabelledImage> =
        images.iter().map(|image| (image.name.as_str(), image)).collect();
    let names = val_map::names(list).map_err(PrepError::Labels)?;
    let lines = names.iter().enumerate();
    lines
        .map(|(index, name)| {
            let image = unused.remove(name.as_str()).cloned();
            image.ok_or_else(|| PrepError::CalibrationImage {
                path: list.to_owned(),
                line: index + 1,
                name: name.clone(),
            })
        })
        .collect()
}
