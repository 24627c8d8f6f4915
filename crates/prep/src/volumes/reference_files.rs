//! The files that the reference's `accuracy_kits.py` reads beside the samples: segmentations, and the pickled description of the cases.
//! The second has lists and texts only, which Python reads without NumPy.

use std::io;

/// What the description says of a case.
#[derive(Debug)]
pub(crate) struct DescribedCase {
    pub(crate) name: String,
    /// The voxels of its sample along each dimension.
    pub(crate) size: [usize; 3],
    /// The map from voxels to millimetres.
    pub(crate) affine: [[f64; 4]; 3],
}

/// Returns the description of all cases, in the order of their indices.
pub(crate) fn description(cases: &[DescribedCase]) -> io::Result<Vec<u8>> {
    let mut pickle = Pickle(vec![0x80, 2]);
    pickle.dict(|pickle| {
        pickle.text("file_list")?;
        pickle.list(cases, |pickle, case| pickle.text(&case.name))?;
        pickle.text("cases")?;
        pickle.dict(|pickle| {
            cases.iter().try_for_each(|case| {
                pickle.text(&case.name)?;
                pickle.case(case)
            })
        })
    })?;
    pickle.0.push(b'.');
    Ok(pickle.0)
}

/// Values in Python's pickle protocol 2.
struct Pickle(Vec<u8>);

impl Pickle {
    fn case(&mut self, case: &DescribedCase) -> io::Result<()> {
        self.dict(|pickle| {
            pickle.text("case")?;
            pickle.text(&case.name)?;
            pickle.text("reshaped_affine")?;
            let [x, y, z] = case.affine;
            pickle.list(&[x, y, z, [0.0, 0.0, 0.0, 1.0]], |pickle, row| {
                pickle.list(row, |pickle, value| {
                    pickle.0.push(b'G');
                    pickle.0.extend(value.to_be_bytes());
                    Ok(())
                })
            })?;
            pickle.text("image_shape")?;
            let [depth, height, width] = case.size;
            pickle.list(&[1, depth, height, width], |pickle, &side| {
                pickle.0.push(b'J');
                pickle
                    .0
                    .extend(i32::try_from(side).map_err(io::Error::other)?.to_le_bytes());
                Ok(())
            })
        })
    }

    /// Appends a text.
    fn text(&mut self, text: &str) -> io::Result<()> {
        self.0.push(b'X');
        self.0
            .extend(u32::try_from(text.len()).map_err(io::Error::other)?.to_le_bytes());
        self.0.extend(text.bytes());
        Ok(())
    }

    /// Appends a list.
    fn list<T>(
        &mut self,
        items: &[T],
        mut put: impl FnMut(&mut Self, &T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.0.extend(b"](");
        items.iter().try_for_each(|item| put(self, item))?;
        self.0.push(b'e');
        Ok(())
    }

    /// Appends a dictionary, whose keys and values `put` appends in turn.
    fn dict(&mut self, put: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.0.extend(b"}(");
        put(self)?;
        self.0.push(b'u');
        Ok(())
    }
}
