//! File access that all packages share: bounded reads, atomic writes, hashes of complete files.
//!
//! The crate does not know the content of the files.

pub mod atomic_file;
pub mod free_space;
pub mod hash;
pub mod own_program;
pub mod parallel;
pub mod plugin_directories;
pub mod regular_file;
