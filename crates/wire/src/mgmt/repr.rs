//! A whole management packet, stored in place, and its execution by a node.

use super::{Op, PROTOCOL_VERSION};
use crate::bits::{WordWriter, field, get_u64};
use crate::chdr::{self, PacketType, Width, put_plain_header};
use crate::{Epid, Error, Result};

/// The most operations, over all hops, of a [`MgmtRepr`]. UHD's requests have at most a dozen; a
/// packet with more than this is rejected with [`Error::TooManyOps`].
pub const MAX_OPS: usize = 64;

/// A management packet of at most [`MAX_OPS`] operations (about 1 KiB, no heap).
#[derive(Clone)]
pub struct MgmtRepr {
    /// Destination endpoint: [`Epid::NONE`] in requests, the host's in replies.
    pub dst_epid: Epid,
    /// CHDR sequence number; a reply repeats its request's.
    pub seq: u16,
    /// The endpoint of the requesting host; [`Epid::NONE`] in replies.
    pub src_epid: Epid,
    /// Protocol version.
    pub version: u16,
    ops: [Op; MAX_OPS],
    /// `ends[i]`: operation i is the last of its hop.
    ends: [bool; MAX_OPS],
    len: usize,
}

/// The direction in which a node sends a packet whose first hop it has executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardHops {
    /// Forward: a crossbar by its routing table, a transport by its only output.
    Default,
    /// Forward by this port of the crossbar.
    Port(u16),
    /// Back to its source: source and destination are exchanged.
    Return,
}

impl MgmtRepr {
    /// Returns a request from `src_epid` without hops.
    #[must_use]
    pub fn request(src_epid: Epid, seq: u16) -> MgmtRepr {
        MgmtRepr {
            dst_epid: Epid::NONE,
            seq,
            src_epid,
            version: PROTOCOL_VERSION,
            ops: [Op::Nop; MAX_OPS],
            ends: [false; MAX_OPS],
            len: 0,
        }
    }

    /// Appends a hop.
    ///
    /// # Errors
    /// [`Error::TooManyOps`] beyond [`MAX_OPS`] in all, [`Error::NoHop`] for an empty hop.
    pub fn push_hop(&mut self, ops: &[Op]) -> Result<()> {
        let Some(last) = ops.len().checked_sub(1) else { return Err(Error::NoHop) };
        let free = self.ops.get_mut(self.len..self.len + ops.len()).ok_or(Error::TooManyOps)?;
        free.copy_from_slice(ops);
        self.ends[self.len..self.len + last].fill(false);
        self.ends[self.len + last] = true;
        self.len += ops.len();
        Ok(())
    }

    /// Appends a hop and returns the packet, to write requests in one expression.
    ///
    /// # Errors
    /// As [`MgmtRepr::push_hop`].
    pub fn hop(mut self, ops: &[Op]) -> Result<MgmtRepr> {
        self.push_hop(ops)?;
        Ok(self)
    }

    /// Returns the hops, first to last, each a slice of operations.
    pub fn hops(&self) -> impl Iterator<Item = &[Op]> {
        let mut start = 0;
        core::iter::from_fn(move || {
            let end = start + self.first_hop_len(start)?;
            let hop = &self.ops[start..end];
            start = end;
            Some(hop)
        })
    }

    /// Returns the number of operations of the hop that begins at operation `start`, if there is
    /// one.
    fn first_hop_len(&self, start: usize) -> Option<usize> {
        self.ends[start..self.len].iter().position(|&end| end).map(|last| last + 1)
    }

    /// Executes the packet at a node: removes the first hop, passes its operations to `answer` in
    /// order, appends the answers to the next hop, and returns the direction of the packet.
    ///
    /// `answer` is called for every operation, so that the node can record an ADVERTISE or write a
    /// register; its results (for INFO_REQ and CFG_RD_REQ) are appended. NOP, SEL_DEST and RETURN
    /// need no action of it. SEL_DEST and RETURN act as the last operation of a hop only: with
    /// others behind them the packet goes on to its destination, as the logic of radios sends it.
    ///
    /// # Errors
    /// [`Error::NoHop`] without a hop, [`Error::NoReplyHop`] for answers without a further hop. The
    /// packet must then be dropped.
    pub fn execute(&mut self, mut answer: impl FnMut(Op) -> Option<Op>) -> Result<ForwardHops> {
        let hop_len = self.first_hop_len(0).ok_or(Error::NoHop)?;
        let forward = match self.ops[hop_len - 1] {
            Op::Return => ForwardHops::Return,
            Op::SelDest(port) => ForwardHops::Port(port),
            _ => ForwardHops::Default,
        };
        let mut answers = [Op::Nop; MAX_OPS];
        let mut count = 0;
        for op in &self.ops[..hop_len] {
            if let Some(response) = answer(*op) {
                answers[count] = response;
                count += 1;
            }
        }
        self.ops.copy_within(hop_len..self.len, 0);
        self.ends.copy_within(hop_len..self.len, 0);
        self.len -= hop_len;
        self.append_to_first_hop(&answers[..count])?;
        if forward == ForwardHops::Return {
            core::mem::swap(&mut self.dst_epid, &mut self.src_epid);
        }
        Ok(forward)
    }

