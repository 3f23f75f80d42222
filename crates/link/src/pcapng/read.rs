//! A reader of blocks, one packet at a time, also of the older pcap format, which `tcpdump` writes
//! (draft-ietf-opsawg-pcap). The bytes are untrusted: every fault in them is an error.

use std::io::{self, Read};

use super::{
    BYTE_ORDER, EPB_FLAGS, ETHERNET, FrameDirection, IF_DROPPED, IF_OFFSET, IF_RESOLUTION,
    INTERFACE, JOURNAL, OS_DROPPED, PACKET, PCAP_MICRO, PCAP_NANO, SECTION, SIMPLE, STATISTICS,
};

/// Longest block that is read, bytes: far more than a frame needs.
const BLOCK_BYTES_MAX: usize = 1 << 20;

/// The most interfaces of a section.
const INTERFACES_MAX: usize = 4096;

/// The reason why a capture cannot be read (further).
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// It begins with no known capture format.
    #[error(
        "the file is no pcapng or pcap capture; `editcap -F pcapng OLD NEW` converts other captures"
    )]
    NoCapture,
    /// Its content is impossible, or it ends too early.
    #[error("the capture file is damaged: {0}")]
    Damaged(&'static str),
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A section's description of an interface.
#[derive(Debug, Clone, Copy)]
struct Interface {
    link_type: u16,
    /// Ticks of its time stamps in a second.
    ticks_hz: u64,
    offset_s: i64,
    /// What its last statistics say of the packets that the capture missed.
    dropped: u64,
}

/// A captured packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedPacket<'a> {
    /// The capture time, nanoseconds since 1970. `None` where the file has none.
    pub at_ns: Option<u64>,
    /// Its interface, by its position among those of its section.
    pub interface: u32,
    /// Its direction, where the file has it.
    pub direction: Option<FrameDirection>,
    /// What it begins with, by its `LINKTYPE_` number.
    pub link_type: u16,
    /// Its bytes, as far as they were captured.
    pub bytes: &'a [u8],
    /// Whether they are all of it.
    pub is_whole: bool,
}

impl CapturedPacket<'_> {
    /// Returns whether it is an Ethernet frame that was captured completely.
    pub(crate) fn is_whole_frame(&self) -> bool {
        self.is_whole && self.link_type == ETHERNET
    }
}

