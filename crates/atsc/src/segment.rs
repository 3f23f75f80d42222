//! What flows between the stages of the receiver.

use crate::field::Parity;
use crate::params::{CODEWORD_BYTES, FIELD_DATA_SEGMENTS, SEGMENT_SYMBOLS};
use bytemuck::Zeroable;

/// What a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// A field sync.
    FieldSync(Parity),
    /// Data segment of this index in its field.
    Data(usize),
}

/// One segment of received symbols, segment sync first.
///
/// Segments follow each other without gap until one that [restarts](Self::restart) the stream;
/// such a one is always a field sync.
#[derive(Clone, Copy, Debug, Zeroable)]
#[repr(C)]
pub struct Segment {
    /// Symbol levels (-7 to 7 for data, sync at -5 and 5, pilot removed): the real part of the
    /// signal at the symbol times, in phase with the pilot.
    pub symbols: [f32; SEGMENT_SYMBOLS],
    /// The imaginary part at the same times, with the same gain and phase. Both together are a
    /// vestigial-sideband signal at twice the rate that it needs, so a filter of two rows corrects
    /// timing and phase as well as echoes. After equalising it means nothing.
    pub quadrature: [f32; SEGMENT_SYMBOLS],
    place: u16,
    restart: bool,
    held: bool,
}

/// `place` of a field sync of the first and the second kind.
const SYNC_PLACES: [u16; 2] = [FIELD_DATA_SEGMENTS as u16, FIELD_DATA_SEGMENTS as u16 + 1];

fn place(kind: SegmentKind) -> u16 {
    match kind {
        SegmentKind::FieldSync(Parity::First) => SYNC_PLACES[0],
        SegmentKind::FieldSync(Parity::Second) => SYNC_PLACES[1],
        SegmentKind::Data(index) => {
            debug_assert!(index < FIELD_DATA_SEGMENTS, "a field has 312 data segments");
            index as u16
        }
    }
}

impl Segment {
    /// A segment of its kind, without quadrature; `restart` when it does not follow the one before.
    #[must_use]
    pub fn new(kind: SegmentKind, restart: bool, symbols: &[f32; SEGMENT_SYMBOLS]) -> Self {
        let place = place(kind);
        Self { symbols: *symbols, quadrature: [0.0; SEGMENT_SYMBOLS], place, restart, held: false }
    }

    /// The same segment with this imaginary part.
    #[must_use]
    pub fn with_quadrature(self, quadrature: &[f32; SEGMENT_SYMBOLS]) -> Self {
        Self { quadrature: *quadrature, ..self }
    }

    /// The same segment, marked as one of a break.
    #[must_use]
    pub fn with_held(self, held: bool) -> Self {
        Self { held, ..self }
    }

    pub(crate) fn set_held(&mut self, held: bool) {
        self.held = held;
    }

    pub(crate) fn set_place(&mut self, kind: SegmentKind, restart: bool) {
        (self.place, self.restart) = (place(kind), restart);
    }

    /// Whether the signal was away (a fade, samples lost on the way): the segment only keeps the
    /// place, and there is nothing to be learnt from its symbols.
    #[must_use]
    pub fn held(&self) -> bool {
        self.held
    }

    /// What the segment is.
    #[must_use]
    pub fn kind(&self) -> SegmentKind {
        match self.place {
            place if place == SYNC_PLACES[0] => SegmentKind::FieldSync(Parity::First),
            place if place == SYNC_PLACES[1] => SegmentKind::FieldSync(Parity::Second),
            index => SegmentKind::Data(index as usize),
        }
    }

    /// Whether the segment does not follow the one before it.
    #[must_use]
    pub fn restart(&self) -> bool {
        self.restart
    }
}

/// As many bytes as a codeword: between trellis decoder and deinterleaver any 207 bytes of the
/// stream, afterwards a codeword, and after Reed-Solomon decoding a corrected one.
#[derive(Clone, Copy, Debug, Zeroable)]
#[repr(C)]
pub struct CodeBlock {
    /// The bytes.
    pub bytes: [u8; CODEWORD_BYTES],
    /// Whether Reed-Solomon decoding failed.
    pub failed: bool,
    /// Position in the field, 0 to 311.
    pub index: u16,
    /// Whether the block does not follow the one before it; its index is then 0.
    pub restart: bool,
}
