//! The control packet.

use super::{ControlStatus, DataWords, MAX_DATA_WORDS, Op};
use crate::bits::{WordWriter, field, fit, get_u64};
use crate::chdr::{Packet, PacketType, Width, header_len, put_plain_header};
use crate::{Epid, Error, Result};

/// A control packet (type 4): a request, its acknowledgement, or an asynchronous message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CtrlRepr {
    /// The destination endpoint.
    pub dst_epid: Epid,
    /// CHDR sequence number.
    pub seq: u16,
    /// The source endpoint.
    pub src_epid: Epid,
    /// The block's port, 10 bits.
    pub dst_port: u16,
    /// The sender's port, 10 bits; equal to `dst_port` in requests.
    pub src_port: u16,
    /// Control sequence number, below [`sequence_modulus`](super::Protocol::sequence_modulus); the
    /// acknowledgement repeats it.
    pub ctrl_seq: u8,
    /// The packet answers a request.
    pub is_ack: bool,
    /// The time of execution, or of the event, in ticks.
    pub timestamp: Option<u64>,
    /// Byte address, 20 bits.
    pub address: u32,
    /// One bit per byte of the data word, 4 bits.
    pub byte_enables: u8,
    /// The operation.
    pub op: Op,
    /// The result.
    pub status: ControlStatus,
    /// Words written or read. Requests to read have one without meaning in protocol 1.0 and none
    /// in 2.0, in which acknowledgements of writes have none either.
    pub data: DataWords,
    /// The words that a read of protocol 2.0 asks for, 1 to 15; its acknowledgement repeats it.
    pub read_words: u8,
}

impl Default for CtrlRepr {
    /// Returns a read of address 0 at client zero.
    fn default() -> Self {
        CtrlRepr {
            dst_epid: Epid::NONE,
            seq: 0,
            src_epid: Epid::NONE,
            dst_port: 0,
            src_port: 0,
            ctrl_seq: 0,
            is_ack: false,
            timestamp: None,
            address: 0,
            byte_enables: 0xF,
            op: Op::Read,
            status: ControlStatus::Ok,
            data: DataWords::default(),
            read_words: 0,
        }
    }
}

impl CtrlRepr {
    /// Returns the acknowledgement of this request: same ports, sequence, operation and address,
    /// sent to the requester. `seq` is the answering side's own CHDR sequence number; `src_epid`
    /// becomes the endpoint of the request.
    #[must_use]
    pub fn ack(&self, seq: u16, status: ControlStatus, data: DataWords) -> CtrlRepr {
        CtrlRepr {
            dst_epid: self.src_epid,
            src_epid: self.dst_epid,
            seq,
            is_ack: true,
            timestamp: None,
            status,
            data,
            ..*self
        }
    }

    /// Returns the 32-bit words that this request occupies in its block's command FIFO, protocol
    /// 1.0.
    #[must_use]
    pub fn credit_words(&self) -> usize {
        2 + 2 * usize::from(self.timestamp.is_some()) + self.data.len()
    }

    /// Reads a control packet of protocol 1.0, see [`Protocol::parse`](super::Protocol::parse).
    ///
    /// # Errors
    /// [`Error::WrongPacketType`], [`Error::PayloadTooShort`], [`Error::NoData`].
    pub fn parse(packet: &Packet<'_>) -> Result<CtrlRepr> {
        let payload = packet.payload_of(PacketType::Control)?;
        let head = get_u64(payload, 0, Error::PayloadTooShort)?;
        let has_time = field(head, 30, 1) != 0;
        let timestamp = match has_time {
            true => Some(get_u64(payload, 8, Error::PayloadTooShort)?),
            false => None,
        };
        let op_at = if has_time { 16 } else { 8 };
        let op = get_u64(payload, op_at, Error::PayloadTooShort)?;
        Ok(CtrlRepr {
            dst_epid: packet.header().dst_epid,
            seq: packet.header().seq,
            src_epid: Epid(field(head, 32, 16) as u16),
            dst_port: field(head, 0, 10) as u16,
            src_port: field(head, 10, 10) as u16,
            ctrl_seq: field(head, 24, 6) as u8,
            is_ack: field(head, 31, 1) != 0,
            timestamp,
            data: parse_data(&payload[op_at + 4..], field(head, 20, 4) as usize)?,
            ..CtrlRepr::of_operation(op)
        })
    }

