//! A reader of blocks, one packet at a time. The bytes are untrusted: every fault in them is an
//! error.

use std::io::{self, Read};

use super::{BYTE_ORDER, ETHERNET, IF_OFFSET, IF_RESOLUTION, INTERFACE, PACKET, SECTION, SIMPLE};

/// Longest block that is read, bytes: far more than a frame needs.
const BLOCK_BYTES_MAX: usize = 1 << 20;

/// The most interfaces of a section.
const INTERFACES_MAX: usize = 4096;

/// The reason why a capture cannot be read (further).
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(
        "the file is not a pcapng capture; `editcap -F pcapng OLD NEW` converts other captures"
    )]
    NoCapture,
    #[error("the capture file is damaged: {0}")]
    Damaged(&'static str),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A section's description of an interface.
#[derive(Debug, Clone, Copy)]
struct Interface {
    ethernet: bool,
    /// Ticks of its time stamps in a second.
    ticks_hz: u64,
    offset_s: i64,
}

/// A captured packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CapturedPacket<'a> {
    /// The capture time, nanoseconds since 1970. `None` where the file has none.
    pub at_ns: Option<u64>,
    /// Its bytes, as far as they were captured.
    pub bytes: &'a [u8],
    /// Whether it is an Ethernet frame that was captured completely.
    pub whole_frame: bool,
}

