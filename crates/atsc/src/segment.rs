//! The items between the stages of the receiver.

use crate::field::Parity;
use crate::params::{CODEWORD_BYTES, FIELD_DATA_SEGMENTS, SEGMENT_SYMBOLS};
use bytemuck::Zeroable;

/// The kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// A field sync.
    FieldSync(Parity),
    /// Data segment of this index in its field.
    Data(usize),
}

/// One segment of received symbols, segment sync first.
///
/// Segments follow each other without gap until one that [restarts](Self::restart) the stream,
/// which is always a field sync.
#[derive(Clone, Copy, Debug, Zeroable)]
#[repr(C)]
pub struct Segment {
    /// Symbol levels (-7 to 7 for data, sync at -5 and 5, pilot removed): the real part of the
    /// signal at the symbol times, in phase with the pilot.
    pub symbols: [f32; SEGMENT_SYMBOLS],
    header: SegmentHeader,
}

/// The properties of a segment other than its symbols.
#[derive(Clone, Copy, Debug, Zeroable)]
#[repr(C)]
pub struct SegmentHeader {
    at_sample: u64,
    place: u16,
    restart: bool,
    held: bool,
    presumed: bool,
}

/// A segment with the imaginary part of the signal at the same times, with the same gain and phase.
#[derive(Clone, Copy, Debug, Zeroable)]
#[repr(C)]
pub struct WholeSegment {
    /// The segment.
    pub segment: Segment,
    /// The imaginary part. It is computed around segment and field syncs and during a search for
    /// one, and zero elsewhere.
    pub quadrature: [f32; SEGMENT_SYMBOLS],
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
    /// Creates a segment of this kind; `restart` when it does not follow the previous one.
    #[must_use]
    pub fn new(kind: SegmentKind, restart: bool, symbols: &[f32; SEGMENT_SYMBOLS]) -> Self {
        let place = place(kind);
        let header = SegmentHeader { at_sample: 0, place, restart, held: false, presumed: false };
        Self { symbols: *symbols, header }
    }

    pub(crate) fn set_at_sample(&mut self, at_sample: u64) {
        self.header.at_sample = at_sample;
    }

    pub(crate) fn set_held(&mut self, held: bool) {
        self.header.held = held;
    }

    pub(crate) fn set_place(&mut self, kind: SegmentKind, restart: bool) {
        (self.header.place, self.header.restart) = (place(kind), restart);
    }

    pub(crate) fn set_presumed(&mut self, presumed: bool) {
        self.header.presumed = presumed;
    }

    /// Returns the properties other than the symbols.
    #[must_use]
    pub fn header(&self) -> SegmentHeader {
        self.header
    }

    pub(crate) fn set_header(&mut self, header: SegmentHeader) {
        self.header = header;
    }

    /// Returns [`SegmentHeader::held`].
    #[must_use]
    pub fn held(&self) -> bool {
        self.header.held()
    }

    /// Returns [`SegmentHeader::kind`].
    #[must_use]
    pub fn kind(&self) -> SegmentKind {
        self.header.kind()
    }

    /// Returns [`SegmentHeader::restart`].
    #[must_use]
    pub fn restart(&self) -> bool {
        self.header.restart()
    }
}

impl SegmentHeader {
    /// Returns whether the signal was absent (a fade, lost samples): the segment only keeps the
    /// position, and its symbols carry no information.
    #[must_use]
    pub fn held(&self) -> bool {
        self.held
    }

    /// Returns the number of samples before its first symbol since the start of the stream, with
    /// those that were reported as missing; exact to an eighth of a segment.
    #[must_use]
    pub fn at_sample(&self) -> u64 {
        self.at_sample
    }

    /// Returns the kind of the segment.
    #[must_use]
    pub fn kind(&self) -> SegmentKind {
        match self.place {
            place if place == SYNC_PLACES[0] => SegmentKind::FieldSync(Parity::First),
            place if place == SYNC_PLACES[1] => SegmentKind::FieldSync(Parity::Second),
            index => SegmentKind::Data(index as usize),
        }
    }

    /// Returns whether the segment does not follow the previous one.
    #[must_use]
    pub fn restart(&self) -> bool {
        self.restart
    }

    /// Returns whether this is a field sync by its position only, without detection.
    #[must_use]
    pub fn presumed(&self) -> bool {
        self.presumed
    }
}

/// A block of 207 bytes: between trellis decoder and deinterleaver any bytes of the stream,
/// afterwards a codeword, and after Reed-Solomon decoding a corrected one.
#[derive(Clone, Copy, Debug, Zeroable)]
#[repr(C)]
pub struct CodeBlock {
    /// [`SegmentHeader::at_sample`] of the field sync before its field.
    pub field_at_sample: u64,
    /// The bytes.
    pub bytes: [u8; CODEWORD_BYTES],
    /// Whether Reed-Solomon decoding failed.
    pub failed: bool,
    /// Position in the field, 0 to 311.
    pub index: u16,
    /// Whether the block does not follow the previous one; its index is then 0.
    pub restart: bool,
}
