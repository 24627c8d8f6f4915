//! The preparation kind `detection-images`: annotated photographs, as OpenImages and COCO publish them, become samples with the bytes of the
//! reference's `pre_process_openimages_retinanet` and `pre_process_coco_resnet34`. The annotations are copied beside the samples.

mod bilinear;
mod sample;
mod source;

pub(crate) use self::{
    sample::{ResizedSampleMaker, image_shape},
    source::{annotated_images, calibration_images, checked, open},
};
