//! A wrapper around a SUT that records the issued samples, query by query, for comparisons of two LoadGens.
//!
//! The list grows in memory and is written after the run. Within the measurement window it costs one store per sample.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
    sync::{Mutex, PoisonError},
};

use regatta_loadgen::sut::{Completer, Query, SutError, SystemUnderTest};

/// The marker after each query.
const END_OF_QUERY: u64 = u64::MAX;

/// Entries allocated before the run, so that short runs never grow the list.
const RESERVED: usize = 1 << 20;

/// A SUT and the list of its issued samples.
pub struct IssueLog<'a> {
    sut: &'a dyn SystemUnderTest,
    issued: Mutex<Vec<u64>>,
}

impl<'a> IssueLog<'a> {
    /// Wraps `sut` with an empty list.
    pub fn around(sut: &'a dyn SystemUnderTest) -> Self {
        Self {
            sut,
            issued: Mutex::new(Vec::with_capacity(RESERVED)),
        }
    }

    /// Writes the list: unsigned 64-bit little-endian sample indices, and `END_OF_QUERY` after each query.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        for entry in self.issued.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            file.write_all(&entry.to_le_bytes())?;
        }
        file.into_inner()
            .map_err(io::IntoInnerError::into_error)?
            .sync_all()
    }
}

impl SystemUnderTest for IssueLog<'_> {
    fn name(&self) -> &str {
        self.sut.name()
    }

    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        issued.extend((0..query.len()).map(|position| query.sample(position).index as u64));
        issued.push(END_OF_QUERY);
        drop(issued);
        self.sut.issue_query(query, completer)
    }

    fn flush_queries(&self) -> Result<(), SutError> {
        self.sut.flush_queries()
    }
}
