//! File access that every package needs in the same way: bounded reads, atomic writes, hashes of whole files.
//!
//! Knows nothing of what the files contain.

pub mod atomic_file;
pub mod free_space;
pub mod hash;
pub mod plugin_directories;
pub mod regular_file;
