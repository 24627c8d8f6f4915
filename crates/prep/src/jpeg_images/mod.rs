//! The preparation kind `jpeg-images`: images with a class each become samples, by default with the bytes of the reference's
//! `pre_process_vgg`.

mod area;
mod elements;
mod image_file;
mod labels;
mod linear;
mod pil_bilinear;
mod placement;
mod region;
mod request;
mod sample;
mod source;

pub(crate) use self::{
    area::halved,
    elements::{CHANNELS, Frame, PixelElements},
    image_file::{OpenCvReader, read_image},
    labels::LabelledImage,
    linear::resize_centred,
    sample::Sample,
    sample::SampleMaker,
    source::ImageSource,
};
pub use self::{request::ImageRequest, source::labels_among};
