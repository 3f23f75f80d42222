//! Parts of the slices of several channels, without memory of their own.

use std::ops::Range;

use millstream_radio::tx::TX_CHANNELS_MAX;

/// The most channels of a stream.
pub const CHANNELS_MAX: usize = TX_CHANNELS_MAX;

/// Runs `call` with the places `at` of each slice.
pub(crate) fn parts_mut<T, R>(
    slices: &mut [&mut [T]],
    at: &Range<usize>,
    call: impl FnOnce(&mut [&mut [T]]) -> R,
) -> R {
    let mut parts: [&mut [T]; CHANNELS_MAX] = Default::default();
    let count = slices.len();
    for (part, slice) in parts.iter_mut().zip(slices) {
        *part = &mut slice[at.clone()];
    }
    call(&mut parts[..count])
}

/// Runs `call` with the places `at` of each slice, which it only reads.
pub(crate) fn parts<T, R>(
    slices: &[&[T]],
    at: &Range<usize>,
    call: impl FnOnce(&[&[T]]) -> R,
) -> R {
    let mut parts: [&[T]; CHANNELS_MAX] = [&[]; CHANNELS_MAX];
    for (part, slice) in parts.iter_mut().zip(slices) {
        *part = &slice[at.clone()];
    }
    call(&parts[..slices.len()])
}

#[cfg(test)]
mod tests {
    use millstream_testkit::allocations;

    use super::*;

    #[test]
    fn parts_of_any_number_of_channels_need_no_memory() {
        for channels in [1, 2, 3, CHANNELS_MAX] {
            let mut memory: Vec<Vec<usize>> = (0..channels).map(|n| vec![n; 10]).collect();
            let mut outs: Vec<&mut [usize]> = memory.iter_mut().map(|one| &mut one[..]).collect();
            let before = allocations();
            let written = parts_mut(&mut outs, &(3..7), |parts| {
                parts.iter_mut().for_each(|part| part.fill(99));
                parts.iter().map(|part| part.len()).sum::<usize>()
            });
            assert_eq!((written, allocations()), (4 * channels, before));
            let ins: Vec<&[usize]> = memory.iter().map(|one| &one[..]).collect();
            let before = allocations();
            let whole = parts(&ins, &(6..9), |parts| {
                parts.iter().enumerate().all(|(n, part)| *part == [99, n, n])
            });
            assert!(whole && allocations() == before, "{channels}");
        }
    }
}
