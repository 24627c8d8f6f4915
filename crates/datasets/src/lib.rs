//! Readers of published data sets: annotations, questions, volumes, utterances and label maps. Preparation makes samples of them, and the
//! accuracy metrics compare responses with them. It decodes no image and computes no metric.

pub mod annotations;
pub mod bundled;
pub mod label_files;
pub mod published_hash;
pub mod speech;
pub mod squad;
pub mod val_map;
pub mod volumes;
