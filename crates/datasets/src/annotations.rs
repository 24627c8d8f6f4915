//! Annotations in COCO's JSON form: images, categories and boxes, as `pycocotools` reads them. Checks no image file.

use std::{
    collections::{BTreeSet, HashMap},
    io,
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use serde::Deserialize;

/// Larger files are not read. The annotations of all of OpenImages' validation images have less than 100 MB.
const MAX: u64 = 1 << 30;

/// The error for annotations that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnnotationError {
    /// The file is missing or unreadable.
    #[error("cannot read the annotations {path}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file is not JSON in COCO's form.
    #[error("{path} has no annotations in COCO's form", path = path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The cause, with line and column.
        #[source]
        source: serde_json::Error,
    },
    /// A number is `NaN` or infinite, which Python writes and reads, but which is not JSON. `pycocotools` then counts objects in another way.
    #[error("{path} has the value {value} for `{field}` (line {line}, column {column}); hint: remove the object, or create the annotations again", path = path.display())]
    NotANumber {
        /// The file.
        path: PathBuf,
        /// The value, `NaN` or `Infinity`.
        value: &'static str,
        /// The field's name.
        field: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// Two images have one identifier.
    #[error("{path} has two images with the id {id}; hint: create the annotations again", path = path.display())]
    RepeatedImage {
        /// The file.
        path: PathBuf,
        /// The identifier.
        id: i64,
    },
}

/// Reads a file of annotations without parsing it.
pub fn read_annotations(path: &Path) -> Result<Vec<u8>, AnnotationError> {
    regular_file::read(path, MAX).map_err(|source| AnnotationError::Read {
        path: path.to_owned(),
        source,
    })
}

#[derive(Debug, Deserialize)]
struct Document {
    images: Vec<AnnotatedImage>,
    categories: Vec<Category>,
    annotations: Vec<Annotation>,
}

#[derive(Debug, Deserialize)]
struct Category {
    id: i64,
}

/// An image of the annotations. Its position in the file is the sample's index.
#[derive(Debug, Deserialize)]
pub struct AnnotatedImage {
    /// Its identifier.
    pub id: i64,
    pub file_name: String,
    /// Height in pixels.
    pub height: f64,
    /// Width in pixels.
    pub width: f64,
}

/// An annotated object.
#[derive(Debug, Clone, Deserialize)]
pub struct Annotation {
    /// Its identifier. `pycocotools` treats an object with the identifier 0 as unmatched.
    pub id: i64,
    image_id: i64,
    /// The identifier of its category.
    pub category_id: i64,
    /// Left, top, width and height in pixels.
    pub bbox: [f64; 4],
    /// The area in square pixels.
    pub area: f64,
    /// Not 0 for a group of objects.
    #[serde(deserialize_with = "number_or_flag")]
    pub iscrowd: f64,
}

/// Reads a number. `true` is 1 and `false` 0, as in Python.
fn number_or_flag<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum NumberOrFlag {
        Number(f64),
        Flag(bool),
    }
    Ok(match NumberOrFlag::deserialize(deserializer)? {
        NumberOrFlag::Number(number) => number,
        NumberOrFlag::Flag(flag) => f64::from(u8::from(flag)),
    })
}

/// Returns the better error where parsing has stopped at a number that is not JSON.
fn not_a_number(path: &Path, json: &[u8], error: &serde_json::Error) -> Option<AnnotationError> {
    let (line, column) = (error.line(), error.column());
    let text = json.split(|&byte| byte == b'\n').nth(line.checked_sub(1)?)?;
    // The column is that of the first letter, or of one behind it.
    let value_at = |value: &'static str| {
        (column.saturating_sub(value.len() + 1)..=column)
            .find(|&at| {
                text.get(at..)
                    .is_some_and(|rest| rest.starts_with(value.as_bytes()))
            })
            .map(|at| (value, at))
    };
    let (value, at) = value_at("NaN").or_else(|| value_at("Infinity"))?;
    let field = String::from_utf8_lossy(text.get(at.saturating_sub(80)..at)?).into_owned();
    let field = field.rsplit('"').nth(1)?.to_owned();
    Some(AnnotationError::NotANumber {
        path: path.to_owned(),
        value,
        field,
        line,
        column: at + 1,
    })
}

/// The annotations of a dataset.
#[derive(Debug)]
pub struct Annotations {
    /// The images in the order of sample indices.
    pub images: Vec<AnnotatedImage>,
    /// The identifiers of the categories, ascending.
    pub categories: Vec<i64>,
    /// The same in the order of the file, which `accuracy-coco.py` counts in.
    pub ranked_categories: Vec<i64>,
    /// For each image in the order of `images`, its objects in the order of the file.
    pub objects: Vec<Vec<Annotation>>,
}

impl Annotations {
    /// Reads a file. If several objects have one identifier, the last replaces the others, as in `pycocotools`. Objects of images or
    /// categories that are not listed do not count.
    ///
    /// # Errors
    /// [`AnnotationError`] names the file.
    pub fn read(path: &Path) -> Result<Self, AnnotationError> {
        Self::parse(path, &read_annotations(path)?)
    }

    /// Parses the content of a file, as [`read`](Self::read) does.
    pub fn parse(path: &Path, json: &[u8]) -> Result<Self, AnnotationError> {
        let document: Document = serde_json::from_slice(json).map_err(|source| {
            not_a_number(path, json, &source).unwrap_or_else(|| AnnotationError::Form {
                path: path.to_owned(),
                source,
            })
        })?;
        let mut positions = HashMap::with_capacity(document.images.len());
        for (position, image) in document.images.iter().enumerate() {
            if positions.insert(image.id, position).is_some() {
                return Err(AnnotationError::RepeatedImage {
                    path: path.to_owned(),
                    id: image.id,
                });
            }
        }
        let categories: BTreeSet<i64> = document.categories.iter().map(|category| category.id).collect();
        let last: HashMap<i64, &Annotation> = document
            .annotations
            .iter()
            .map(|annotation| (annotation.id, annotation))
            .collect();
        let mut objects = vec![Vec::new(); document.images.len()];
        for listed in &document.annotations {
            let counted = last[&listed.id];
            let is_known =
                positions.contains_key(&listed.image_id) && categories.contains(&counted.category_id);
            if let Some(&position) = positions.get(&counted.image_id).filter(|_| is_known) {
                objects[position].push(counted.clone());
            }
        }
        Ok(Self {
            images: document.images,
            categories: categories.into_iter().collect(),
            ranked_categories: document.categories.iter().map(|category| category.id).collect(),
            objects,
        })
    }
}
