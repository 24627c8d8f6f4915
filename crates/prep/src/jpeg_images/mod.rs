//! The preparation kind `jpeg-images`: classified photographs, as ImageNet publishes them, become samples with the bytes of the
//! reference's `pre_process_vgg`.

mod area;
mod elements;
mod labels;
mod linear;
mod region;
mod request;
mod sample;
mod source;

pub(crate) use self::{
    area::halved,
    elements::{CHANNELS, PixelElements},
    labels::LabelledImage,
    linear::resize_centred,
    sample::{LARGEST_IMAGE, Sample},
    source::ImageSource,
};
pub use self::{request::ImageRequest, sample::SampleMaker, source::labels_among};