/// Reads a capture.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    source: R,
    swapped: bool,
    interfaces: Vec<Interface>,
    block: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// Opens a capture that begins here.
    pub fn new(source: R) -> Result<Self, ReadError> {
        let mut reader = Self { source, swapped: false, interfaces: Vec::new(), block: Vec::new() };
        match reader.read_block() {
            Ok(Some(SECTION)) => Ok(reader),
            Err(ReadError::Io(error)) if error.kind() != io::ErrorKind::UnexpectedEof => {
                Err(ReadError::Io(error))
            }
            _ => Err(ReadError::NoCapture),
        }
    }

    /// Returns the source.
    pub fn source(&self) -> &R {
        &self.source
    }

    /// Returns the next packet; `None` at the end.
    pub fn next(&mut self) -> Result<Option<CapturedPacket<'_>>, ReadError> {
        loop {
            let Some(kind) = self.read_block()? else { return Ok(None) };
            if matches!(kind, PACKET | SIMPLE) {
                return self.packet(kind).map(Some);
            }
            if kind == INTERFACE {
                let interface = self.interface()?;
                if self.interfaces.len() == INTERFACES_MAX {
                    return Err(ReadError::Damaged("too many interfaces"));
                }
                self.interfaces.push(interface);
            }
        }
    }

    /// Reads a block; its body is then in `block`.
    fn read_block(&mut self) -> Result<Option<u32>, ReadError> {
        let mut head = [0; 8];
        if !self.fill_or_end(&mut head)? {
            return Ok(None);
        }
        let kind = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
        let kind = if kind == SECTION { kind } else { self.order(kind) };
        let mut order = [0; 4];
        let early = if kind == SECTION {
            self.source.read_exact(&mut order)?;
            self.swapped = match u32::from_ne_bytes(order) {
                BYTE_ORDER => false,
                word if word.swap_bytes() == BYTE_ORDER => true,
                _ => return Err(ReadError::Damaged("its byte order is unknown")),
            };
            self.interfaces.clear();
            4
        } else {
            0
        };
        let total = self.order(u32::from_ne_bytes([head[4], head[5], head[6], head[7]])) as usize;
        if !(12 + early..=BLOCK_BYTES_MAX).contains(&total) || total % 4 != 0 {
            return Err(ReadError::Damaged("the length of a block is impossible"));
        }
        self.block.resize(total - 8 - early, 0);
        self.source.read_exact(&mut self.block).map_err(cut)?;
        // The length is repeated at the end.
        self.block.truncate(total - 12 - early);
        Ok(Some(kind))
    }

    /// Fills `to`; returns false if the file ends before it.
    fn fill_or_end(&mut self, to: &mut [u8; 8]) -> Result<bool, ReadError> {
        let mut count = 0;
        while count < to.len() {
            match self.source.read(&mut to[count..]) {
                Ok(0) if count == 0 => return Ok(false),
                Ok(0) => return Err(cut(io::ErrorKind::UnexpectedEof.into())),
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    fn order(&self, word: u32) -> u32 {
        if self.swapped { word.swap_bytes() } else { word }
    }

    fn u16_at(&self, at: usize) -> Option<u16> {
        let word = u16::from_ne_bytes(self.block.get(at..at + 2)?.try_into().ok()?);
        Some(if self.swapped { word.swap_bytes() } else { word })
    }

    fn u32_at(&self, at: usize) -> Option<u32> {
        let word = u32::from_ne_bytes(self.block.get(at..at + 4)?.try_into().ok()?);
        Some(self.order(word))
    }

    fn interface(&self) -> Result<Interface, ReadError> {
        const SHORT: ReadError = ReadError::Damaged("an interface description is too short");
        let kind = self.u16_at(0).ok_or(SHORT)?;
        let mut found = Interface { ethernet: kind == ETHERNET, ticks_hz: 1_000_000, offset_s: 0 };
        let mut at = 8;
        while let (Some(code), Some(length)) = (self.u16_at(at), self.u16_at(at + 2)) {
            let length = usize::from(length);
            let value = self.block.get(at + 4..at + 4 + length).ok_or(SHORT)?;
            match (code, value) {
                (0, _) => break,
                (IF_RESOLUTION, &[power]) => found.ticks_hz = ticks_hz(power)?,
                (IF_OFFSET, value) => {
                    let bytes = value.try_into().map_err(|_| SHORT)?;
                    let offset_s = i64::from_ne_bytes(bytes);
                    found.offset_s = if self.swapped { offset_s.swap_bytes() } else { offset_s };
                }
                _ => {}
            }
            at += 4 + length.next_multiple_of(4);
        }
        Ok(found)
    }

    fn packet(&self, kind: u32) -> Result<CapturedPacket<'_>, ReadError> {
        const SHORT: ReadError = ReadError::Damaged("a packet is shorter than it says");
        const NOWHERE: ReadError = ReadError::Damaged("a packet of an unknown interface");
        let number = if kind == PACKET { self.u32_at(0).ok_or(SHORT)? } else { 0 };
        let interface = self.interfaces.get(number as usize).ok_or(NOWHERE)?;
        if kind == SIMPLE {
            let original = self.u32_at(0).ok_or(SHORT)? as usize;
            let bytes = self.block.get(4..).ok_or(SHORT)?;
            let bytes = &bytes[..original.min(bytes.len())];
            let whole_frame = interface.ethernet && bytes.len() == original;
            return Ok(CapturedPacket { at_ns: None, bytes, whole_frame });
        }
        let [upper, lower, captured, original] =
            [4, 8, 12, 16].map(|at| self.u32_at(at)).map(|word| word.unwrap_or(u32::MAX));
        let bytes = self.block.get(20..).and_then(|rest| rest.get(..captured as usize));
        let bytes = bytes.ok_or(SHORT)?;
        let ticks = u64::from(upper) << 32 | u64::from(lower);
        let whole_frame = interface.ethernet && captured == original;
        Ok(CapturedPacket { at_ns: Some(interface.time_ns(ticks)), bytes, whole_frame })
    }
}

impl Interface {
    fn time_ns(&self, ticks: u64) -> u64 {
        let ns = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_hz);
        let ns = ns as i128 + i128::from(self.offset_s) * 1_000_000_000;
        u64::try_from(ns).unwrap_or(0)
    }
}

/// Returns the ticks per second of `if_tsresol`: a negative power of ten, or of two with the
/// highest bit set.
fn ticks_hz(power: u8) -> Result<u64, ReadError> {
    let exponent = u32::from(power & 0x7f);
    let ticks_hz = if power & 0x80 == 0 { 10u64 } else { 2 }.checked_pow(exponent);
    ticks_hz.ok_or(ReadError::Damaged("its time stamps are finer than can be counted"))
}

fn cut(error: io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => ReadError::Damaged("it ends in the middle of a block"),
        _ => error.into(),
    }
}
