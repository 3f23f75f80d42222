//! Sizes to try.

/// Rings are whole pages.
const PAGE_BYTES: usize = 4 << 10;

/// Returns the sizes from `least` to `most` in steps of a factor of two, bytes.
pub(super) fn octaves(least: usize, most: usize) -> Vec<usize> {
    std::iter::successors(Some(least), |bytes| Some(bytes * 2))
        .take_while(|bytes| *bytes <= most)
        .collect()
}

/// Returns sizes between half and twice `bytes`, whole pages, without `bytes` itself.
pub(super) fn between_octaves(bytes: usize) -> Vec<usize> {
    // A size that is not set has no sizes around it.
    let mut sizes: Vec<usize> = [5, 6, 7, 10, 12]
        .iter()
        .map(|eighths| (bytes / 8 * eighths).next_multiple_of(PAGE_BYTES))
        .filter(|size| *size != bytes && (1..2 * bytes).contains(size))
        .collect();
    sizes.dedup();
    sizes
}

/// Formats a size as users write it.
pub(super) fn in_words(bytes: usize) -> String {
    match bytes {
        0 => "0".to_owned(),
        _ if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        _ if bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fine_sizes_lie_around_and_are_whole_pages() {
        assert_eq!(between_octaves(64 << 10), [40, 48, 56, 80, 96].map(|k| k << 10));
        assert_eq!(between_octaves(8 << 10), [12 << 10]);
        assert!(between_octaves(4 << 10).is_empty());
    }

    #[test]
    fn octaves_end_where_they_should() {
        assert_eq!(octaves(8, 64), [8, 16, 32, 64]);
        assert_eq!(octaves(8, 63), [8, 16, 32]);
        let words = [0, 4096, 3 << 20, 1000].map(in_words);
        assert_eq!(words, ["0", "4 KiB", "3 MiB", "1000 B"]);
    }
}