    /// Returns a packet with what its operation word says, which is the same in all protocols.
    pub(super) fn of_operation(word: u64) -> CtrlRepr {
        CtrlRepr {
            address: field(word, 0, 20) as u32,
            byte_enables: field(word, 20, 4) as u8,
            op: Op::from_code(field(word, 24, 4) as u8),
            status: ControlStatus::from_code(field(word, 30, 2) as u8),
            ..CtrlRepr::default()
        }
    }

    /// Returns the operation word.
    pub(super) fn operation(&self) -> Result<u64> {
        Ok(fit(self.address.into(), 0, 20)?
            | fit(self.byte_enables.into(), 20, 4)?
            | self.op.to_bits()?
            | u64::from(self.status.code()) << 30)
    }

    /// Returns the bytes of this packet of protocol 1.0 at this width. Data fills 64-bit words.
    #[must_use]
    pub fn packet_len(&self, width: Width) -> usize {
        let words = 2 + usize::from(self.timestamp.is_some()) + self.data.len() / 2;
        header_len(PacketType::Control, width) + words * 8
    }

    /// Writes the packet of protocol 1.0 and returns [`CtrlRepr::packet_len`], see
    /// [`Protocol::emit`](super::Protocol::emit).
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`], [`Error::FieldOverflow`], [`Error::NoData`].
    pub fn emit(&self, width: Width, buf: &mut [u8]) -> Result<usize> {
        let len = self.packet_len(width);
        let mut out = WordWriter::new(buf);
        put_plain_header(PacketType::Control, self.dst_epid, self.seq, len, width, &mut out)?;
        out.put(
            fit(self.dst_port.into(), 0, 10)?
                | fit(self.src_port.into(), 10, 10)?
                | fit(self.data.len() as u64, 20, 4)?
                | fit(self.ctrl_seq.into(), 24, 6)?
                | u64::from(self.timestamp.is_some()) << 30
                | u64::from(self.is_ack) << 31
                | u64::from(self.src_epid.0) << 32,
        )?;
        if let Some(ticks) = self.timestamp {
            out.put(ticks)?;
        }
        out.put(self.operation()? | u64::from(self.data.first()) << 32)?;
        for pair in self.data.get(1..).ok_or(Error::NoData)?.chunks(2) {
            let high = pair.get(1).copied().unwrap_or(0);
            out.put(u64::from(pair[0]) | u64::from(high) << 32)?;
        }
        Ok(len)
    }
}

/// Reads `count` words; an odd number may lack the padding to 64 bits.
fn parse_data(bytes: &[u8], count: usize) -> Result<DataWords> {
    let mut words = [0; MAX_DATA_WORDS];
    let words = words.get_mut(..count).ok_or(Error::FieldOverflow)?;
    let mut left = bytes;
    for word in &mut *words {
        let (chunk, rest) = left.split_first_chunk().ok_or(Error::PayloadTooShort)?;
        (*word, left) = (u32::from_le_bytes(*chunk), rest);
    }
    DataWords::new(words)
}

impl core::fmt::Display for CtrlRepr {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "control {} {} to {} port {} seq {} {:?} @{:#x} {:?}",
            if self.is_ack { "ack" } else { "request" },
            self.src_epid,
            self.dst_epid,
            self.dst_port,
            self.ctrl_seq,
            self.op,
            self.address,
            self.data
        )?;
        if let Some(ticks) = self.timestamp {
            write!(f, " time {ticks}")?;
        }
        if self.status != ControlStatus::Ok { write!(f, " {:?}", self.status) } else { Ok(()) }
    }
}