    fn append_to_first_hop(&mut self, answers: &[Op]) -> Result<()> {
        if answers.is_empty() {
            return Ok(());
        }
        let at = self.first_hop_len(0).ok_or(Error::NoReplyHop)?;
        // There is space: a hop has at most one answer per removed operation.
        let end = at + answers.len();
        self.ops.copy_within(at..self.len, end);
        self.ends.copy_within(at..self.len, end);
        self.ops[at..end].copy_from_slice(answers);
        self.ends[at - 1..end].fill(false);
        self.ends[end - 1] = true;
        self.len += answers.len();
        Ok(())
    }

    /// Reads a packet of type management. Bytes behind the last hop are ignored.
    ///
    /// # Errors
    /// [`Error::WrongPacketType`], [`Error::PayloadTooShort`], [`Error::WidthMismatch`],
    /// [`Error::UnknownOp`], [`Error::BadOpCount`], [`Error::TooManyOps`].
    pub fn parse(packet: &chdr::Packet<'_>) -> Result<MgmtRepr> {
        let payload = packet.payload_of(PacketType::Management)?;
        let head = get_u64(payload, 0, Error::PayloadTooShort)?;
        if field(head, 45, 3) != u64::from(packet.width().code()) {
            return Err(Error::WidthMismatch);
        }
        let mut repr = MgmtRepr::request(Epid(field(head, 0, 16) as u16), packet.header().seq);
        repr.dst_epid = packet.header().dst_epid;
        repr.version = field(head, 48, 16) as u16;
        let mut hops = field(head, 16, 10);
        // Each operation says how many follow it in its hop.
        let mut expected = None;
        while hops > 0 {
            let at = (1 + repr.len) * packet.width().bytes();
            let (op, to_come) = Op::from_item(get_u64(payload, at, Error::PayloadTooShort)?)?;
            if expected.is_some_and(|expected| to_come != expected) {
                return Err(Error::BadOpCount);
            }
            *repr.ops.get_mut(repr.len).ok_or(Error::TooManyOps)? = op;
            repr.ends[repr.len] = to_come == 0;
            repr.len += 1;
            expected = to_come.checked_sub(1);
            hops -= u64::from(to_come == 0);
        }
        Ok(repr)
    }

    /// Returns the bytes of this packet at this width: headers and items, the last one without
    /// padding.
    #[must_use]
    pub fn packet_len(&self, width: Width) -> usize {
        width.bytes() * (1 + self.len) + 8
    }

    /// Writes the packet and returns [`MgmtRepr::packet_len`].
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`], [`Error::FieldOverflow`].
    pub fn emit(&self, width: Width, buf: &mut [u8]) -> Result<usize> {
        let (len, item_len) = (self.packet_len(width), width.bytes());
        let mut out = WordWriter::new(buf);
        put_plain_header(PacketType::Management, self.dst_epid, self.seq, len, width, &mut out)?;
        let mut last = u64::from(self.src_epid.0)
            | (self.hops().count() as u64) << 16
            | u64::from(width.code()) << 45
            | u64::from(self.version) << 48;
        for hop in self.hops() {
            for (op, to_come) in hop.iter().zip((0..hop.len()).rev()) {
                out.put_padded(last, item_len)?;
                last = op.to_item(to_come as u8)?;
            }
        }
        out.put(last)?;
        Ok(len)
    }
}

impl PartialEq for MgmtRepr {
    fn eq(&self, other: &Self) -> bool {
        (self.dst_epid, self.seq, self.src_epid, self.version)
            == (other.dst_epid, other.seq, other.src_epid, other.version)
            && self.hops().eq(other.hops())
    }
}

impl Eq for MgmtRepr {}

impl core::fmt::Debug for MgmtRepr {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "management {} to {} seq {}", self.src_epid, self.dst_epid, self.seq)?;
        self.hops().try_for_each(|hop| write!(f, " {hop:?}"))
    }
}
