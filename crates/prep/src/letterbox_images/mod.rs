//! The preparation kind `letterbox-images`: annotated photographs, as COCO publishes them, become samples with the bytes that the
//! reference of YOLO makes for a network with a fixed input. The annotations of the selected images are written beside the samples.

mod sample;
mod selection;
mod source;

pub(crate) use self::{sample::LetterboxSampleMaker, selection::selected_annotations, source::open};
