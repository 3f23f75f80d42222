//! Packets to segments of symbols: randomiser, Reed-Solomon, interleaver, trellis, syncs.

use crate::code::interleaver::{Interleaver, TOTAL_DELAY_BYTES};
use crate::code::trellis::{SymbolBits, TrellisEncoder, UNIT_BYTES, UNIT_SEGMENTS, level};
use crate::code::{randomizer, rs};
use crate::field::{PRECODE_SYMBOLS, Parity, SEGMENT_SYNC, field_sync};
use crate::params::{
    CODEWORD_BYTES, DATA_SYMBOLS, FIELD_DATA_SEGMENTS, PACKET_BYTES, PAYLOAD_BYTES,
    SEGMENT_SYMBOLS, SYNC_SYMBOLS,
};

/// Builds the frames of the transmission, segment by segment, as symbol levels without pilot.
#[derive(Clone, Debug)]
pub struct FrameBuilder {
    parity: Parity,
    /// Data segments of this field already put out; `None` when the field sync is next.
    sent: Option<usize>,
    interleaver: Interleaver,
    trellis: TrellisEncoder,
    coded: Box<[[SymbolBits; DATA_SYMBOLS]; UNIT_SEGMENTS]>,
    precode: [f32; PRECODE_SYMBOLS],
}

impl FrameBuilder {
    /// Creates a builder at the field sync of a first field.
    #[must_use]
    pub fn new() -> Self {
        Self {
            parity: Parity::First,
            sent: None,
            interleaver: running_interleaver(),
            trellis: TrellisEncoder::new(),
            coded: Box::new([[0; DATA_SYMBOLS]; UNIT_SEGMENTS]),
            precode: [crate::params::SYNC_LEVEL; PRECODE_SYMBOLS],
        }
    }

    /// Writes the next segment; requests packets in groups of four.
    pub fn next_segment(
        &mut self,
        next_packet: &mut dyn FnMut(&mut [u8; PACKET_BYTES]),
        segment: &mut [f32; SEGMENT_SYMBOLS],
    ) {
        let Some(index) = self.sent else {
            *segment = *field_sync(self.parity);
            segment[SEGMENT_SYMBOLS - PRECODE_SYMBOLS..].copy_from_slice(&self.precode);
            self.parity = self.parity.other();
            self.sent = Some(0);
            return;
        };
        if index % UNIT_SEGMENTS == 0 {
            self.code_unit(index, next_packet);
        }
        segment[..SYNC_SYMBOLS].copy_from_slice(&SEGMENT_SYNC);
        let data = &self.coded[index % UNIT_SEGMENTS];
        for (out, bits) in segment[SYNC_SYMBOLS..].iter_mut().zip(data) {
            *out = f32::from(level(*bits));
        }
        self.sent = Some(index + 1);
        if index + 1 == FIELD_DATA_SEGMENTS {
            self.sent = None;
            self.precode.copy_from_slice(&segment[SEGMENT_SYMBOLS - PRECODE_SYMBOLS..]);
        }
    }

    /// Codes four packets into four data segments.
    fn code_unit(
        &mut self,
        first_segment: usize,
        next_packet: &mut dyn FnMut(&mut [u8; PACKET_BYTES]),
    ) {
        let mut bytes = [0; UNIT_BYTES];
        for (i, codeword) in bytes.chunks_exact_mut(CODEWORD_BYTES).enumerate() {
            let mut packet = [0; PACKET_BYTES];
            next_packet(&mut packet);
            let mut payload = *packet.last_chunk().expect("a packet is longer than its payload");
            randomizer::apply(first_segment + i, &mut payload);
            codeword.copy_from_slice(&rs::encode(&payload));
        }
        self.interleaver.process(&mut bytes);
        self.trellis.encode_unit(first_segment, &bytes, &mut self.coded);
    }
}

/// Returns an interleaver in its running state, full of randomised null packets. (With zeros the
/// start of the signal would not be random, and receivers rely on random data.)
fn running_interleaver() -> Interleaver {
    let mut interleaver = Interleaver::new();
    for segment in
        FIELD_DATA_SEGMENTS - TOTAL_DELAY_BYTES.div_ceil(CODEWORD_BYTES)..FIELD_DATA_SEGMENTS
    {
        let mut payload = [0xFF; PAYLOAD_BYTES];
        randomizer::apply(segment, &mut payload);
        let mut codeword = rs::encode(&payload);
        interleaver.process(&mut codeword);
    }
    interleaver
}

impl Default for FrameBuilder {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nulls(packet: &mut [u8; PACKET_BYTES]) {
        packet.fill(0xFF);
    }

    #[test]
    fn a_field_is_its_sync_and_312_data_segments() {
        let mut frame = FrameBuilder::new();
        let mut segment = [0.0; SEGMENT_SYMBOLS];
        let mut last = segment;
        let mut packets = 0;
        let mut count = |packet: &mut [u8; PACKET_BYTES]| {
            packets += 1;
            nulls(packet);
        };
        for field in 0..3 {
            let parity = if field % 2 == 0 { Parity::First } else { Parity::Second };
            frame.next_segment(&mut count, &mut segment);
            let known = SEGMENT_SYMBOLS - PRECODE_SYMBOLS;
            assert_eq!(segment[..known], field_sync(parity)[..known]);
            if field > 0 {
                assert_eq!(segment[known..], last[known..]);
            }
            for _ in 0..FIELD_DATA_SEGMENTS {
                frame.next_segment(&mut count, &mut segment);
                assert_eq!(segment[..SYNC_SYMBOLS], SEGMENT_SYNC);
            }
            last = segment;
        }
        assert_eq!(packets, 3 * FIELD_DATA_SEGMENTS);
    }

    #[test]
    fn data_levels_have_the_power_that_the_parameters_state() {
        let mut frame = FrameBuilder::new();
        let mut segment = [0.0; SEGMENT_SYMBOLS];
        let (mut power, mut count) = (0.0, 0.0);
        for _ in 0..200 {
            frame.next_segment(&mut nulls, &mut segment);
            power += segment[SYNC_SYMBOLS..].iter().map(|x| f64::from(x * x)).sum::<f64>();
            count += DATA_SYMBOLS as f64;
        }
        let mean = power / count;
        assert!((mean - f64::from(crate::params::DATA_POWER)).abs() < 0.5, "{mean}");
    }
}
