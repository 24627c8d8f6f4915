//! Keeps which samples were issued, query by query, around any SUT: two LoadGens are compared by it.
//!
//! The list grows in memory, and is written when the run is over: within the timed window it costs a store per sample.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
    sync::{Mutex, PoisonError},
};

use regatta_loadgen::sut::{Completer, Query, SutError, SystemUnderTest};

/// What stands behind each query.
const END_OF_QUERY: u64 = u64::MAX;

/// Entries for which memory is taken before the run, so that short runs never grow the list.
const RESERVED: usize = 1 << 20;

/// A SUT and the list of what it was given.
pub(crate) struct IssueLog<'a> {
    sut: &'a dyn SystemUnderTest,
    issued: Mutex<Vec<u64>>,
}

impl<'a> IssueLog<'a> {
    /// Begins a list of what `sut` is given.
    pub(crate) fn around(sut: &'a dyn SystemUnderTest) -> Self {
        Self {
            sut,
            issued: Mutex::new(Vec::with_capacity(RESERVED)),
        }
    }

    /// Writes the list: unsigned 64-bit little-endian sample indices, and the largest number behind each query.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
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
