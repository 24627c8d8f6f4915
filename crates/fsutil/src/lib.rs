//! File access that every package needs in the same way.
//!
//! Knows nothing of what the files contain.

pub mod regular_file;
