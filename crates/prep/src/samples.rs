//! Samples and their map on disk, as the field keeps them: `NAME.npy` each, and lines of name and label.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_rules::benchmark::Dataset;

use crate::{atomic, error::PrepError, npy};

/// Writes one benchmark's samples. The map comes last, so that a map means a whole set.
#[derive(Debug)]
pub(crate) struct SampleWriter {
    dir: PathBuf,
    map: PathBuf,
    shape: Vec<usize>,
    /// Samples that were there already with the same content.
    pub(crate) unchanged: usize,
}

impl SampleWriter {
    /// Makes the directories, and takes away a map that says something else than `map_text`: its samples are about
    /// to be replaced.
    pub(crate) fn new(
        dataset: &Dataset,
        shape: &[usize],
        out: &Path,
        map_text: &str,
    ) -> Result<Self, PrepError> {
        let (dir, map) = (out.join(&dataset.dir), out.join(&dataset.map));
        let map_dir = map.parent().unwrap_or(out);
        for dir in [dir.as_path(), map_dir] {
            fs::create_dir_all(dir).map_err(|source| PrepError::Write {
                path: dir.to_owned(),
                source,
            })?;
        }
        match fs::read(&map) {
            Ok(present) if present != map_text.as_bytes() => {
                fs::remove_file(&map).map_err(|source| PrepError::Write {
                    path: map.clone(),
                    source,
                })?;
            }
            _ => {}
        }
        Ok(Self {
            dir,
            map,
            shape: shape.to_vec(),
            unchanged: 0,
        })
    }

    /// Writes the sample `name`, with the bytes that `numpy.save` writes for the same array.
    pub(crate) fn write_float32(&mut self, name: &str, values: &[f32]) -> Result<(), PrepError> {
        let path = self.dir.join(format!("{name}.npy"));
        let written = atomic::write(&path, &npy::float32(&self.shape, values));
        let written = written.map_err(|source| PrepError::Write { path, source })?;
        self.unchanged += usize::from(!written);
        Ok(())
    }

    /// Writes the map, and gives the paths of samples and map.
    pub(crate) fn finish(self, map_text: &str) -> Result<(PathBuf, PathBuf), PrepError> {
        atomic::write(&self.map, map_text.as_bytes()).map_err(|source| PrepError::Write {
            path: self.map.clone(),
            source,
        })?;
        Ok((self.dir, self.map))
    }
}