/// What a file has in the order of its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureItem<'a> {
    /// A packet.
    Packet(CapturedPacket<'a>),
    /// An entry in the export format of systemd's journal, with zeros behind it.
    JournalEntry(&'a [u8]),
}

/// Reads a capture.
#[derive(Debug)]
pub struct CaptureReader<R> {
    source: R,
    swapped: bool,
    /// Whether it is the older format: its only interface is the first one.
    is_pcap: bool,
    interfaces: Vec<Interface>,
    block: Vec<u8>,
    /// What the capture missed, by the statistics of the sections before.
    dropped: u64,
}

impl<R: Read> CaptureReader<R> {
    /// Opens a capture that begins here.
    ///
    /// # Errors
    /// [`CaptureError::NoCapture`], [`CaptureError::Io`].
    pub fn new(source: R) -> Result<Self, CaptureError> {
        let (interfaces, block) = (Vec::new(), Vec::new());
        let mut reader =
            Self { source, swapped: false, is_pcap: false, interfaces, block, dropped: 0 };
        let mut head = [0; 8];
        let begin = reader.fill_or_end(&mut head).and_then(|_| reader.begin(head));
        match begin {
            Ok(true) => Ok(reader),
            Err(CaptureError::Io(error)) if error.kind() != io::ErrorKind::UnexpectedEof => {
                Err(CaptureError::Io(error))
            }
            _ => Err(CaptureError::NoCapture),
        }
    }

    /// Reads the head of the file; returns false if it is none.
    fn begin(&mut self, head: [u8; 8]) -> Result<bool, CaptureError> {
        let magic = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
        if magic == SECTION {
            return self.body(head).map(|kind| kind == SECTION);
        }
        let ticks_hz = match (magic, magic.swap_bytes()) {
            (PCAP_MICRO, _) | (_, PCAP_MICRO) => 1_000_000,
            (PCAP_NANO, _) | (_, PCAP_NANO) => 1_000_000_000,
            _ => return Ok(false),
        };
        self.swapped = !matches!(magic, PCAP_MICRO | PCAP_NANO);
        let mut rest = [0; 16];
        self.source.read_exact(&mut rest)?;
        let [.., a, b, c, d] = rest;
        // The upper bits are about the frame's check sequence.
        let link_type = self.order(u32::from_ne_bytes([a, b, c, d])) as u16;
        self.is_pcap = true;
        self.interfaces.push(Interface { link_type, ticks_hz, offset_s: 0, dropped: 0 });
        Ok(true)
    }

    /// Returns the source.
    pub fn source(&self) -> &R {
        &self.source
    }

    /// Returns the packets that the capture itself missed, by what was read so far of a pcapng file
    /// (`isb_ifdrop`, `isb_osdrop`). The older format does not say it.
    pub fn dropped(&self) -> Option<u64> {
        let of_section = self.interfaces.iter().map(|interface| interface.dropped);
        (!self.is_pcap).then(|| of_section.fold(self.dropped, u64::saturating_add))
    }

    /// Returns the next packet; `None` at the end.
    ///
    /// # Errors
    /// [`CaptureError::Damaged`], [`CaptureError::Io`].
    pub fn next_packet(&mut self) -> Result<Option<CapturedPacket<'_>>, CaptureError> {
        if self.is_pcap {
            return self.record();
        }
        loop {
            match self.next_kind()? {
                None => return Ok(None),
                Some(JOURNAL) => {}
                Some(kind) => return self.packet(kind).map(Some),
            }
        }
    }

    /// Returns the next packet or entry of a journal; `None` at the end.
    ///
    /// # Errors
    /// Those of [`next_packet`](Self::next_packet).
    pub fn next_item(&mut self) -> Result<Option<CaptureItem<'_>>, CaptureError> {
        if self.is_pcap {
            return Ok(self.record()?.map(CaptureItem::Packet));
        }
        Ok(match self.next_kind()? {
            None => None,
            Some(JOURNAL) => Some(CaptureItem::JournalEntry(&self.block)),
            Some(kind) => Some(CaptureItem::Packet(self.packet(kind)?)),
        })
    }

    /// Reads up to the next packet or entry of a journal, which is then in `block`.
    fn next_kind(&mut self) -> Result<Option<u32>, CaptureError> {
        loop {
            let Some(kind) = self.read_block()? else { return Ok(None) };
            if matches!(kind, PACKET | SIMPLE | JOURNAL) {
                return Ok(Some(kind));
            }
            if kind == STATISTICS {
                let (number, dropped) = (self.u32_at(0), self.dropped_by_statistics());
                let number = number.and_then(|number| usize::try_from(number).ok());
                if let Some(of) = number.and_then(|number| self.interfaces.get_mut(number)) {
                    of.dropped = dropped;
                }
            }
            if kind == INTERFACE {
                let interface = self.interface()?;
                if self.interfaces.len() == INTERFACES_MAX {
                    return Err(CaptureError::Damaged("too many interfaces"));
                }
                self.interfaces.push(interface);
            }
        }
    }

    /// Returns the next packet of the older format.
    fn record(&mut self) -> Result<Option<CapturedPacket<'_>>, CaptureError> {
        let (mut head, mut lengths) = ([0; 8], [0; 8]);
        if !self.fill_or_end(&mut head)? {
            return Ok(None);
        }
        self.source.read_exact(&mut lengths).map_err(cut)?;
        let word = |bytes: [u8; 8], at: usize| {
            self.order(u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
        };
        let (seconds, part) = (word(head, 0), word(head, 4));
        let (captured, original) = (word(lengths, 0), word(lengths, 4));
        if captured as usize > BLOCK_BYTES_MAX {
            return Err(CaptureError::Damaged("the length of a packet is impossible"));
        }
        self.block.resize(captured as usize, 0);
        self.source.read_exact(&mut self.block).map_err(cut)?;
        let interface = self.interfaces[0];
        let ticks = u64::from(seconds) * interface.ticks_hz + u64::from(part);
        let (link_type, is_whole) = (interface.link_type, captured == original);
        let at_ns = Some(interface.time_ns(ticks));
        let (bytes, direction) = (&self.block[..], None);
        Ok(Some(CapturedPacket { at_ns, interface: 0, direction, link_type, bytes, is_whole }))
    }

    /// Reads a block; its body is then in `block`.
    fn read_block(&mut self) -> Result<Option<u32>, CaptureError> {
        let mut head = [0; 8];
        if !self.fill_or_end(&mut head)? {
            return Ok(None);
        }
        self.body(head).map(Some)
    }

    /// Reads a block behind its first eight bytes.
    fn body(&mut self, head: [u8; 8]) -> Result<u32, CaptureError> {
        let kind = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
        let kind = if kind == SECTION { kind } else { self.order(kind) };
        let mut order = [0; 4];
        let early = if kind == SECTION {
            self.source.read_exact(&mut order).map_err(cut)?;
            self.swapped = match u32::from_ne_bytes(order) {
                BYTE_ORDER => false,
                word if word.swap_bytes() == BYTE_ORDER => true,
                _ => return Err(CaptureError::Damaged("its byte order is unknown")),
            };
            self.dropped = self.dropped().unwrap_or(0);
            self.interfaces.clear();
            4
        } else {
            0
        };
        let total = self.order(u32::from_ne_bytes([head[4], head[5], head[6], head[7]])) as usize;
        if !(12 + early..=BLOCK_BYTES_MAX).contains(&total) || total % 4 != 0 {
            return Err(CaptureError::Damaged("the length of a block is impossible"));
        }
        self.block.resize(total - 8 - early, 0);
        self.source.read_exact(&mut self.block).map_err(cut)?;
        // The length is repeated at the end.
        self.block.truncate(total - 12 - early);
        Ok(kind)
    }

    /// Fills `to`; returns false if the file ends before it.
    fn fill_or_end(&mut self, to: &mut [u8; 8]) -> Result<bool, CaptureError> {
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

    fn interface(&self) -> Result<Interface, CaptureError> {
        const SHORT: CaptureError = CaptureError::Damaged("an interface description is too short");
        let kind = self.u16_at(0).ok_or(SHORT)?;
        let mut found = Interface { link_type: kind, ticks_hz: 1_000_000, offset_s: 0, dropped: 0 };
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

    fn dropped_by_statistics(&self) -> u64 {
        let (mut at, mut dropped) = (12, 0_u64);
        while let (Some(code), Some(length)) = (self.u16_at(at), self.u16_at(at + 2)) {
            if matches!(code, IF_DROPPED | OS_DROPPED) && length == 8 {
                let halves = (self.u32_at(at + 4), self.u32_at(at + 8));
                let (one, two) = (halves.0.unwrap_or(0), halves.1.unwrap_or(0));
                let (low, high) = if self.is_little() { (one, two) } else { (two, one) };
                dropped = dropped.saturating_add(u64::from(high) << 32 | u64::from(low));
            }
            if code == 0 {
                break;
            }
            at += 4 + usize::from(length).next_multiple_of(4);
        }
        dropped
    }

    /// Returns whether the file has the lower byte first.
    fn is_little(&self) -> bool {
        cfg!(target_endian = "little") != self.swapped
    }

    fn packet(&self, kind: u32) -> Result<CapturedPacket<'_>, CaptureError> {
        const SHORT: CaptureError = CaptureError::Damaged("a packet is shorter than it says");
        const NOWHERE: CaptureError = CaptureError::Damaged("a packet of an unknown interface");
        let number = if kind == PACKET { self.u32_at(0).ok_or(SHORT)? } else { 0 };
        let interface = self.interfaces.get(number as usize).ok_or(NOWHERE)?;
        if kind == SIMPLE {
            let original = self.u32_at(0).ok_or(SHORT)? as usize;
            let bytes = self.block.get(4..).ok_or(SHORT)?;
            let bytes = &bytes[..original.min(bytes.len())];
            let (link_type, is_whole) = (interface.link_type, bytes.len() == original);
            let (at_ns, direction) = (None, None);
            return Ok(CapturedPacket {
                at_ns,
                interface: 0,
                direction,
                link_type,
                bytes,
                is_whole,
            });
        }
        let [upper, lower, captured, original] =
            [4, 8, 12, 16].map(|at| self.u32_at(at)).map(|word| word.unwrap_or(u32::MAX));
        let bytes = self.block.get(20..).and_then(|rest| rest.get(..captured as usize));
        let bytes = bytes.ok_or(SHORT)?;
        let ticks = u64::from(upper) << 32 | u64::from(lower);
        let (link_type, is_whole) = (interface.link_type, captured == original);
        let options = 20 + (captured as usize).next_multiple_of(4);
        Ok(CapturedPacket {
            at_ns: Some(interface.time_ns(ticks)),
            interface: number,
            direction: self.direction(options),
            link_type,
            bytes,
            is_whole,
        })
    }

    /// Returns the direction in the options that begin here.
    fn direction(&self, mut at: usize) -> Option<FrameDirection> {
        loop {
            match (self.u16_at(at)?, usize::from(self.u16_at(at + 2)?)) {
                (0, _) => return None,
                (EPB_FLAGS, 4) => {
                    return match self.u32_at(at + 4)? & 3 {
                        1 => Some(FrameDirection::In),
                        2 => Some(FrameDirection::Out),
                        _ => None,
                    };
                }
                (_, length) => at += 4 + length.next_multiple_of(4),
            }
        }
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
fn ticks_hz(power: u8) -> Result<u64, CaptureError> {
    let exponent = u32::from(power & 0x7f);
    let ticks_hz = if power & 0x80 == 0 { 10u64 } else { 2 }.checked_pow(exponent);
    ticks_hz.ok_or(CaptureError::Damaged("its time stamps are finer than can be counted"))
}

fn cut(error: io::Error) -> CaptureError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => CaptureError::Damaged("it ends in the middle of a block"),
        _ => error.into(),
    }
}
