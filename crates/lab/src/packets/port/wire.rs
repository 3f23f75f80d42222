//! The time of a frame on the wire (IEEE 802.3, clauses 3.1.1 and 4.4.2).

use std::time::Duration;

/// Bytes around a frame as the kernel counts it (no check sequence): preamble and delimiter 8,
/// check sequence 4, gap 12.
pub const OVERHEAD: u16 = 8 + 4 + 12;

/// Bytes on the wire of the shortest frame: 64 with its check sequence, preamble and gap.
pub const LEAST: u16 = 64 + 8 + 12;

/// How far a frame may leave before its time: about the lateness of the kernel's timers on a
/// virtual machine (`latency timer`: 17 us). An idle port gives the next frame this credit, too.
pub const CREDIT: Duration = Duration::from_micros(30);

/// The time for which a frame of `frame_bytes` (Ethernet header included, check sequence not) makes
/// a port of `rate_bps` busy, nanoseconds.
#[must_use]
pub fn frame_ns(rate_bps: f64, frame_bytes: usize) -> f64 {
    let wire = (frame_bytes + usize::from(OVERHEAD)).max(usize::from(LEAST));
    wire as f64 * 8.0 * 1e9 / rate_bps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_take_what_the_standard_says() {
        // The known frame rates of Ethernet: 148 810 and 8 127 frames/s at 100 Mbit/s.
        assert_eq!((1e9 / frame_ns(1e8, 60)).round(), 148_810.0);
        assert_eq!((1e9 / frame_ns(1e8, 1514)).round(), 8_127.0);
        assert_eq!(frame_ns(1e9, 1514), 12_304.0);
        assert_eq!(frame_ns(1e9, 1), frame_ns(1e9, 60), "short ones are padded");
    }
}
