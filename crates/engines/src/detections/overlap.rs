//! The overlap of two boxes. Suppresses nothing.

/// Returns intersection over union of boxes with left, top, right and bottom.
pub(super) fn overlap(one: &[f32; 4], other: &[f32; 4]) -> f32 {
    let area = |[left, top, right, bottom]: &[f32; 4]| (right - left) * (bottom - top);
    let width = (one[2].min(other[2]) - one[0].max(other[0])).max(0.0);
    let height = (one[3].min(other[3]) - one[1].max(other[1])).max(0.0);
    let common = width * height;
    common / (area(one) + area(other) - common)
}
