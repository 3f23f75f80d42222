//! The little of IPv4 that links must write themselves.

/// The checksum of an IPv4 header in which the checksum is zero (RFC 791, RFC 1071).
pub(crate) fn header_checksum(header: &[u8]) -> u16 {
    let words =
        header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_sum_over_a_whole_header_is_all_ones() {
        let mut header = [
            0x45, 0, 0xff, 0xfe, 0xab, 0xcd, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 255, 255, 255, 255,
        ];
        let sum = super::header_checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(super::header_checksum(&header), 0);
    }
}
