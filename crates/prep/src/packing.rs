//! Packs the elements of a tensor into a memory layout. `regatta_types::layout` defines the layouts and their shapes.

use regatta_types::layout::{Layout, Packing};

/// Packs the elements of a tensor with dimensions `dims` (channels first) and `size` bytes per element into `layout`.
/// Padding is zero. Returns `None` when the tensor cannot have the layout, or the number of elements is wrong.
pub(crate) fn pack(elements: &[u8], size: usize, dims: &[usize], layout: Layout) -> Option<Vec<u8>> {
    let stored = layout.stored(dims, size)?;
    if elements.len() != dims.iter().product::<usize>() * size {
        return None;
    }
    let packing = layout.packing(size);
    if packing == Packing::AsItIs {
        return Some(elements.to_vec());
    }
    let mut packed = vec![0; stored.iter().product::<usize>() * size];
    let volume: usize = dims.iter().skip(1).product();
    let width = dims.last().copied().unwrap_or(1);
    for (number, element) in elements.chunks_exact(size).enumerate() {
        let (channel, inner) = (number / volume, number % volume);
        let position = match packing {
            Packing::AsItIs => number,
            Packing::Blocks(of) => (channel / of * volume + inner) * of + channel % of,
            Packing::Last(of) => inner * dims[0].next_multiple_of(of) + channel,
            Packing::Lines(of) => number / width * width.next_multiple_of(of) + number % width,
        };
        packed[position * size..][..size].copy_from_slice(element);
    }
    Some(packed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn three_channels_are_packed_into_blocks_of_four() {
        let image: Vec<u8> = (1..=12).collect();
        let packed = pack(&image, 1, &[3, 2, 2], Layout::Chw4).unwrap();
        assert_eq!(packed, [1, 5, 9, 0, 2, 6, 10, 0, 3, 7, 11, 0, 4, 8, 12, 0]);
        assert_eq!(pack(&image, 2, &[3, 2, 1], Layout::Linear).unwrap(), image);
        let lines = pack(&image, 1, &[3, 2, 2], Layout::DlaLinear).unwrap();
        assert_eq!(
            (lines.len(), &lines[..3], &lines[64..66]),
            (6 * 64, &[1, 2, 0][..], &[3, 4][..])
        );
        assert_eq!(pack(&image, 1, &[4, 2, 2], Layout::Chw4), None);
    }

    #[test]
    fn the_fifth_channel_begins_a_second_block() {
        let image: Vec<u8> = (1..=5).collect();
        assert_eq!(
            pack(&image, 1, &[5, 1, 1], Layout::Chw4).unwrap(),
            [1, 2, 3, 4, 5, 0, 0, 0]
        );
        assert_eq!(
            pack(&image, 1, &[5, 1, 1], Layout::Hwc8).unwrap(),
            [1, 2, 3, 4, 5, 0, 0, 0]
        );
    }

    proptest! {
        /// No element is lost, and DLA and GPU layouts with the same packing have the same bytes.
        #[test]
        fn every_element_is_packed_once(
            channels in 1..=4_usize,
            height in 1..=4_usize,
            layout in prop::sample::select(vec![
                Layout::Linear, Layout::Hwc8, Layout::Chw4, Layout::Chw16, Layout::Chw32, Layout::Dhwc8, Layout::Cdhw32,
                Layout::DlaLinear, Layout::DlaHwc4,
            ]),
        ) {
            let dims = [channels, height, 16];
            let image: Vec<u8> = (0..channels * height * 16).flat_map(|n| (n as u16 + 1).to_le_bytes()).collect();
            let packed = pack(&image, 2, &dims, layout).unwrap();
            let (elements, _) = packed.as_chunks::<2>();
            let mut kept: Vec<u16> = elements.iter().map(|e| u16::from_le_bytes(*e)).filter(|&e| e > 0).collect();
            kept.sort_unstable();
            let expected: Vec<u16> = (1..=(channels * height * 16) as u16).collect();
            prop_assert_eq!(kept, expected);
            if layout == Layout::DlaHwc4 {
                prop_assert_eq!(pack(&image, 2, &dims, Layout::Chw4), Some(packed));
            }
        }
    }
}
